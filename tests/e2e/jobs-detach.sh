#!/usr/bin/env bash
# `mlenv run -d` of jobs: a controller in the background on engines local and ssh, which `ps`, `logs
# -f`, `wait` and `stop` reach, and which no terminal's end ends; on Slurm a job that is left to it.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq git
need_node_agent

small_tree
mkdir -p "$work/project" "$work/shared"
cd "$work/project"

said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err" "$work/out")"; }
drivers() { pgrep -f -- "^[^ ]*/mlenv __drive$" | while read -r pid; do
  if grep -qz "^MLENV_STORE=$MLENV_STORE$" "/proc/$pid/environ"; then echo "$pid"; fi
done; }
no_driver() { [ -z "$(drivers)" ]; }

note "local: it comes back at once, with an id"
ends_with 0 "$MLENV" run -d --nodes 2 --name bg -v "$work/shared:/shared" small -- \
  sh -c 'echo "up $RANK"; until [ -e /shared/go ]; do sleep 0.1; done; echo "gone $RANK"; exit $((RANK * 5))'
id=$(cat "$work/out")
[[ $id =~ ^[0-9]{8}-[0-9]{6}-[0-9a-f]{6}$ ]] || fail "no id: $id"
"$MLENV" ps >"$work/ps"
grep -q " *bg" "$work/ps" || fail "it is not listed: $(cat "$work/ps")"
equal "one controller" 1 "$(drivers | wc -l)"
driver=$(drivers)
started+=("$driver") # should the test fail before its end
equal "no terminal" 0 "$(cut -d' ' -f7 "/proc/$driver/stat")"
[ "$(cut -d' ' -f6 "/proc/$driver/stat")" != "$(cut -d' ' -f6 /proc/self/stat)" ] || fail "it is of our session"
equal "streams" /dev/null "$(readlink "/proc/$driver/fd/2")"

note "its name is taken as long as it runs"
failing_with name-taken "$MLENV" --json run -d --nodes 1 --name bg small -- true

note "logs -f shows it to its end, wait has its status, the record is whole"
"$MLENV" logs -f bg >"$work/followed" 2>"$work/follow.err" &
follower=$!
wait_until 20 grep -q '^1: up 1$' "$work/followed"
touch "$work/shared/go"
ends_with 5 "$MLENV" wait bg
wait "$follower"
grep -q '^1: gone 1$' "$work/followed" || fail "not followed to the end: $(cat "$work/followed")"
wait_until 10 no_driver
"$MLENV" --json runs show "$id" >"$work/show.json"
equal "record" "5 true 2 5" "$(jq -r '"\(.end.exit_code) \(.start.detached) \(.ranks.attempts[0].ranks|length) \(.ranks.attempts[0].ranks[1].exit_code)"' "$work/show.json")"

note "what mlenv says of it while nobody is there is in its log"
ends_with 0 "$MLENV" run -d --nodes 2 --restarts 1 --name again small -- \
  sh -c '[ "$RANK" = 0 ] || [ "$MLENV_RESTARTS" = 1 ] || exit 3; [ "$MLENV_RESTARTS" = 1 ] || exec sleep 60; echo "whole $RANK"'
ends_with 0 "$MLENV" wait again
ends_with 0 "$MLENV" logs again
said '^mlenv: rank 1 on n2 ended with status 3; the others are ended$'
said '^mlenv: restart 1 of 1$'
equal "restarts are told once" 1 "$(grep -c 'restart 1' "$work/err")"
equal "ranks" "0: whole 0 1: whole 1" "$(sort "$work/out" | xargs)"
ends_with 0 "$MLENV" --json logs again
python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
equal "as JSON" "restart 1 of 1" "$(jq -r 'select(.stream == "mlenv" and (has("rank")|not) and (.text|startswith("restart"))).text' "$work/out")"
ends_with 0 "$MLENV" logs --rank 0 again
if grep -q 'the others are ended' "$work/err"; then fail "a remark about the job among one rank's"; fi

note "stop ends it; as JSON its start is told as a run's"
"$MLENV" --json run -d --nodes 2 --name long small -- sh -c 'echo up; exec sleep 7783' >"$work/started.json"
equal "start" "mlenv.run-started/1 long" "$(jq -r '"\(.schema) \(.name)"' "$work/started.json")"
ends_with 0 "$MLENV" stop --time 2s long
ends_with 0 "$MLENV" --json runs show long
equal "ended by" stop "$(jq -r .end.ended_by "$work/out")"
wait_until 10 no_driver

note "the end of its session does not end it"
setsid --wait bash -c '"$MLENV" run -d --nodes 2 --name orphan small -- sleep 7784; kill -HUP $$' </dev/null >"$work/out" 2>"$work/err" || true
"$MLENV" ps >"$work/ps"
grep -q orphan "$work/ps" || fail "it ended with its session: $(cat "$work/out" "$work/err")"
ends_with 0 "$MLENV" stop --time 1s orphan
wait_until 10 no_driver

note "what is wrong before a rank runs is told here, and leaves no controller"
failing_with no-node "$MLENV" --json run -d --nodes 1 --engine ssh --hosts nowhere.invalid small -- true
wait_until 10 no_driver
ends_with 125 "$MLENV" run -d --nodes 2 -v /nowhere/at/all:/x:ro small -- true

note "whoever gives up before a rank runs ends the job"
cat >"$work/silent.py" <<'PYTHON'
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(600)
PYTHON
python3 "$work/silent.py" >"$work/port" & # an sshd that never says a word
started+=("$!")
wait_until 10 test -s "$work/port"
echo "127.0.0.1 port=$(cat "$work/port")" >"$work/hosts"
"$MLENV" run -d --nodes 1 --name given-up --engine ssh --hosts "$work/hosts" small -- true >"$work/out" 2>"$work/err" </dev/null &
asked=$!
started+=("$asked")
is_driven() { [ -n "$(drivers)" ]; }
wait_until 10 is_driven
is_recorded() { "$MLENV" runs >"$work/runs" && grep -q given-up "$work/runs"; }
wait_until 10 is_recorded
kill -TERM "$asked"
wait_until 8 no_driver # and not when ssh has waited for its ten seconds
ends_with 0 "$MLENV" --json runs show given-up
equal "state" killed "$(jq -r .state "$work/out")"

nodes_up 2
nodes_have_small
with_ssh
with_slurm

note "ssh: the same"
rm -f "$work/shared/go"
ends_with 0 on_head "$MLENV" run -d --nodes 2 --engine ssh --hosts node1,node2 --name far -v "$work/shared:/shared" small -- \
  sh -c 'until [ -e /shared/go ]; do sleep 0.1; done; echo "done $RANK"'
on_head "$MLENV" ps >"$work/ps"
grep -q far "$work/ps" || fail "it is not listed: $(cat "$work/ps")"
touch "$work/shared/go"
ends_with 0 on_head "$MLENV" wait far
ends_with 0 on_head "$MLENV" logs far
equal "both" "0: done 0 1: done 1" "$(sort "$work/out" | xargs)"

note "one table of what differs between the nodes, as text, as data, in the record"
on node2 mount -t tmpfs -o size=16m tmpfs /dev/shm
ends_with 0 on_head "$MLENV" run --nodes 2 --engine ssh --hosts node1,node2 --name alike small -- true
said '^mlenv: the nodes differ:$'
said '^mlenv:   notes   .* on node1; 16 MB on node2  \('
equal "one table" 1 "$(grep -c 'the nodes differ' "$work/err")"
cat "$MLENV_STORE"/runs/*/agreement.json >"$work/agreement"
python3 "$root/tests/schema/check.py" <"$work/agreement" >/dev/null
equal "record" "node1 node2 noted" "$(jq -r '(.nodes + [.rows[]|select(.rule == "shared-memory").standing])|join(" ")' "$work/agreement")"
ends_with 0 on_head "$MLENV" --json runs show alike
python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
equal "shown as JSON" "$(jq -c 'del(.schema)' "$work/agreement")" "$(jq -c .agreement "$work/out")"
ends_with 0 on_head "$MLENV" runs show alike
shown=$(grep -A 20 '^differ ' "$work/out" | grep -c ' on node1; .* on node2$' || true)
equal "shown as text" "$(jq '[.rows[]|select(.standing == "noted" or .standing == "blocked")]|length' "$work/agreement")" "$shown"
ends_with 0 on_head "$MLENV" runs show far
if grep -q '^differ ' "$work/out"; then fail "nodes that are alike are told to differ: $(cat "$work/out")"; fi
ends_with 0 on_head "$MLENV" logs alike
said '^mlenv: the nodes differ:$'
ends_with 0 on_head "$MLENV" --json run --nodes 2 --engine ssh --hosts node1,node2 small -- true
python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
equal "as JSON" 1 "$(jq -c 'select(.schema == "mlenv.agreement/1")' "$work/out" | wc -l)"
on node2 umount /dev/shm

note "slurm: submitted and left; queued, followed, cancelled"
on head scontrol update nodename=node1,node2 state=drain reason=test
# The one that fails ends the other: not before that has spoken.
ends_with 0 on_head "$MLENV" run -d --nodes 2 --engine slurm --name left -v "$work/shared:/shared" small -- \
  sh -c 'echo "here $RANK"; touch "/shared/spoke$RANK"; until [ -e /shared/spoke0 ]; do sleep 0.1; done; exit $((RANK * 6))'
id=$(cat "$work/out")
on_head "$MLENV" ps >"$work/ps"
grep -qE "$id  left .* queued " "$work/ps" || fail "it is not listed as queued: $(cat "$work/ps")"
failing_with run-queued on_head "$MLENV" --json logs "$id"
on_head "$MLENV" logs -f "$id" >"$work/followed" 2>"$work/follow.err" </dev/null &
follower=$!
on head scontrol update nodename=node1,node2 state=resume
ends_with 6 on_head "$MLENV" wait "$id"
wait "$follower"
equal "both" "0: here 0 1: here 1" "$(sort "$work/followed" | xargs)"
ends_with 0 on_head "$MLENV" run -d --nodes 1 --engine slurm --name long small -- sleep 7785
id=$(cat "$work/out")
ends_with 0 on_head "$MLENV" stop "$id"
equal "queue" "" "$(on head squeue -h)"
