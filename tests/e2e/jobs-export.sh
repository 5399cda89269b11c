#!/usr/bin/env bash
# `mlenv export slurm|ssh|mpi`: scripts that run where there is no mlenv, on a real Slurm and real
# sshds of nodes that have nothing of it. Ranks are told what `mlenv run` tells them, meet, have the
# code, options and status; what one of them does wrong ends the others; nothing is left.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3 git shellcheck
need_node_agent

small_tree
mkdir -p "$work/project" "$work/shared" "$work/empty"
cd "$work/project"
cat >meet.py <<'PYTHON'
import os, socket, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
me = f"{rank} on {os.environ['MLENV_NODE_NAME']}"
if rank == 0:
    server = socket.create_server(where)
    said = [me]
    for _ in range(world - 1):
        peer, _ = server.accept()
        said.append(peer.makefile().read())
    print("met:", ", ".join(sorted(said)))
else:
    while True:
        try:
            peer = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(me.encode())
    peer.close()
PYTHON
cat >job.yaml <<YAML
image: small
command: [python, meet.py]
nodes: 2
ranks-per-node: 2
mounts: [$work/shared:/shared]
checkpoints: $work/shared:/checkpoints
env: {GREETING: it's a "word" with \$signs}
resources: {memory: 512m, shm: 64m}
deadline: 10m
YAML

# checked FILE: what shellcheck says of a script.
checked() { shellcheck --severity=style "$1" || fail "shellcheck does not like $1"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err" "$work/out")"; }

note "scripts of all kinds are what shellcheck wants"
for form in slurm mpi; do
  for with in builtin apptainer; do
    "$MLENV" export "$form" job.yaml --with "$with" --framework torch >"$work/$form-$with.sh"
  done
done
"$MLENV" export slurm job.yaml --with pyxis --framework jax >"$work/slurm-pyxis.sh"
"$MLENV" export slurm job.yaml --framework tensorflow --servers 1 >"$work/slurm-servers.sh"
"$MLENV" export ssh job.yaml --hosts node1,node2 --framework jax >"$work/ssh-jax.sh"
"$MLENV" export ssh small --no-project --hosts node1 -- true >"$work/ssh-plain.sh"
shellcheck --severity=style "$work"/slurm-*.sh "$work"/mpi-*.sh "$work"/ssh-*.sh
"$MLENV" export slurm job.yaml >"$work/again.sh"
"$MLENV" export slurm job.yaml >"$work/again2.sh"
cmp "$work/again.sh" "$work/again2.sh"
grep -qx '#SBATCH --mem=1024M' "$work/again.sh" || fail "no memory is asked for: $(head -n 20 "$work/again.sh")"

note "what no script can do is refused"
failing_with bad-job "$MLENV" --json export slurm small --nodes 2:3 -- true
failing_with bad-job "$MLENV" --json export slurm small --nodes 2 --strategy mpi -- true
failing_with bad-hosts "$MLENV" --json export ssh small --hosts a --nodes 2 -- true
failing_with usage "$MLENV" --json export ssh small --nodes 2 -- true

note "files beside the script"
mkdir "$work/shared/slurm" "$work/ssh"
"$MLENV" --json export slurm job.yaml -o "$work/shared/slurm/job.sh" >"$work/answer"
equal "kind" "slurm $work/shared/slurm/job.sh $work/shared/slurm/job.d" \
  "$(jq -r '"\(.kind) \(.files[0]) \(.files[1])"' "$work/answer")"
for file in mlenv-node image/index.json code.tar; do
  [ -e "$work/shared/slurm/job.d/$file" ] || fail "there is no $file"
done
failing_with file-exists "$MLENV" --json export slurm job.yaml -o "$work/shared/slurm/job.sh"
"$MLENV" export slurm job.yaml --force -o "$work/shared/slurm/job.sh" >"$work/out"

nodes_up 2
with_ssh
with_slurm
mkdir -p "$work/head"
# A submit host without mlenv: its folder is hidden there.
on head sh -c "mount --bind $work/empty $(dirname "$MLENV")"
for node in node1 node2; do on "$node" sh -c "mount --bind $work/empty $(dirname "$MLENV")"; done
on head sh -c '! command -v mlenv' || fail "mlenv is on the submit host"
nothing_left() {
  [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[r]unc|[s]leep 778" || true')" ] &&
    [ -z "$(on "$1" sh -c 'grep " /root/.local/share/mlenv" /proc/self/mounts || true')" ]
}
nothing_left_anywhere() { nothing_left node1 && nothing_left node2; }

# sbatch_to_end SCRIPT: its output; its status is in $work/status.
sbatch_to_end() {
  on head sh -c 'cd "$1" && sbatch --wait --output="$2" "$3"' sh "$(dirname "$1")" "$work/slurm.out" "$(basename "$1")" >"$work/submitted" 2>&1 &&
    echo 0 >"$work/status" || echo $? >"$work/status"
}

note "slurm: ranks meet"
sbatch_to_end "$work/shared/slurm/job.sh"
equal "status" 0 "$(cat "$work/status")"
grep -qE 'met: 0 on node1, 1 on node1, 2 on node2, 3 on node2$' "$work/slurm.out" || fail "$(cat "$work/slurm.out")"
on node2 sh -c 'ls .local/share/mlenv/blobs' >"$work/blobs"
grep -q "${image#sha256:}" "$work/blobs" || fail "node2 has not the image: $(cat "$work/blobs")"
wait_until 20 nothing_left_anywhere

note "ssh: ranks meet, on nodes that are told nothing but a command"
"$MLENV" export ssh job.yaml --hosts node1,node2 -o "$work/ssh/job.sh" >"$work/out"
# Away, and not removed: files are made slowly where many were just removed.
on node1 mv .local/share/mlenv .local/share/before
on node1 mv .cache/mlenv .cache/before
ends_with 0 on head bash "$work/ssh/job.sh"
[ -e "$bed/node1/root/.local/share/mlenv/blobs/${image#sha256:}" ] || fail "node1 has not the image"
shown '^0: met: 0 on node1, 1 on node1, 2 on node2, 3 on node2$'
wait_until 20 nothing_left_anywhere

note "ssh: the second time nothing large travels"
stamp() { on node2 sh -c 'find .cache/mlenv/node .local/share/mlenv/blobs -size +16k -printf "%T@ %i %p\n" | sort'; }
before=$(stamp)
ends_with 0 on head bash "$work/ssh/job.sh"
equal "files" "$before" "$(stamp)"

note "ssh: a rank that fails ends the others; the script has its status and says which it was"
"$MLENV" export ssh --nodes 2 --hosts node1,node2 --no-project -v "$work/shared:/shared" small -o "$work/ssh/fail.sh" -- \
  sh -c '[ "$RANK" = 1 ] && { until [ -e /shared/trapped ]; do sleep 0.1; done; exit 7; }
         trap "echo heard; exit 3" TERM; touch /shared/trapped; while :; do sleep 0.1; done' >"$work/out"
ends_with 7 on head bash "$work/ssh/fail.sh"
said 'first, rank 1 on node2 ended with status 7$'
shown '^0: heard$'
wait_until 20 nothing_left_anywhere

note "ssh: what ends the script ends the ranks, even kill -9"
"$MLENV" export ssh --nodes 2 --hosts node1,node2 --no-project small -o "$work/ssh/long.sh" -- \
  sh -c 'echo up; exec sleep 7781' >"$work/out"
for signal in TERM KILL; do
  nothing_said
  on head bash "$work/ssh/long.sh" </dev/null >"$work/out" 2>"$work/err" &
  running=$!
  (wait_until 60 grep -q '^1: up' "$work/out") || fail "$(cat "$work/out" "$work/err")"
  # The oldest is the script itself, whose copies have the same words.
  on head sh -c "kill -$signal \"\$(pgrep -o -f 'bash $work/ssh/long.sh')\""
  status=0
  wait "$running" || status=$?
  [ "$status" -ne 0 ] || fail "ended by $signal, and all is well"
  wait_until 30 nothing_left_anywhere
done

note "slurm: the first that fails, restarts, and the status of the batch script"
"$MLENV" export slurm --nodes 2 --restarts 1 --no-project -v "$work/shared:/shared" small -o "$work/shared/slurm/fail.sh" -- \
  sh -c 'echo "$RANK.$MLENV_RESTARTS" >>/shared/seen
         [ "$RANK" = 0 ] || { until grep -q "0.$MLENV_RESTARTS" /shared/seen; do sleep 0.1; done; exit 7; }
         exec sleep 7782' >"$work/out"
sbatch_to_end "$work/shared/slurm/fail.sh"
equal "status" 7 "$(cat "$work/status")"
grep -q 'first, rank 1 on node2 ended with status 7$' "$work/slurm.out" || fail "$(cat "$work/slurm.out")"
equal "attempts" "0.0 0.1 1.0 1.1" "$(sort "$work/shared/seen" | xargs)"
wait_until 20 nothing_left_anywhere
[ -z "$(find "$work/shared/slurm" -name 'state-*')" ] || fail "it left its folder: $(ls "$work/shared/slurm/"*.d)"

note "slurm: scancel reaches the ranks as SIGTERM"
"$MLENV" export slurm --nodes 2 --name cancelled --no-project -v "$work/shared:/shared" small -o "$work/shared/slurm/cancel.sh" -- \
  sh -c 'trap "touch /shared/term-$RANK; exit 0" TERM; touch /shared/up-$RANK; while :; do sleep 0.1; done' >"$work/out"
on head sh -c 'cd "$work/shared/slurm" && sbatch cancel.sh' >"$work/submitted"
wait_until 60 test -e "$work/shared/up-0"
wait_until 60 test -e "$work/shared/up-1"
on head scancel --name=cancelled
wait_until 20 test -e "$work/shared/term-0"
wait_until 20 test -e "$work/shared/term-1"
wait_until 30 nothing_left_anywhere

note "mpi: ranks by mpirun, a container within each"
if ! command -v mpirun >/dev/null; then
  note "not tried: mpirun is not installed"
  exit 0
fi
mkdir "$work/shared/mpi"
printf 'node1\nnode2\n' >hosts
"$MLENV" export mpi job.yaml --hosts hosts -o "$work/shared/mpi/job.sh" >"$work/out"
ends_with 0 on head env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  OMPI_MCA_plm_rsh_agent='ssh -q' bash "$work/shared/mpi/job.sh"
shown 'met: 0 on node1, 1 on node1, 2 on node2, 3 on node2$'
wait_until 20 nothing_left_anywhere
