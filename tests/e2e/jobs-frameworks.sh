#!/usr/bin/env bash
# Training on several nodes with the programs of examples/multi-node: the same bits twice, the same
# bits by each engine, the loss of one node, and after a node's power was cut the weights of an
# undisturbed run. JAX on this machine's nodes and by ssh; with MLENV_TEST_LONG=1 by each engine, as are PyTorch,
# TensorFlow's MultiWorkerMirroredStrategy and its parameter servers, which may also be asynchronous. (In every run
# jobs-mpi.sh has the same bits twice, nodes-slurm.sh a node's power under Slurm.)
# first
# shellcheck disable=SC2016,SC2054 # what stands in single quotes is for others; a list for --hosts
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc ip jq python3
need_node_agent

cp -r "$root/examples/multi-node" "$work/project"
mkdir "$work/checkpoints"
cd "$work/project"
# bring IMAGE…: nodes see the test's own folder, and not the one that tests share.
bring() {
  local name
  for name in "$@"; do shared_image "$name"; done
  # As it is: blobs and trees, which nobody changes, by hard links where they can be.
  local store=$work/store part
  mkdir "$store"
  for part in version mlenv-store names keys spliced; do cp -a "$MLENV_STORE/$part" "$store/"; done
  for part in blobs trees; do
    cp -al "$MLENV_STORE/$part" "$store/" 2>/dev/null || cp -a "$MLENV_STORE/$part" "$store/"
  done
  export MLENV_STORE=$store
}
images=(jax-cpu)
[ "$MLENV_TEST_LONG" = 1 ] && images+=(debian-pytorch tensorflow-cpu)
bring "${images[@]}"
nodes_up 4
with_ssh
by=(ssh)
engines=(local)
if [ "$MLENV_TEST_LONG" = 1 ]; then
  with_slurm
  by+=(slurm)
  engines+=(ssh slurm)
fi

# on_head COMMAND…: where ssh and Slurm are; its store is the test's, which all nodes see.
# trained ENGINE OPTION… IMAGE -- COMMAND…: loss bits and weights, which must be those of all ranks.
trained() {
  local engine=$1 run=("$MLENV" run --engine "$1")
  shift
  case $engine in
    local) ;;
    ssh) run=(on_head "${run[@]}" --hosts node1,node2,node3,node4) ;;
    slurm) run=(on_head "${run[@]}") ;;
  esac
  "${run[@]}" "$@" </dev/null >"$work/out" 2>"$work/err" || fail "$engine $*: $(tail -n 30 "$work/out" "$work/err")"
  result || fail "$engine $*: not one result: $(cat "$work/out")"
}
# Of all ranks that said one.
result() {
  sed -nE 's/.*steps, loss [0-9.]+ \(([0-9a-f]+)\), weights sha256:([0-9a-f]+)$/\1 \2/p' "$work/out" | sort -u >"$work/weights"
  cat "$work/weights"
  [ "$(wc -l <"$work/weights")" -eq 1 ]
}
loss() { sed -nE 's/.*steps, loss ([0-9.]+) .*/\1/p' "$work/out" | head -n 1; }

# agrees IMAGE COMMAND…: twice, and by each engine.
agrees() {
  local name=$1 first second by_engine engine
  shift
  first=$(trained local "${nodes[@]}" "$name" "$@")
  note "$name, ${nodes[*]}: ${first% *}"
  several=$(loss)
  if [ "$MLENV_TEST_LONG" = 1 ]; then
    second=$(trained local "${nodes[@]}" "$name" "$@")
    equal "$name: twice" "$first" "$second"
  fi
  for engine in "${by[@]}"; do
    by_engine=$(trained "$engine" "${nodes[@]}" "$name" "$@")
    equal "$name: by $engine" "$first" "$by_engine"
  done
  expected=$first
}
# as_one_node IMAGE -- COMMAND…: gradients are summed in another order there, so that losses agree to
# about seven digits at each of 60 steps.
as_one_node() {
  trained local "${one_node[@]}" "$@" >/dev/null
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 1e-4 * abs(b))' \
    "$several" "$(loss)" || fail "$1: loss $several on several nodes, $(loss) on one"
}
# survives ENGINE IMAGE -- COMMAND…: a node's power is cut after a checkpoint in the midst.
survives() {
  local engine=$1 name=$2 agent cut noticed victim=node2 status=0
  local run=("$MLENV" run --engine "$engine" "${nodes[@]}" --checkpoints "$work/checkpoints")
  shift 2
  case $engine in
    local) run+=(--restarts 1) ;;
    ssh) run=(on_head "${run[@]}" --restarts 1 --hosts node1,node2,node3,node4) ;;
    slurm) run=(on_head "${run[@]}") ;;
  esac
  rm -rf "$work/checkpoints"
  mkdir "$work/checkpoints"
  nothing_said
  # Slowly until it is disturbed.
  "${run[@]}" "$name" -- sh -c '[ "$MLENV_RESTARTS" != 0 ] || set -- "$@" --pause 0.3; exec "$@"' sh "${@:2}" \
    </dev/null >"$work/out" 2>"$work/err" &
  local job=$!
  wait_until 300 grep -q 'step 20' "$work/out"
  cut=$(date +%s.%N)
  if [ "$engine" = local ]; then
    agent=$(pgrep -f -- "__node $MLENV_STORE" | tail -n 1)
    as_root kill -9 "$agent"
  else
    [ "$engine" != slurm ] || victim=$(other_in_slurm)
    [ -n "$victim" ] || fail "$name: the job is over already: $(cat "$work/out" "$work/err")"
    power_cut "$victim"
  fi
  wait_until 120 grep -qE 'is lost|was lost' "$work/out" "$work/err"
  noticed=$(python3 -c "import time; print(f'{time.time() - $cut:.1f}')")
  note "$name by $engine: a node was cut off, noticed after $noticed s"
  # Agents of every engine say something each second, and are lost after six of silence (runner/job/node_link.hpp).
  [ "${noticed%.*}" -lt 10 ] || fail "$name by $engine: that is later than ten seconds"
  [ "$engine" = local ] || power_on "$victim"
  wait "$job" || status=$?
  equal "$name by $engine: status after a cut: $(cat "$work/err" "$work/out")" 0 "$status"
  equal "$name by $engine: result after a cut" "$expected" "$(result)"
  note "$name by $engine: the weights of an undisturbed run, $(python3 -c "import time; print(f'{time.time() - $cut:.1f} s')") after the cut"
  [ "$engine" = local ] || back_in_slurm "$victim"
}
# other_in_slurm: of the nodes that the job has one on which its controller is not.
other_in_slurm() { on head scontrol show hostnames "$(on head squeue -h -o %N)" | tail -n 1; }
# A node that came back too soon for Slurm to have missed it needs no help.
back_in_slurm() {
  on head scontrol update nodename="$1" state=resume 2>/dev/null || true
  wait_until 60 slurm_idle 4
}

# all_of IMAGE -- COMMAND…
all_of() {
  local engine
  agrees "$@"
  as_one_node "$@"
  for engine in "${engines[@]}"; do survives "$engine" "$@"; done
}

nodes=(--nodes 3)
one_node=(--nodes 1)
all_of jax-cpu -- python3 train-jax.py

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
all_of debian-pytorch -- python3 train-torch.py
all_of tensorflow-cpu -- python3 train-tensorflow.py
nodes=(--nodes 4 --strategy parameter-server)
one_node=(--nodes 1 --ranks-per-node 4 --strategy parameter-server)
all_of tensorflow-cpu -- python3 train-parameter-server.py

# No two runs are alike: workers compute gradients from weights that the others have changed meanwhile,
# so that the loss is that of the synchronous one but for a part (0.114 to 0.131 where that is 0.122).
# Where no worker is lost TensorFlow applies each part of a batch once.
program=(tensorflow-cpu -- python3 train-parameter-server.py --steps 150)
trained local "${nodes[@]}" "${program[@]}" >/dev/null
synchronous=$(loss)
for engine in "${engines[@]}"; do
  trained "$engine" "${nodes[@]}" --async "${program[@]}" --mode async >/dev/null
  read -r updates parts < <(sed -nE 's/.*: ([0-9]+) updates for ([0-9]+) parts/\1 \2/p' "$work/out")
  note "asynchronous by $engine: loss $(loss), synchronous $synchronous; $updates updates for $parts parts"
  equal "asynchronous by $engine: updates" "$parts" "$updates"
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 0.15 * abs(b))' "$(loss)" "$synchronous" ||
    fail "asynchronous by $engine: another loss"
done
