#!/usr/bin/env bash
# Shared storage by name that hangs on a node, is full, or may not be written: the job says on which
# node and why, within its time, goes on with the nodes that it may go on with, and leaves nothing
# there. A file system that hangs is one whose server (a process of the test) answers nothing. With
# MLENV_TEST_LONG=1 its minute is waited for, after which the job goes on without the node (a node that is refused, and a
# job that goes on with the others, are in jobs-storage.sh; how long is waited, in tests/unit/runner/job/patience_test.cpp).
# shellcheck disable=SC2016 # what stands in single quotes is for others
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3
need_node_agent
[ -e /dev/fuse ] || skip "/dev/fuse is not here"

small_tree
nodes_up 2
nodes_have_small
with_ssh
# shellcheck source=tests/support/storage.sh
. "$root/tests/support/storage.sh"
for node in node1 node2; do mount_on "$node"; done
storage_is "{scratch: $place}"
job() { on_head "$MLENV" --json run --no-project --engine ssh --hosts node1,node2 "$@"; }
nothing_stays() { equal "what stays in the storage" "" "$(find "$work/shared" "$bed"/*/tmp -xdev -name '.mlenv*')"; }

note "one that is full, one that may not be written"
on node2 umount "$place"
on node2 mount -t tmpfs -o nr_inodes=2 tmpfs "$place"
on node2 mkdir "$place/bert"
failing_with no-storage job --nodes 2 --checkpoints @scratch/bert small -- true
said "the storage \`scratch\` is full at \`$place/bert\` on node \`node2\`"
said 'make room there'
on node2 umount "$place"
mount_on node2
on node2 umount "$place"
on node2 mount -t sysfs sysfs "$place" # nobody may make files in it
mkdir "$work/shared/kernel"
failing_with no-storage job --nodes 2 -v @scratch/kernel:/work small -- true
said "the storage \`scratch\` cannot be written at \`$place/kernel\` on node \`node2\`"
said 'as in `@scratch/FOLDER`'
on node2 umount "$place"
mount_on node2
nothing_stays

# hangs: nobody answers what is asked of the storage on node2.
hangs() {
  on node2 umount "$place"
  on node2 sh -c 'exec python3 - "$0" "$1"' "$place" "$bed/node2/hung" >"$work/hung.log" 2>&1 <<'PYTHON' &
import ctypes, os, sys, time
place, told = sys.argv[1:]
device = os.open("/dev/fuse", os.O_RDWR)
words = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"hung", place.encode(), b"fuse", 0, words) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
open(told, "w").close()
time.sleep(600)
PYTHON
  started+=($!)
  wait_until 20 test -e "$bed/node2/hung"
}
note "one that hangs: Ctrl-C is heard at once"
hangs
nothing_said
on_head "$MLENV" run --no-project --engine ssh --hosts node1,node2 --nodes 2 --checkpoints @scratch/bert small -- true >"$work/out" 2>"$work/err" </dev/null &
running=$!
started+=("$running")
wait_until 30 testers
wait_until 40 grep -q 'node node2 has waited .* to prove the storage .scratch. at' "$work/err"
at=$SECONDS
on head pkill -INT -x mlenv
status=0
wait "$running" || status=$?
equal status 130 "$status"
[ $((SECONDS - at)) -lt 20 ] || fail "Ctrl-C took $((SECONDS - at)) seconds"
wait_until 20 no_testers
nothing_stays

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "the job goes on with the other node, if it may; after a minute that one is refused"
nothing_said
on_head "$MLENV" run --no-project --engine ssh --hosts node1,node2 --nodes 1:2 --checkpoints @scratch/bert small -- \
  sh -c 'touch "$MLENV_CHECKPOINTS/$WORLD_SIZE"; while [ ! -e "$MLENV_CHECKPOINTS/enough" ]; do sleep 0.2; done' \
  >"$work/out" 2>"$work/err" </dev/null &
running=$!
started+=("$running")
wait_until 50 test -e "$work/shared/bert/1"
wait_until 90 grep -qF "node node2 cannot take part: the storage \`scratch\` cannot be seen at \`$place/bert\` on node \`node2\`" "$work/err"
touch "$work/shared/bert/enough"
status=0
wait "$running" || status=$?
equal "status ($(tail -n 20 "$work/err"))" 0 "$status"
failing_with no-storage job --nodes 2 --checkpoints @scratch/bert small -- true
said "its file system does not answer"
wait_until 20 no_testers
nothing_stays
