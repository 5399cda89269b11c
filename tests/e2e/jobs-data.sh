#!/usr/bin/env bash
# Data that a recipe declares, in jobs: real sshds on nodes of their own, which have none of it. It
# comes to each node once, is proven there, kept and found again; what was interrupted goes on; a
# node without room, with other bytes or without a way to the data is named; it is no part of the
# code. Engine local finds it where it lies.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3 git
need_node_agent

small_tree
nodes_up 3
nodes_have_small
with_ssh
# On the head alone: the other nodes have a /root of their own.
project=$bed/head/root/project
mkdir -p "$project/corpus/part"
head -c 3000000 /dev/urandom >"$project/corpus/large"
echo two >"$project/corpus/part/b"
: >"$project/corpus/empty"
printf '#!/bin/sh\necho ran\n' >"$project/corpus/run.sh"
chmod 755 "$project/corpus/run.sh"
ln -s part/b "$project/corpus/link"
printf 'labels\n' >"$project/labels.txt"
digest_of() { (cd "$1" && find -L . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum | cut -d' ' -f1); }
corpus=$(digest_of "$project/corpus")
labels=$(sha256sum "$project/labels.txt" | cut -d' ' -f1)
size=$(find -L "$project/corpus" -type f -printf "%s\n" | awk '{sum += $1} END {print sum}')
recipe_with() { # recipe_with STAGE
  small_recipe "$project/small.yaml" six
  cat >>"$project/small.yaml" <<RECIPE
data:
  corpus: {from: ./corpus, digest: "sha256:$corpus"$1}
  labels: {from: ./labels.txt, digest: "sha256:$labels"$1, to: /labels}
RECIPE
}
recipe_with ', stage: node'
build_digest "$project/small.yaml" >/dev/null

on_head() { on head env MLENV_STORE="$MLENV_STORE" sh -c 'cd project && exec "$@"' on_head "$@"; }
job() { on_head "$MLENV" run --engine ssh "$@"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out")"; }
# data_of NODE NAME MEMBER: what the record of the newest job says of it, or of the job $id.
id=last
data_of() {
  "$MLENV" --json runs show "$id" >"$work/record"
  jq -r ".ranks.data[] | select(.node == \"$1\" and .name == \"$2\") | .$3" "$work/record"
}
kept_on() { on "$1" sh -c "ls -A .local/share/mlenv/data 2>/dev/null | grep -v lock | xargs"; }
forget() { on "$1" rm -rf .local/share/mlenv/data; }
look='cd /data/corpus && find . -type f | LC_ALL=C sort | xargs && cat part/b /labels && ./run.sh && sha256sum <large'
expected="./empty ./large ./link ./part/b ./run.sh two labels ran $(sha256sum <"$project/corpus/large" | xargs)"
each_sees() { # each_sees NODES…: each rank saw the data
  local rank=0 node
  for node in "$@"; do
    equal "$node" "$expected" "$(sed -n "s/^$rank: //p" "$work/out" | xargs)"
    rank=$((rank + 1))
  done
}

note "a dry run says what will be checked, and starts nothing"
ends_with 0 job --hosts node1 --nodes 1 --dry-run small.yaml -- true
shown "^data corpus at /data/corpus: each node has sha256:$corpus in /root/project/corpus or kept in its store, else it is sent"
ends_with 0 on_head "$MLENV" --json run --engine ssh --hosts node1 --nodes 1 --dry-run small.yaml -- true
python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
equal "as JSON" "corpus $size labels 7" "$(jq -r '[.data[] | "\(.name) \(.bytes)"] | join(" ")' "$work/out")"
equal "nothing on node1" "" "$(kept_on node1)"

note "nodes that have nothing are sent it, once for all their ranks"
ends_with 0 job --hosts node1,node2 --nodes 2 --ranks-per-node 2 small.yaml -- sh -c "$look"
for rank in 0 1 2 3; do equal "rank $rank" "$expected" "$(sed -n "s/^$rank: //p" "$work/out" | xargs)"; done
equal "how" staged "$(data_of node1 corpus how)"
python3 "$root/tests/schema/check.py" <"$work/record" >/dev/null
equal "bytes sent" "$size" "$(data_of node2 corpus sent_bytes)"
equal "digest" "sha256:$labels" "$(data_of node2 labels digest)"
equal "kept" "$(printf '%s\n' "$corpus" "$labels" | LC_ALL=C sort | xargs)" "$(kept_on node1)"
equal "as coreutils have it" "$corpus" "$(digest_of "$bed/node2/root/.local/share/mlenv/data/$corpus")"
"$MLENV" runs show "$(jq -r .start.id "$work/record")" >"$work/out"
shown "^data +corpus on node1, staged at .*/data/$corpus, $size bytes sent in "

note "what they have is kept, read-only, and not sent again; a node that comes anew is sent it"
ends_with 0 job --hosts node1,node2,node3 --nodes 3 small.yaml -- sh -c "$look; touch /data/corpus/new 2>/dev/null || echo refused >&2"
each_sees node1 node2 node3
equal "refused" 3 "$(grep -c refused "$work/err")"
equal "node1" "kept 0" "$(data_of node1 corpus how) $(data_of node1 corpus sent_bytes)"
equal "node3" "staged $size" "$(data_of node3 corpus how) $(data_of node3 corpus sent_bytes)"

note "the data is no part of the code"
ends_with 0 job --hosts node1 --nodes 1 --no-check small.yaml -- ls
if grep -q 'corpus\|labels' "$work/out"; then fail "it travels as code: $(cat "$work/out")"; fi

note "what somebody changed in a node's store is noticed, and comes again"
on node1 sh -c "echo other >.local/share/mlenv/data/$corpus/part/b"
ends_with 0 job --hosts node1 --nodes 1 small.yaml -- sh -c "$look"
equal "node1" "$expected" "$(xargs <"$work/out")"
# Names in the order of the list: b and what follows it.
equal "node1" staged "$(data_of node1 corpus how)"
[ "$(data_of node1 corpus sent_bytes)" -lt 100 ] || fail "$(data_of node1 corpus sent_bytes) bytes came again"

note "what was interrupted goes on"
forget node2
hex=$(sha256sum <"$project/corpus/large" | cut -d' ' -f1)
part=$bed/node2/root/.local/share/mlenv/data/$corpus.part
mkdir -p "$part/content"
: >"$part/content/empty"
head -c 2000000 "$project/corpus/large" >"$part/$hex.piece"
ends_with 0 job --hosts node2 --nodes 1 small.yaml -- sh -c "$look"
equal "node2" "$expected" "$(xargs <"$work/out")"
equal "the rest came" "$((size - 2000000))" "$(data_of node2 corpus sent_bytes)"
equal "nothing in part" "" "$(find "$bed/node2/root/.local/share/mlenv/data" -name '*.part')"

note "so does what kill -9 interrupted"
forget node2
shape node2 8mbit
job --hosts node2 --nodes 1 small.yaml -- true >"$work/out" 2>&1 </dev/null &
started+=($!)
wait_until 60 test -s "$part/$hex.piece"
on head pkill -9 -x mlenv
shape node2 off
ends_with 0 job --hosts node2 --nodes 1 small.yaml -- sh -c "$look"
equal "node2" "$expected" "$(xargs <"$work/out")"
equal "how" staged "$(data_of node2 corpus how)"
[ "$(data_of node2 corpus sent_bytes)" -lt "$size" ] || fail "all of it came again"

note "and what a power cut spoilt of it comes again"
forget node2
mkdir -p "$part/content"
head -c 3000000 /dev/zero >"$part/content/large"
ends_with 0 job --hosts node2 --nodes 1 small.yaml -- sh -c "$look"
equal "node2" "$expected" "$(xargs <"$work/out")"

note "a node that has it at the same path uses that"
mkdir -p "$bed/node3/root/project"
cp -r "$project/corpus" "$bed/node3/root/project/"
forget node3
ends_with 0 job --hosts node3 --nodes 1 small.yaml -- cat /data/corpus/part/b
equal "node3" "found /root/project/corpus $size" "$(data_of node3 corpus how) $(data_of node3 corpus path) $(data_of node3 corpus bytes)"

note "a node without room is named"
forget node2
on node2 sh -c 'mkdir -p .local/share/mlenv/data && mount -t tmpfs -o size=1m tmpfs .local/share/mlenv/data'
failing_with no-space on_head "$MLENV" --json run --engine ssh --hosts node1,node2 --nodes 2 small.yaml -- true
said 'node `node2` cannot take part'
said 'bytes of it are to come'
on node2 umount .local/share/mlenv/data

note "data that is to be used where it lies: other bytes, and none"
recipe_with ''
build_digest "$project/small.yaml" >/dev/null
cp "$project/labels.txt" "$bed/node3/root/project/"
forget node3
ends_with 0 job --hosts node3 --nodes 1 small.yaml -- cat /data/corpus/part/b
equal "node3" found "$(data_of node3 labels how)"
echo other >"$bed/node3/root/project/corpus/part/b"
failing_with data-differs on_head "$MLENV" --json run --engine ssh --hosts node3 --nodes 1 small.yaml -- true
said 'node `node3` cannot take part'
said "declared sha256:$corpus"
failing_with no-data on_head "$MLENV" --json run --engine ssh --hosts node2 --nodes 1 small.yaml -- true
said 'on node `node2`'

recipe_with ', stage: node'
build_digest "$project/small.yaml" >/dev/null
note "engine local: it is found where it lies"
cd "$project"
ends_with 0 "$MLENV" --json run --nodes 2 small.yaml -- cat /data/corpus/part/b
equal "ranks" "two two" "$(jq -r 'select(.schema == "mlenv.log-line/1") | .text' "$work/out" | xargs)"
id=$(jq -r 'select(.schema == "mlenv.job-end/1") | .id' "$work/out")
equal "n1" "found 0" "$(data_of n1 corpus how) $(data_of n1 corpus sent_bytes)"
note "the store is whole"
verify_store
