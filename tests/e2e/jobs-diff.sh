#!/usr/bin/env bash
# `mlenv diff` of the nodes of one job, by engine ssh: nodes that are alike, one whose /dev/shm is
# smaller, two of them by name, a node and this host; what is no node and no job.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq git
need_node_agent

small_tree
mkdir -p "$work/project"
cd "$work/project"
nodes_up 3
nodes_have_small
with_ssh
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
job() { on_head "$MLENV" run --engine ssh --hosts node1,node2,node3 "$@"; }
for name in node1 node2 node3; do on "$name" mount -t tmpfs -o size=600m tmpfs /dev/shm; done

note "nodes that are alike"
ends_with 0 job --nodes 3 --name alike small -- true
ends_with 0 on_head "$MLENV" diff alike
shown '^node2, node3 are like node1$'
equal "facts are kept" 3 "$(find "$MLENV_STORE/runs/$(on_head "$MLENV" --json runs show alike | jq -r .start.id)/nodes" -name 'node?.json' | wc -l)"

note "one that has less shared memory"
on node3 mount -t tmpfs -o size=40m tmpfs /dev/shm
ends_with 0 job --nodes 3 --name other small -- true
ends_with 3 on_head "$MLENV" diff other
shown '^node2 is like node1$'
shown '^node3 differs from node1$'
shown '≠ shared memory \(/dev/shm\)'
ends_with 3 on_head "$MLENV" --json diff other
equal "as records" "true,false" "$(jq -r .same "$work/out" | paste -sd,)"
equal "the node and the rule" "node3 shared-memory" "$(tail -n 1 "$work/out" | jq -r '"\(.to.name|split(":")[1]) \([.findings[]|select(.weight != "incidental")][0].rule)"')"

note "two of them by name, and a node of another job"
ends_with 3 on_head "$MLENV" diff other:node2 other:node3
shown '≠ shared memory \(/dev/shm\)'
ends_with 0 on_head "$MLENV" diff alike:node3 other:node2
ends_with 3 on_head "$MLENV" diff alike:node3 other:node3
# Nodes of the bed are namespaces of this machine: whatever differs is told, without a failure.
status=0
on_head "$MLENV" diff other:node1 host </dev/null >"$work/out" 2>"$work/err" || status=$?
if [ "$status" != 0 ] && [ "$status" != 3 ]; then fail "a node and this host: $(cat "$work/err")"; fi

note "what is no node, no job, and a job of one"
failing_with no-such-node on_head "$MLENV" --json diff other:node7 other:node1
grep -q 'it had node1, node2, node3' "$work/err" || fail "which there are is not said"
failing_with diff-pair on_head "$MLENV" --json diff "$(on_head "$MLENV" run small true && on_head "$MLENV" --json runs | jq -r '.runs[0].start.id')"
failing_with no-run on_head "$MLENV" --json diff nobody
ends_with 0 job --nodes 1 --name single small -- true
failing_with diff-pair on_head "$MLENV" --json diff single
