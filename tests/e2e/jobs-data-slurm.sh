#!/usr/bin/env bash
# Data that a recipe declares, in a job of Slurm's: what the nodes share is found; what they lack
# comes from the first node, which sees it, to each of the others once.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3
need_node_agent

small_tree
nodes_up 2
with_slurm
mkdir -p "$work/project/shared"
cd "$work/project"
echo all >shared/of
echo own >"$bed/head/tmp/own.txt"
# The head submits, and node1 leads: what lies in their own folders others do not see.
cp "$bed/head/tmp/own.txt" "$bed/node1/tmp/own.txt"
own=$(sha256sum <"$bed/head/tmp/own.txt" | cut -d' ' -f1)
small_recipe small.yaml six
cat >>small.yaml <<RECIPE
data:
  shared: {from: ./shared, digest: "sha256:$(printf '%s  of\0' "$(sha256sum <shared/of | cut -d' ' -f1)" | sha256sum | cut -d' ' -f1)"}
  own: {from: /tmp/own.txt, digest: "sha256:$own", stage: node}
RECIPE
build_digest small.yaml >/dev/null

note "the dry run shows the script, and says what will be checked"
on_head "$MLENV" run --engine slurm --nodes 2 --dry-run small.yaml -- true >"$work/out" 2>"$work/err"
grep -q '^#SBATCH --nodes=2' "$work/out" || fail "no script: $(cat "$work/out")"
grep -q '^mlenv: data own at /data/own: each node has' "$work/err" || fail "not said: $(cat "$work/err")"

note "ranks on both nodes see both"
on_head "$MLENV" run --engine slurm --nodes 2 small.yaml -- sh -c 'cat /data/shared/of /data/own' >"$work/out" 2>"$work/err" ||
  fail "job: $(cat "$work/out" "$work/err")"
equal "lines" "0: all 0: own 1: all 1: own" "$(LC_ALL=C sort "$work/out" | xargs)"
"$MLENV" --json runs | jq -r '.runs[].start.id' >"$work/ids"
while read -r id; do
  "$MLENV" --json runs show "$id" >"$work/record"
  if [ "$(jq .start.launch "$work/record")" != null ]; then break; fi
done <"$work/ids"
equal "how" "found node1 found node2" \
  "$(jq -r '[.ranks.data[] | select(.name == "shared") | "\(.how) \(.node)"] | sort | join(" ")' "$work/record")"
equal "how" "found node1 0 staged node2 4" \
  "$(jq -r '[.ranks.data[] | select(.name == "own") | "\(.how) \(.node) \(.sent_bytes)"] | sort | join(" ")' "$work/record")"
