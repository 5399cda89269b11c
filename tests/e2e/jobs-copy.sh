#!/usr/bin/env bash
# `mlenv copy` to real sshds on nodes of their own: an image leaves the head once, nodes have it from
# each other, each layer once; what is there is not sent, interrupted copies go on, nodes that reach
# nobody, full disks, wrong bytes and shared stores are dealt with one by one. Then names: a tag that
# moves while a job runs, `images --history` and `rollback`.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
# shellcheck source=tests/support/random_layers.sh
. "$root/tests/support/random_layers.sh"
need runc jq python3 git skopeo
need_node_agent

small_tree
small=$image
random_layers "$work/oci" 11 3 0
image=$("$MLENV" load "oci:$work/oci:v1" | tail -n 1)
"$MLENV" tag "$image" large >/dev/null
nodes_up 3
with_ssh
mkdir -p "$work/project"
cd "$work/project"

there() { on "$1" "$MLENV" "${@:2}"; }
# copied HOSTS: its answer is in $work/out; all is well.
copied() {
  on_head "$MLENV" --json copy large --hosts "$1" </dev/null >"$work/out" 2>"$work/err" ||
    fail "copy: $(cat "$work/out" "$work/err")"
}
# of NODE MEMBER: what the last copy's answer says of it.
of() { jq -r ".nodes[] | select(.node == \"$1\") | .$2" "$work/out"; }
sum() { jq "[.nodes[].$1] | add" "$work/out"; }
forget() { on "$1" rm -rf .local/share/mlenv; }
layers=$("$MLENV" --json inspect large | jq -r '.layers[].digest | ltrimstr("sha256:")')
largest=$("$MLENV" --json inspect large | jq -r '.layers | max_by(.size_bytes) | .digest | ltrimstr("sha256:")')
size=$("$MLENV" --json inspect large | jq .size_bytes)
mkdir -p "$bed/shared-store"

note "an image leaves the head about once, and comes to each node once"
copied node1,node2,node3
jq -c . "$work/out"
for node in node1 node2 node3; do
  equal "$node" copied "$(of "$node" state)"
  equal "$node: bytes" "$size" "$(($(of "$node" from_here_bytes) + $(of "$node" from_nodes_bytes)))"
  there "$node" --json images >"$work/images"
  equal "$node: images" "large:latest $image" "$(jq -r '.images[] | "\(.name) \(.digest)"' "$work/images")"
  there "$node" store verify >"$work/verify" 2>&1 || fail "$node: $(cat "$work/verify")"
  equal "$node: nothing unfinished" 0 "$(on "$node" sh -c 'ls .local/share/mlenv/partial .local/share/mlenv/tmp | grep -c "^[0-9a-f]" || true')"
done
# Twice where the machine is so busy that nodes wait for what is on its way to others.
[ "$(sum from_here_bytes)" -lt $((2 * size)) ] || fail "$(sum from_here_bytes) bytes left the head, of $size"
[ "$(sum from_nodes_bytes)" -gt "$size" ] || fail "only $(sum from_nodes_bytes) bytes went between nodes"

note "what is there is not sent"
copied node1,node2,node3
equal "states" "there there there" "$(jq -r '[.nodes[].state] | join(" ")' "$work/out")"
equal "bytes" 0 "$(($(sum from_here_bytes) + $(sum from_nodes_bytes)))"

note "nodes that have it give it to those that have not"
forget node3
copied node1,node2,node3
# One that waited for two seconds, on a busy machine, may have been sent a piece.
[ "$(of node3 from_here_bytes)" -le $((size / 4)) ] || fail "too much from the head: $(cat "$work/out")"
equal "node3 from all" "$size" "$(($(of node3 from_here_bytes) + $(of node3 from_nodes_bytes)))"

note "a node that reaches no other has it from the head"
forget node3
for node in node1 node2; do on node3 ip route add blackhole "${bed_address[$node]}"; done
copied node1,node2,node3
equal "node3 from the head" "$size" "$(of node3 from_here_bytes)"
for node in node1 node2; do on node3 ip route del blackhole "${bed_address[$node]}"; done

note "wrong bytes of a node are noticed, and come from the head"
forget node3
on node1 sh -c "printf x | dd of=.local/share/mlenv/blobs/$largest bs=1 seek=5000 conv=notrunc status=none"
copied node1,node3
equal "node3" copied "$(of node3 state)"
there node3 store verify >"$work/verify" 2>&1 || fail "node3: $(cat "$work/verify")"
forget node1

note "a full disk on one node is told, and the others have it"
forget node2
forget node3
on node2 sh -c 'mkdir -p .local/share/mlenv && mount -t tmpfs -o size=6m tmpfs .local/share/mlenv'
failing_with copy-failed on_head "$MLENV" --json copy large --hosts node2,node3
equal "states" "failed copied" "$(jq -r '[.nodes[].state] | join(" ")' "$work/out")"
equal "node2" no-space "$(of node2 error.code)"
on node2 umount .local/share/mlenv
there node3 store verify >"$work/verify" 2>&1 || fail "node3: $(cat "$work/verify")"

note "an interrupted copy goes on where it ended, and no manifest comes before its layers"
forget node2
shape head 20mbit
nothing_said
on_head "$MLENV" copy large --hosts node1,node2 </dev/null >"$work/out" 2>"$work/err" &
running=$!
some_pieces() { on node1 sh -c 'grep -l "1.*1" .local/share/mlenv/partial/*.have' | grep -q .; }
wait_until 30 some_pieces
on head pkill -9 -f -- 'copy large --hosts node1,node2'
wait "$running" 2>/dev/null || true
gone() { [ -z "$(on "$1" pgrep -f "[m]lenv-node")" ]; }
wait_until 20 gone node1
on node1 "$MLENV" images >"$work/images"
[ ! -s "$work/images" ] || fail "half an image has a name: $(cat "$work/images")"
shape head off
copied node1,node2
[ "$(sum had_bytes)" -gt 0 ] || fail "nothing was kept: $(cat "$work/out")"
equal "node1" "$size" "$(($(of node1 had_bytes) + $(of node1 from_here_bytes) + $(of node1 from_nodes_bytes)))"
there node1 store verify >"$work/verify" 2>&1 || fail "node1: $(cat "$work/verify")"

note "nodes that share a store have it brought once"
for node in node1 node2; do on "$node" mount --bind "$bed/shared-store" .local/share/mlenv; done
copied node1,node2
equal "bytes to both" "$size" "$(($(sum from_here_bytes) + $(sum from_nodes_bytes)))"
equal "states" "copied there" "$(jq -r '[.nodes[].state] | sort | join(" ")' "$work/out")"
for node in node1 node2; do on "$node" umount .local/share/mlenv; done

note "what cannot be"
failing_with usage on_head "$MLENV" --json copy large
failing_with usage on_head "$MLENV" --json copy large --engine slurm
failing_with copy-failed on_head "$MLENV" --json copy large --hosts nowhere,node1
equal "node1" there "$(of node1 state)"
: "$layers"

note "names: a history, and back"
image=$small
for node in node1 node2 node3; do forget "$node"; done
nodes_have_small
small_recipe "$work/other.yaml" six idna
other=$(build_digest "$work/other.yaml")
m() { on_head "$MLENV" "$@"; }
m tag "$image" prod
failing_with no-history m --json rollback prod
m tag "$other" prod
equal "history" "$other $image" "$(m --json images --history prod | jq -r '[.images[].digest] | join(" ")')"
m --json rollback prod | python3 "$root/tests/schema/check.py" >/dev/null
equal "back" "$image" "$(m --json inspect prod | jq -r .digest)"
m --json images --history prod | python3 "$root/tests/schema/check.py" >/dev/null
equal "and forth" "$other" "$(m --json rollback prod --to "${other:7:12}" | jq -r .is)"
equal "by number" "$image" "$(m --json rollback prod --to 1 | jq -r .is)"
failing_with no-history m --json rollback prod --to 7
m --json diff "$other" "$image" >"$work/out" || true
jq -e .schema "$work/out" >/dev/null || fail "no diff: $(cat "$work/out")"
rm "$MLENV_STORE/blobs/${other#sha256:}"
equal "what is there" "true false" "$(m --json images --history prod | jq -r '[.images[].whole] | map(tostring) | join(" ")')"
failing_with absent m --json rollback prod
build_digest "$work/other.yaml" >/dev/null
on_head "$MLENV" --json copy prod --hosts node1 </dev/null | python3 "$root/tests/schema/check.py" >/dev/null

note "a tag that moves while a job runs changes nothing for its restarts"
m tag "$image" prod
printf 'import os, time\nprint("has idna", os.path.exists("/opt/venv"), flush=True)\nopen("/shared/up", "w").close()\nwhile not os.path.exists("/shared/moved"): time.sleep(0.05)\nraise SystemExit(7 if os.environ["MLENV_RESTARTS"] == "0" else 0)\n' >rank.py
mkdir -p "$work/shared"
nothing_said
m run --engine ssh --hosts node1,node3 --nodes 2 --restarts 1 -v "$work/shared:/shared" prod -- python rank.py </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 60 test -e "$work/shared/up"
m tag "$other" prod
touch "$work/shared/moved"
wait "$running" || fail "the job: $(cat "$work/out" "$work/err")"
run=$(m --json runs show last)
equal "attempts" 2 "$(jq '.ranks.attempts | length' <<<"$run")"
equal "the job's image" "$image" "$(jq -r .start.image.digest <<<"$run")"
# Each node's own records: of both attempts.
for node in node1 node3; do
  there "$node" --json runs >"$work/runs"
  equal "$node" "$image" "$(on "$node" sh -c 'cat .local/share/mlenv/runs/*/run.json' | jq -rs '[.[].image.digest // .[].start.image.digest] | unique | join(" ")')"
done
note "and a new job takes the new one"
m run --engine ssh --hosts node1 --nodes 1 -v "$work/shared:/shared" prod -- python -c 'import idna; print("idna", idna.__version__)' </dev/null >"$work/out" 2>"$work/err" ||
  fail "the new job: $(cat "$work/out" "$work/err")"
grep -q '^idna ' "$work/out" || fail "not the new image: $(cat "$work/out")"
