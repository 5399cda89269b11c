#!/usr/bin/env bash
# A disk that stalls for longer than a node or a controller may be silent ends no job: neither that of
# whoever drives it, where what ranks write is kept, nor one of a node that takes an image. All that
# was written meanwhile is there in the end, in its order.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
# shellcheck source=tests/support/census.sh
. "$root/tests/support/census.sh"
# shellcheck source=tests/support/job_faults.sh
. "$root/tests/support/job_faults.sh"
need_root
need fsfreeze mkfs.ext4
[ "$(id -u)" -eq 0 ] || skip "file systems are mounted by root"

# disk FOLDER SIZE: a file system of its own there.
disk() {
  mkdir -p "$1"
  truncate -s "$2" "$1.disk"
  mkfs.ext4 -q -F "$1.disk"
  mount -o loop "$1.disk" "$1"
  rmdir "$1/lost+found"
}
# stall FOLDER: whoever writes there waits for nine seconds from now on. It goes on by itself, also
# where the test has failed and nothing is mounted there any more.
stall() {
  setsid bash -c 'exec 9<"$1"; fsfreeze -f "$1"; touch "$2"; sleep 9; fsfreeze -u /proc/self/fd/9' \
    stall "$1" "$work/stalls" </dev/null &
  stalling=$!
  wait_until 10 test -e "$work/stalls"
  rm "$work/stalls"
}
disk "$MLENV_STORE/runs" 64M
disk "$work/bed/node2/root/.local" 1G
faults_bed
with_ssh
cd "$work/project"
engine ssh
job small -- true </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/out" "$work/err")"
note_census

note "the one on which the controller keeps what ranks write"
writes='touch /shared/up-$RANK; i=0
until [ -e /shared/enough ]; do i=$((i + 1)); echo "line $i"; sleep 0.02; done
echo "in all $i"'
begun --name slow --stall-timeout 5s small -- sh -c "$writes"
stall "$MLENV_STORE/runs"
wait "$stalling"
touch "$work/shared/enough"
has_ended '' 0
for rank in 0 1 2; do
  on_head "$MLENV" logs slow --rank "$rank" >"$work/log"
  count=$(sed -n 's/^in all //p' "$work/log")
  [ "${count:-0}" -gt 100 ] || fail "rank $rank has written ${count:-no} lines"
  { seq -f 'line %.0f' "$count"; echo "in all $count"; } | diff - "$work/log" >"$work/differs" ||
    fail "rank $rank: not all lines, or in another order: $(head "$work/differs")"
done

note "a node's, while the image comes there"
rm -r "$work/bed/node2/root/.local/share"
shape node2 100mbit
job small -- true </dev/null >"$work/out" 2>"$work/err" &
running=$!
comes() { [ "$(du -sk "$work/bed/node2/root/.local" | cut -f1)" -gt 8192 ]; }
wait_until 60 comes
stall "$work/bed/node2/root/.local"
wait "$stalling"
shape node2 off
has_ended '' 0
if grep 'lost' "$work/err"; then fail "a node is taken for lost"; fi
