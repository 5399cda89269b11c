#!/usr/bin/env bash
# Training on several nodes with the programs of examples/multi-node: the same bits twice, the same
# bits by each engine, the loss of one node, and after a node's power was cut the weights of an
# undisturbed run. JAX; PyTorch, TensorFlow's MultiWorkerMirroredStrategy and its parameter servers
# with MLENV_TEST_LONG=1.
# shellcheck disable=SC2016,SC2054 # what stands in single quotes is for others; a list for --hosts
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc ip jq python3
[ -x "$(dirname "$MLENV")/mlenv-node" ] || skip "mlenv-node is not built here"

cp -r "$root/examples/multi-node" "$work/project"
mkdir "$work/checkpoints"
cd "$work/project"
nodes_up 3
with_ssh
with_slurm

# on_head COMMAND…: where ssh and Slurm are; its store is the test's, which all nodes see.
on_head() { on head env MLENV_STORE="$MLENV_STORE" sh -c 'cd "$work/project" && exec "$@"' on_head "$@"; }
# trained ENGINE OPTION… IMAGE -- COMMAND…: loss bits and weights, which must be those of all ranks.
trained() {
  local engine=$1 run=("$MLENV" run --engine "$1")
  shift
  case $engine in
    local) ;;
    ssh) run=(on_head "${run[@]}" --hosts node1,node2,node3) ;;
    slurm) run=(on_head "${run[@]}") ;;
  esac
  "${run[@]}" "$@" </dev/null >"$work/out" 2>"$work/err" || fail "$engine $*: $(tail -n 30 "$work/out" "$work/err")"
  sed -nE 's/.*steps, loss [0-9.]+ \(([0-9a-f]+)\), weights sha256:([0-9a-f]+)$/\1 \2/p' "$work/out" | sort -u >"$work/weights"
  [ "$(wc -l <"$work/weights")" -eq 1 ] || fail "$engine $*: not one result: $(cat "$work/out")"
  cat "$work/weights"
}
loss() { sed -nE 's/.*steps, loss ([0-9.]+) .*/\1/p' "$work/out" | head -n 1; }

# agrees IMAGE OPTION… -- COMMAND…: on three nodes (four with roles), by all engines.
agrees() {
  local name=$1 first second by_engine
  shift
  shared_image "$name"
  # Nodes see the test's own folder, and not the one that tests share.
  as_root rm -rf "$work/store"
  cp -a --reflink=auto "$MLENV_STORE" "$work/store"
  export MLENV_STORE=$work/store
  first=$(trained local "${nodes[@]}" "$name" "$@")
  note "$name: ${first% *} on ${nodes[1]} nodes"
  several=$(loss)
  second=$(trained local "${nodes[@]}" "$name" "$@")
  equal "$name: twice" "$first" "$second"
  for engine in ssh slurm; do
    [ "${nodes[1]}" -le 3 ] || continue # the bed has three
    by_engine=$(trained "$engine" "${nodes[@]}" "$name" "$@")
    equal "$name: by $engine" "$first" "$by_engine"
  done
  expected=$first
}
# as_one_node IMAGE -- COMMAND…: gradients are summed in another order there, so that losses agree to
# about seven digits at each of 60 steps.
as_one_node() {
  trained local --nodes 1 "$@" >/dev/null
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 1e-4 * abs(b))' \
    "$several" "$(loss)" || fail "$1: loss $several on several nodes, $(loss) on one"
}
# survives IMAGE -- COMMAND…: a node's power is cut after the first checkpoint.
survives() {
  local name=$1 agent
  shift
  rm -rf "$work/checkpoints"
  mkdir "$work/checkpoints"
  "$MLENV" run --nodes 3 --restarts 1 --checkpoints "$work/checkpoints" "$name" "$@" --pause 0.1 \
    </dev/null >"$work/out" 2>"$work/err" &
  local job=$!
  wait_until 120 grep -q 'step 20' "$work/out"
  agent=$(pgrep -f -- "__node $MLENV_STORE" | tail -n 1)
  as_root kill -9 "$agent"
  local status=0
  wait "$job" || status=$?
  equal "$name: status after a cut: $(cat "$work/err")" 0 "$status"
  grep -q 'is lost' "$work/err" || fail "no node was lost: $(cat "$work/err")"
  sed -nE 's/.*steps, loss [0-9.]+ \(([0-9a-f]+)\), weights sha256:([0-9a-f]+)$/\1 \2/p' "$work/out" | sort -u >"$work/weights"
  equal "$name: weights after a cut" "$expected" "$(cat "$work/weights")"
  note "$name: after a node was cut off, the weights of an undisturbed run"
}

nodes=(--nodes 3)
agrees jax-cpu -- python3 train-jax.py
as_one_node jax-cpu -- python3 train-jax.py
survives jax-cpu -- python3 train-jax.py

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
agrees debian-pytorch -- python3 train-torch.py
as_one_node debian-pytorch -- python3 train-torch.py
survives debian-pytorch -- python3 train-torch.py
agrees tensorflow-cpu -- python3 train-tensorflow.py
as_one_node tensorflow-cpu -- python3 train-tensorflow.py
survives tensorflow-cpu -- python3 train-tensorflow.py
nodes=(--nodes 4 --strategy parameter-server)
agrees tensorflow-cpu -- python3 train-parameter-server.py
