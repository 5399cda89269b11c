#!/usr/bin/env bash
# Scripts of `mlenv export slurm|ssh|mpi` when all is not well: nodes that say what they should not,
# signals at any moment, a cable that is cut, connections that the person's configuration shares. No
# node has anything run or sent, no rank is started once the end is told or while another is left of
# it, and nothing is left anywhere. With MLENV_TEST_LONG=1 also the end of Slurm's time limit.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3 git
need_node_agent

small_tree
mkdir -p "$work/project" "$work/shared/slurm" "$work/scripts"
cd "$work/project"
shared=$work/shared
nodes_up 2
nodes_have_small
with_ssh

shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err" "$work/out")"; }
# by_ssh NAME WORD…: a script for two nodes.
by_ssh() {
  "$MLENV" export ssh --nodes 2 --hosts node1,node2 --no-project -v "$shared:/shared" -o "$work/scripts/$1.sh" "${@:2}" >"$work/out"
}
nothing_left() {
  [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[r]unc|[s]leep 779|[s]sh -T|[m]pirun|[o]rted" || true')" ] &&
    [ -z "$(on "$1" sh -c 'grep " /root/.local/share/mlenv" /proc/self/mounts || true')" ]
}
nothing_left_anywhere() { nothing_left head && nothing_left node1 && nothing_left node2; }
# began NAME [WORD…]: the script in the background; $running is its process here. Words come before bash.
began() {
  nothing_said
  on head env --default-signal=INT "${@:2}" bash "$work/scripts/$1.sh" </dev/null >"$work/out" 2>"$work/err" &
  running=$!
}
# tell SIGNAL NAME: to the script alone. The oldest is itself, whose copies have the same words.
tell() { on head sh -c "kill -$1 \"\$(pgrep -o -f 'bash $work/scripts/$2.sh')\""; }
# has_ended STATUS: what began.
has_ended() {
  local status=0
  wait "$running" || status=$?
  [ "$status" = "$1" ] || fail "status $status, not $1: $(cat "$work/err" "$work/out")"
}
# What a rank does: it says that it is there, and leaves a word when it is told to end.
lasts='trap "echo end $RANK.$MLENV_RESTARTS >>/shared/seen; exit 3" TERM
       echo begin $RANK.$MLENV_RESTARTS >>/shared/seen; while :; do sleep 0.1; done'
seen() { grep -qx "$1" "$shared/seen" 2>/dev/null; }
# both_seen WORD ATTEMPT: by both ranks.
both_seen() {
  wait_until 60 seen "$1 0.$2"
  wait_until 60 seen "$1 1.$2"
}

# forced: logins of node2 run what is on standard input, from now on.
keys=$bed/node2/root/.ssh/authorized_keys
forced() {
  cat >"$work/forced"
  printf 'command="bash %s" %s\n' "$work/forced" "$(cat "$bed/ssh/id.pub")" >"$keys"
}
unforced() { install -m 600 "$bed/ssh/id.pub" "$keys"; }

note "ssh: what a node says is neither run nor sent"
by_ssh meet small -- sh -c 'echo here'
on node2 mv .local/share/mlenv .local/share/before
echo "nobody else's" >"$work/scripts/secret"
forced <<FORCED
echo 'NODE a[\$(>$shared/run)] x 10.77.0.3 eth0 0'
echo 'NODE 0 node2 10.77.0.3 eth0 0'
echo 'sha256:../../../../secret'
echo '../secret'
case \$SSH_ORIGINAL_COMMAND in
*"
take_files'") tee $shared/sent | bash -c "\$SSH_ORIGINAL_COMMAND" ;;
*) exec bash -c "\$SSH_ORIGINAL_COMMAND" ;;
esac
FORCED
ends_with 0 on head bash "$work/scripts/meet.sh"
shown '^0: here$'
shown '^1: here$'
tar -tf "$shared/sent" >"$work/sent"
grep -q '^image/blobs/' "$work/sent" || fail "what node2 was sent is not known: $(cat "$work/sent")"
if grep -vxE 'image/(oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})' "$work/sent"; then fail "node2 was sent more than it may have"; fi
[ ! -e "$shared/run" ] || fail "a node had a command run on the submit host"

note "ssh: a node whose description cannot be is named"
forced <<FORCED
case \$SSH_ORIGINAL_COMMAND in
*"describe_node 1 "*"'") echo 'NODE 1 node2 10.77.0.3 eth0 a[\$(>$shared/run)]' ;;
*) exec bash -c "\$SSH_ORIGINAL_COMMAND" ;;
esac
FORCED
ends_with 1 on head bash "$work/scripts/meet.sh"
said 'a node says of itself what cannot be: .*node2'
[ ! -e "$shared/run" ] || fail "a node had a command run elsewhere"

note "ssh: a signal while nodes are made ready ends that"
no_connection() { [ -z "$(on head sh -c 'pgrep -af "[s]sh -T" || true')" ]; }
for signal in INT TERM; do
  rm -f "$shared/asked" "$shared/go"
  forced <<FORCED
touch $shared/asked
until [ -e $shared/go ]; do sleep 0.1; done
exec bash -c "\$SSH_ORIGINAL_COMMAND"
FORCED
  began meet
  wait_until 60 test -e "$shared/asked"
  tell "$signal" meet
  has_ended "$([ "$signal" = INT ] && echo 130 || echo 143)"
  if grep -E 'nodes could be|could not be|: here' "$work/err" "$work/out"; then fail "it went on after SIG$signal"; fi
  wait_until 10 no_connection
  touch "$shared/go"
  wait_until 30 nothing_left_anywhere
done
unforced

note "connections are not shared with others, nor is one left, whatever the person's configuration says"
cat >"$bed/head/root/.ssh/config" <<'CONFIG'
Host *
  ControlMaster auto
  ControlPath ~/.ssh/shared-%h
  ControlPersist 1h
CONFIG
ends_with 0 on head bash "$work/scripts/meet.sh"
ends_with 0 on_head "$MLENV" run --nodes 2 --engine ssh --hosts node1,node2 --no-project small -- true
shared_connections() { on head sh -c 'pgrep -af "[s]sh.*mux" || true; ls .ssh/shared-* 2>/dev/null || true'; }
equal "connections that are left" "" "$(shared_connections)"
# One that answers no more, as after a power cut.
on head ssh node1 true </dev/null >"$work/out" 2>&1
shared_connections >"$work/connections"
grep -q "shared-node1 .mux." "$work/connections" || fail "no connection is shared: $(cat "$work/connections")"
on head pkill -STOP -f 'shared-node1 \[mux\]'
ends_with 0 on head bash "$work/scripts/meet.sh"
ends_with 0 on_head "$MLENV" run --nodes 2 --engine ssh --hosts node1,node2 --no-project small -- true
on head pkill -KILL -f 'shared-node1 \[mux\]'
rm "$bed/head/root/.ssh/config" "$bed/head/root/.ssh/shared-node1"

note "ssh: a cable is cut: the ranks behind it end, and only then are they started again"
by_ssh cut --restarts 9 small -- sh -c 'if [ "$MLENV_RESTARTS" = 0 ]; then '"$lasts"'; fi; echo begin $RANK.again >>/shared/seen'
rm -f "$shared/seen"
began cut
both_seen begin 0
in_switch ip link set "$(cat "$bed/node2/port")" down
wait_until 60 seen 'end 1.0'
wait_until 60 nothing_left node2
in_switch ip link set "$(cat "$bed/node2/port")" up
has_ended 0
sed -n '1,/^end 1\.0$/p' "$shared/seen" >"$work/before"
if grep again "$work/before"; then fail "started again before it had ended: $(cat "$shared/seen")"; fi
seen 'begin 1.again' || fail "not started again: $(cat "$shared/seen" "$work/err")"
wait_until 30 nothing_left_anywhere

note "mpi: SIGTERM to the script alone ends the ranks"
if command -v mpirun >/dev/null; then
  "$MLENV" export mpi --nodes 2 --restarts 3 --hosts node1,node2 --no-project -v "$shared:/shared" small -o "$work/scripts/mpi.sh" -- \
    sh -c "$lasts" >"$work/out"
  rm -f "$shared/seen"
  began mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent='ssh -q'
  both_seen begin 0
  tell TERM mpi
  has_ended 143
  wait_until 30 nothing_left_anywhere
  if seen 'begin 0.1'; then fail "started again"; fi
else
  note "not tried: mpirun is not installed"
fi

with_slurm
# The same; no rank is the first to end before the other has heard.
both_last=${lasts/exit 3/until [ \\\$(grep -c ^end /shared/seen) -ge 2 ]; do sleep 0.1; done; exit 3}
# submitted SCRIPT [OPTION…]: by sbatch; $running waits for its end.
submitted() {
  nothing_said
  on head sh -c 'cd "$1" && shift && exec sbatch --wait "$@"' sh "$shared/slurm" --output="$work/slurm.out" "${@:2}" "$1" </dev/null >"$work/out" 2>"$work/err" &
  running=$!
}
told_to_end() {
  both_seen end 0
  has_ended 3
  if seen 'begin 0.1' || grep -q 'restart 1' "$work/slurm.out"; then fail "started again: $(cat "$work/slurm.out")"; fi
  wait_until 30 nothing_left_anywhere
}
"$MLENV" export slurm --nodes 2 --restarts 3 --name told --no-project -v "$shared:/shared" small -o "$shared/slurm/told.sh" -- \
  sh -c "$both_last" >"$work/out"
grep -qx '#SBATCH --signal=B:TERM@60' "$shared/slurm/told.sh" || fail "Slurm is not asked to tell the script"

note "slurm: what the script is told the ranks hear, and are not started again"
rm -f "$shared/seen"
submitted told.sh
both_seen begin 0
on head scancel --batch --signal=TERM --name=told
told_to_end

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "slurm: the end of the time limit is told, a minute before"
rm -f "$shared/seen"
submitted told.sh --time=2
both_seen begin 0
wait_until 150 seen 'end 0.0'
told_to_end
