#!/usr/bin/env bash
# Shared storage by name: nodes of their own, reached by ssh and by Slurm, prove before anything starts
# that it is there and is the same on all of them. A folder of a node's own at the same path, none,
# one that cannot be written are refused by name; so is a node that comes later. On nodes that this
# machine plays, too. Nothing stays behind in the storage.
# shellcheck disable=SC2016 # what stands in single quotes is for others
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3 mountpoint
need_node_agent

small_tree
nodes_up 3
nodes_have_small
with_ssh
with_slurm
# shellcheck source=tests/support/storage.sh
. "$root/tests/support/storage.sh"
for node in head node1 node2 node3; do mount_on "$node"; done
storage_is "{scratch: $place, home: {path: $place}}"
job() { on_head "$MLENV" --json run --no-project "$@"; }
by_ssh() { job --engine ssh --hosts node1,node2,node3 --nodes 3 "$@"; }
nothing_stays() { equal "what stays in the storage" "" "$(find "$work/shared" "$bed"/*/tmp -name '.mlenv*')"; }
last_record() {
  local id
  "$MLENV" --json runs | jq -r '.runs[].start | select(.launch != null) | .id' >"$work/ids"
  read -r id <"$work/ids"
  "$MLENV" --json runs show "$id" >"$work/record"
  python3 "$root/tests/schema/check.py" <"$work/record" >/dev/null
}
proofs() { jq -r '[.ranks.storage[] | "\(.node) \(.name) \(.path) \(.how)"] | sort | join(", ")' "$work/record"; }
touches='touch "$MLENV_CHECKPOINTS/rank$RANK"; ls -A /work | tr "\n" " "'

note "a dry run shows name and path"
ends_with 0 on_head "$MLENV" run --engine ssh --hosts node1,node2 --nodes 2 --checkpoints @scratch/bert --dry-run small -- true
grep -qF "mount     $place/bert at /checkpoints, storage scratch" "$work/out" || fail "$(cat "$work/out")"
ends_with 0 job --engine ssh --hosts node1 --nodes 1 -v @scratch/bert:/work:ro --dry-run small -- true
python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
equal "as JSON" "scratch" "$(jq -r '.job.mounts[0].storage' "$work/out")"

note "names that nobody knows"
failing_with unknown-storage by_ssh --checkpoints @scrach/bert small -- true
said 'there are `home`, `scratch`'
said 'did you mean `@scratch`?'
cat >job.yaml <<JOB
image: small
nodes: 2
mounts: ["@sratch/bert:/work"]
storage: {data: $place}
JOB
failing_with job-invalid on_head "$MLENV" --json run --engine ssh --hosts node1,node2 job.yaml
said 'job.yaml:3:10: no storage is called `sratch`: there are `data`, `home`, `scratch`; did you mean `@scratch`?'

note "shared storage is proven: what is written by a marker, what is read by its device"
cat >job.yaml <<JOB
image: small
nodes: 3
mounts: ["@data:/work:ro"]
checkpoints: "@scratch/bert:/checkpoints"
storage: {data: $place}
command: [sh, -c, '$touches']
JOB
ends_with 0 on_head "$MLENV" run --no-project --engine ssh --hosts node1,node2,node3 job.yaml
equal "ranks wrote" "rank0 rank1 rank2" "$(find "$work/shared/bert" -type f -printf '%f\n' | LC_ALL=C sort | xargs)"
equal "what ranks saw in it" "0: bert 1: bert 2: bert" "$(LC_ALL=C sort "$work/out" | xargs)"
last_record
equal "proofs" "node1 data $place device, node1 scratch $place/bert marker, node2 data $place device, node2 scratch $place/bert marker, node3 data $place device, node3 scratch $place/bert marker" "$(proofs)"
equal "mounts by name" "$place data" "$(jq -r '.start.mounts[] | "\(.source) \(.storage)"' "$work/record")"
"$MLENV" runs show "$(head -n 1 "$work/ids")" >"$work/out"
grep -qE "^storage +scratch at $place/bert \(.*\) on node1, node2, node3: the same: each saw" "$work/out" || fail "not shown: $(cat "$work/out")"
nothing_stays

note "a node with a folder of its own at that path, whichever it is"
on node2 umount "$place"
failing_with storage-differs by_ssh --checkpoints @scratch/bert small -- true
said "node \`node2\` cannot take part"
said "the storage \`scratch\` at \`$place/bert\` is not the same on node \`node2\`"
mount_on node2
on node1 umount "$place"
failing_with storage-differs by_ssh -v @scratch/bert:/work:ro small -- true
said "node \`node1\` cannot take part"
said "is not the same on node \`node1\`"
mount_on node1
nothing_stays
on node3 umount "$place"
on node3 mount -t tmpfs tmpfs "$place"
on node3 mkdir "$place/bert"
failing_with storage-differs by_ssh --checkpoints @scratch/bert small -- true
said 'it is tmpfs on `node3`'
on node3 umount "$place"

note "none there; none that can be written"
on node3 rmdir "$place/bert"
failing_with no-storage by_ssh --checkpoints @scratch/bert small -- true
said "the storage \`scratch\` is not at \`$place/bert\` on node \`node3\`"
on node3 mkdir "$place/bert"
mount_on node3
on node3 mount -o remount,bind,ro "$place"
failing_with no-storage by_ssh --checkpoints @scratch/bert small -- true
said "the storage \`scratch\` cannot be written at \`$place/bert\` on node \`node3\`"
ends_with 0 by_ssh -v @scratch/bert:/work:ro small -- ls /work
last_record
equal "read-only" "node1 scratch $place/bert device, node2 scratch $place/bert device, node3 scratch $place/bert device" "$(proofs)"
on node3 umount "$place"
mount_on node3

note "what was killed in the midst of it leaves nothing"
look_or_run() { # look_or_run SECONDS: whether a node looks at storage ($caught), or a rank sleeps so long already
  if testers; then
    caught=1
  else
    on node1 pgrep -f "^sleep $1\$"
  fi
}
# They look for a moment only, which a busy machine may miss: then once more.
caught=
for attempt in 1 2 3 4 5 6; do
  on_head "$MLENV" run --no-project --engine ssh --hosts node1,node2,node3 --nodes 3 --checkpoints @scratch/bert small -- \
    sleep "600.$attempt" >"$work/out" 2>&1 </dev/null &
  started+=($!)
  wait_until 60 look_or_run "600.$attempt"
  on head pkill -9 -x mlenv
  [ -z "$caught" ] || break
done
[ -n "$caught" ] || fail "nobody was seen to look at storage"
wait_until 20 no_testers
nothing_stays

note "a node that comes back without its storage is not taken in; with it it is"
rm -f "$work/shared/bert"/*
nothing_said
on_head "$MLENV" run --no-project --engine ssh --hosts node1,node2,node3 --nodes 2:3 --rescale-interval 1s --checkpoints @scratch/bert small -- \
  sh -c 'touch "$MLENV_CHECKPOINTS/$MLENV_RESTARTS.$WORLD_SIZE"; while [ ! -e "$MLENV_CHECKPOINTS/enough" ]; do sleep 0.2; done' \
  >"$work/out" 2>"$work/err" </dev/null &
running=$!
started+=("$running")
wait_until 60 test -e "$work/shared/bert/0.3"
power_cut node3
wait_until 40 grep -q 'going on with 2 of 3 nodes' "$work/err"
power_on node3
wait_until 60 grep -q "node node3 cannot take part: the storage .scratch. at .* is not the same on node .node3. as on" "$work/err"
mount_on node3
wait_until 90 grep -q 'node3 is ready: the ranks are ended, to begin again on 3 nodes' "$work/err"
touch "$work/shared/bert/enough"
status=0
wait "$running" || status=$?
equal "status ($(tail -n 20 "$work/err"))" 0 "$status"
nothing_stays

note "Slurm: the same proof, by the job itself"
rm -f "$work/shared/bert"/*
ends_with 0 job --engine slurm --nodes 3 --checkpoints @scratch/bert small -- sh -c 'touch "$MLENV_CHECKPOINTS/rank$RANK"'
equal "ranks wrote" "rank0 rank1 rank2" "$(find "$work/shared/bert" -type f -printf '%f\n' | LC_ALL=C sort | xargs)"
last_record
equal "proofs" "node1 scratch $place/bert marker, node2 scratch $place/bert marker, node3 scratch $place/bert marker" "$(proofs)"
on node2 umount "$place"
ends_with 125 job --engine slurm --nodes 3 --checkpoints @scratch/bert small -- true
grep -qF 'is not the same on node `node2`' "$work/out" "$work/err" || fail "not said: $(cat "$work/out" "$work/err")"
mount_on node2
nothing_stays

note "a script has the path"
ends_with 0 on_head "$MLENV" export slurm --no-project --nodes 2 --checkpoints @scratch/bert small -- true
grep -qF "$place/bert" "$work/out" || fail "no path: $(cat "$work/out")"
if grep -q '@scratch' "$work/out"; then fail "a name is in the script"; fi

note "one machine, and nodes that it plays"
export XDG_CONFIG_HOME=$work/own
mkdir -p "$XDG_CONFIG_HOME/mlenv"
echo "storage: {scratch: $work/shared, gone: $work/nowhere}" >"$XDG_CONFIG_HOME/mlenv/config.yaml"
ends_with 0 "$MLENV" run --no-project -v @scratch/bert:/work small -- touch /work/here
[ -e "$work/shared/bert/here" ] || fail "not written"
equal "in its record" scratch "$("$MLENV" --json runs show last | jq -r '.start.mounts[0].storage')"
failing_with no-storage "$MLENV" --json run --no-project -v @gone:/work small -- true
ends_with 0 "$MLENV" run --no-project --nodes 2 --checkpoints @scratch/bert small -- true
failing_with no-storage "$MLENV" --json run --no-project --nodes 2 --checkpoints @gone small -- true
grep -qE 'on node `n[12]`' "$work/err" || fail "no node is named: $(cat "$work/err")" # whichever is first
nothing_stays
