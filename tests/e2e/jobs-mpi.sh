#!/usr/bin/env bash
# `mlenv run --strategy mpi`: the image's own mpirun in containers without ssh, on nodes that this
# machine plays and by ssh: the same bits twice, by each engine, and for the same ranks on one node;
# a rank that fails is named with its node; nothing is left. With MLENV_TEST_LONG=1 also by Slurm,
# and the other way round: the site's mpirun and srun start a container for each rank; and what jobs-deterministic.sh and
# jobs.sh have of other strategies.
# first
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc ip jq python3
need_node_agent

cp -r "$root/examples/multi-node" "$work/project"
cd "$work/project"
# Built once for all tests; its tree is unpacked anew.
build_mpi() { MLENV_STORE=$1 "$MLENV" build mpi.yaml >&2; }
once "$MLENV_TEST_SHARED/mpi" build_mpi
copy_store "$MLENV_TEST_SHARED/mpi" "$MLENV_STORE"
cat >fails.py <<'PYTHON'
import os, sys
from mpi4py import MPI

world = MPI.COMM_WORLD
world.Barrier()
if world.rank == int(sys.argv[2]):
    if sys.argv[1] == "status":
        os._exit(7)
    if sys.argv[1] == "signal":
        os.kill(os.getpid(), 11)
    raise ValueError("this rank gives up")
world.Barrier()  # the others wait for it for ever
PYTHON
cat >place.py <<'PYTHON'
import os, socket
from mpi4py import MPI

world = MPI.COMM_WORLD
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MLENV_SHARD", "MLENV_NODE_NAME")
assert int(os.environ["RANK"]) == world.rank and int(os.environ["WORLD_SIZE"]) == world.size
print("on", socket.gethostname(), *(os.environ.get(name, "-") for name in names), flush=True)
PYTHON

nodes_up 3
with_ssh
# on_head COMMAND…: where ssh and Slurm are; its store is the test's, which all nodes see.
job() { # job ENGINE OPTION… IMAGE -- COMMAND…
  local engine=$1 run=("$MLENV" run --engine "$1" --strategy mpi)
  shift
  case $engine in
    local) as_root env MLENV_STORE="$MLENV_STORE" "${run[@]}" "$@" ;;
    ssh) on_head "${run[@]}" --hosts node1,node2,node3 "$@" ;;
    slurm) on_head "${run[@]}" "$@" ;;
  esac
}
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out")"; }
# result RANKS: loss bits and weights, the same of so many ranks.
result() {
  sed -nE 's/.*steps, loss [0-9.]+ \(([0-9a-f]+)\), weights sha256:([0-9a-f]+)$/\1 \2/p' "$work/out" >"$work/weights"
  equal "ranks that tell their weights" "$1" "$(wc -l <"$work/weights")"
  sort -u "$work/weights" >"$work/unique"
  equal "results" 1 "$(wc -l <"$work/unique")"
  cat "$work/unique"
}
train=(mpi -- python3 -m mpi4py train-mpi.py)
nothing_left() {
  [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[r]unc|[o]rted|[m]pi4py|[f]ails.py" || true')" ] &&
    [ -z "$(on "$1" sh -c "grep -E ' (/root/.local/share/mlenv|$MLENV_STORE)' /proc/self/mounts || true")" ]
}
nothing_left_anywhere() { nothing_left node1 && nothing_left node2 && nothing_left node3; }
none_here() { ! pgrep -f -- "$1" >/dev/null; }

note "ranks on nodes, in order, each told its place"
ends_with 0 job local --nodes 2 --ranks-per-node 2 mpi -- python3 place.py
sort "$work/out" >"$work/sorted"
equal "places" "0: on n1 0 4 0 0 0 n1
1: on n1 1 4 1 0 1 n1
2: on n2 2 4 0 1 2 n2
3: on n2 3 4 1 1 3 n2" "$(cat "$work/sorted")"

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "deterministic: what a container has, its ranks have, those that mpirun starts elsewhere too"
  ends_with 0 job local --nodes 2 --ranks-per-node 2 --deterministic --seed 7 mpi -- python3 -c \
    'import os, random; print(os.environ["NCCL_ALGO"], os.environ["PYTHONHASHSEED"], random.random())'
  drawn=$(python3 -c 'import random; print(random.Random(7).random())')
  sort "$work/out" >"$work/sorted"
  equal "ranks" "0: Ring 0 $drawn|1: Ring 0 $drawn|2: Ring 0 $drawn|3: Ring 0 $drawn" "$(paste -sd '|' "$work/sorted")"
fi

note "the same bits twice"
ends_with 0 job local --nodes 3 "${train[@]}"
shown '^2: rank 2 of 3: 60 steps'
expected=$(result 3)
loss=$(sed -nE 's/.*steps, loss ([0-9.]+) .*/\1/p' "$work/out" | head -n 1)
ends_with 0 job local --nodes 3 "${train[@]}"
equal "twice" "$expected" "$(result 3)"
note "and for the same ranks on one node; one rank's loss agrees to 1e-5"
ends_with 0 job local --nodes 1 --ranks-per-node 3 "${train[@]}"
equal "on one node" "$expected" "$(result 3)"
ends_with 0 job local --nodes 1 "${train[@]}"
shown '^rank 0 of 1: 60 steps'
python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 1e-5 * abs(b))' \
  "$loss" "$(sed -nE 's/.*steps, loss ([0-9.]+) .*/\1/p' "$work/out")" || fail "another loss than $loss: $(cat "$work/out")"

note "a command that starts its ranks itself, and the shell between the nodes"
ends_with 0 job local --nodes 3 mpi -- mpirun -np 3 hostname
equal "by its own mpirun" "n1 n2 n3" "$(sort "$work/out" | xargs)"
ends_with 0 job local --nodes 2 -e MLENV_MPIRUN=no mpi -- sh -c '
  cat "$MLENV_MPI_HOSTFILE" && cmp "$MLENV_MPI_HOSTFILE" /job/hostfile && ssh n2 hostname
  echo passed | ssh -o BatchMode=yes root@n2 "cat; exit 3"; echo status $?
  MLENV_MPI_TOKEN=guessed ssh n2 hostname; echo status $?
  ssh n7 hostname; echo status $?'
equal "what it says" "n1 slots=1 n2 slots=1 n2 passed status 3 status 255 status 255" "$(xargs <"$work/out")"
said 'node `n2` refuses it'
said '`n7` is no node of this job'

note "a rank that fails ends the job, and is named with its node"
ends_with 7 job local --nodes 3 --ranks-per-node 2 mpi -- python3 fails.py status 4
said '^mlenv: first, MPI on n3 ended with status 7$'
said '^    mlenv: MPI rank 4 ended with status 7$'
if [ "$MLENV_TEST_LONG" = 1 ]; then
  ends_with 1 job local --nodes 2 mpi -- python3 -m mpi4py fails.py raise 1
  said 'ValueError: this rank gives up'
  said '^mlenv: first, MPI on n2 ended with status 1$'
  ends_with 127 job local --nodes 2 mpi -- no-such-program
  said 'no-such-program'
fi
none_here 'fails[.]py' || fail "ranks live on"

note "by ssh: the same bits, and the first failure"
ends_with 0 job ssh --nodes 3 "${train[@]}"
equal "by ssh" "$expected" "$(result 3)"
ends_with 139 job ssh --nodes 3 mpi -- python3 fails.py signal 1
said '^mlenv: first, MPI on node2 ended with status 139$'
said 'MPI rank 1 was ended by signal 11 \(SIGSEGV\)'
wait_until 30 nothing_left_anywhere

if [ "$MLENV_TEST_LONG" != 1 ]; then
  verify_store
  exit 0
fi
need mpirun
note "an ordinary user's containers, and another user than root in them"
user_store
cp "$(dirname "$MLENV")/mlenv-node" "$work/bin/"
as_root cp -r "$work/project" "$user_home/project"
as_root chown -R "$user_id:$user_id" "$user_home/project"
ends_with 0 as_user MLENV_STORE="$user_home/store" sh -c 'cd ~/project && exec mlenv "$@"' sh run --nodes 3 --strategy mpi "${train[@]}"
equal "by a user" "$expected" "$(result 3)"
ends_with 0 job local --nodes 2 --user 1000 mpi -- id -u
equal "users" "0: 1000 1: 1000" "$(sort "$work/out" | xargs)"

note "a node's power is cut"
nothing_said
job ssh --nodes 3 mpi -- python3 -m mpi4py train-mpi.py --pause 0.3 </dev/null >"$work/out" 2>"$work/err" &
running=$!
(wait_until 60 grep -q 'step 10,' "$work/out") || fail "$(cat "$work/out" "$work/err")"
power_cut node3
cut=$SECONDS
status=0
wait "$running" || status=$?
equal "status" 125 "$status"
said 'first, node node3 was lost'
note "noticed, and all ended, $((SECONDS - cut)) s after the cut"
wait_until 20 nothing_left node1
wait_until 20 nothing_left node2
power_on node3

note "by Slurm: the same bits, and the first failure"
with_slurm
ends_with 0 job slurm --nodes 3 "${train[@]}"
equal "by slurm" "$expected" "$(result 3)"
ends_with 7 job slurm --nodes 3 mpi -- python3 fails.py status 2
grep -q 'MPI on node3 ended with status 7' "$work/out" "$work/err" || fail "not named: $(cat "$work/out" "$work/err")"
wait_until 30 nothing_left_anywhere

note "the site's mpirun starts a container for each rank"
site=(mpirun --allow-run-as-root --mca plm rsh --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 -x MLENV_STORE)
ends_with 0 on_head "${site[@]}" -np 3 -H node1,node2,node3 "$MLENV" run "${train[@]}"
equal "by the site's mpirun" "$expected" "$(result 3)"
said 'rank 0 of 3 by MPI'
ends_with 0 on_head "${site[@]}" -np 4 -H node1:2,node2:2 "$MLENV" run "${train[@]}"
four=$(result 4)
ends_with 7 on_head "${site[@]}" -np 3 -H node1,node2,node3 "$MLENV" run mpi -- python3 fails.py status 1
wait_until 30 nothing_left_anywhere
note "and so does srun"
on head srun --mpi=pmix true 2>"$work/err" || skip "Slurm here has no PMIx: $(cat "$work/err")"
ends_with 0 on_head srun --mpi=pmix -N3 -n3 "$MLENV" run "${train[@]}"
equal "by srun" "$expected" "$(result 3)"
ends_with 0 on_head srun --mpi=pmix -N2 -n4 --ntasks-per-node=2 "$MLENV" run "${train[@]}"
equal "by srun, two on a node" "$four" "$(result 4)"
ends_with 0 on_head srun --mpi=pmi2 -N2 -n2 "$MLENV" run mpi -- true
said 'each of the 2 ranks is alone'
wait_until 30 nothing_left_anywhere
verify_store
