#!/usr/bin/env bash
# What goes wrong around a run: mlenv, its helper or the runtime killed, the machine's power cut, memory
# and disk at an end, a mount whose source goes. The record says what happened; no process, mount,
# control group or file stays.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc crun jq mkfs.ext4
need_root

small_tree
mkfifo "$work/started"

run() { as_root env MLENV_STORE="$MLENV_STORE" XDG_CACHE_HOME="$XDG_CACHE_HOME" "$MLENV" run --no-project "$@"; }
# record FILTER: of the newest run
record() { "$MLENV" --json runs show last | jq -r "$1"; }
is_lost() { [ "$(record .state)" = lost ]; }
# Opened for both, or the opening itself would wait for ever for a run that never began.
await_start() { read -rt 60 <>"$work/started" || fail "the run does not begin"; }
# begin ARGUMENT…: a run in the background that says when it runs, and then sleeps; sets $job, $mlenv and $helper
begin() {
  run -v "$work:/data" "$@" -- sh -c 'cat /proc/self/cgroup >/data/groups; echo >/data/started; exec sleep 61617' &
  job=$!
  mlenv=$job
  await_start
  # `sudo` and `env` may stand before it.
  while ! grep -q '^mlenv' "/proc/$mlenv/comm"; do mlenv=$(pgrep -P "$mlenv" | head -n 1); done
  helper=$(pgrep -P "$mlenv" | head -n 1)
}
# groups: folders of those that the job of begin was in
groups() {
  local name
  grep -oE 'mlenv-[a-z]*-?[0-9a-f]{8,16}' "$work/groups" | LC_ALL=C sort -u | while read -r name; do
    find /sys/fs/cgroup -depth -type d -name "$name" 2>/dev/null
  done
}
no_groups() { [ -z "$(groups)" ]; }
no_process() { ! pgrep -f '^sleep 61617$' >/dev/null; }
nothing_left() {
  wait_until 30 no_process
  wait_until 30 no_groups
  ! grep -q " $MLENV_STORE" /proc/self/mountinfo || fail "a mount is left"
}

for runtime in runc crun; do
  note "$runtime: the helper around the container is killed"
  begin --runtime "$runtime" small
  as_root kill -KILL "$helper"
  status=0
  wait "$job" || status=$?
  equal "status" 137 "$status"
  nothing_left
  equal "record" "killed 9" "$(record '"\(.state) \(.end.signal)"')"
  equal "scratch folders" "" "$(ls "$MLENV_STORE/tmp")"

  note "$runtime: mlenv is killed"
  begin --runtime "$runtime" small
  as_root kill -KILL "$mlenv"
  wait "$job" || true
  nothing_left
  wait_until 30 is_lost
  equal "the next one runs" ok "$(run --runtime "$runtime" small -- echo ok)"
  equal "scratch folders" "" "$(ls "$MLENV_STORE/tmp")"
done

note "with limits"
begin --memory 64m small
[ -n "$(groups)" ] || fail "no groups to look for: $(cat "$work/groups")"
as_root kill -KILL "$helper"
wait "$job" || true
nothing_left

note "the runtime is killed while it starts the container"
cat >"$work/dying" <<'RUNTIME'
#!/bin/sh
kill -KILL $$
RUNTIME
chmod +x "$work/dying"
failing_with run-failed "$MLENV" --json run --no-project --runtime "$work/dying" small -- true
equal "record" "refused run-failed" "$(record '"\(.state) \(.end.failure.code)"')"

note "the power is cut: everything ends at once, and nobody says a word"
cat >"$work/node.sh" <<'NODE'
"$MLENV" run --no-project -v "$1:/data" small -- sh -c 'cat /proc/self/cgroup >/data/groups; echo >/data/started; exec sleep 61617' &
wait
NODE
as_root env MLENV="$MLENV" MLENV_STORE="$MLENV_STORE" XDG_CACHE_HOME="$XDG_CACHE_HOME" \
  unshare --pid --fork --kill-child --mount-proc bash "$work/node.sh" "$work" 2>/dev/null &
job=$!
await_start
# The first of that machine; with it the kernel ends all others.
as_root kill -KILL "$(pgrep -f "^bash $work/node.sh")"
wait "$job" || true
wait_until 30 no_process
# A real one would take them along.
groups | while read -r folder; do as_root rmdir "$folder"; done
wait_until 30 is_lost
equal "the next one runs" ok "$(run small -- echo ok)"
equal "scratch folders" "" "$(ls "$MLENV_STORE/tmp")"
verify_store

note "memory is at an end, by limits around mlenv"
memory=/sys/fs/cgroup/memory
if [ -e "$memory/memory.limit_in_bytes" ]; then
  memory=$memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/mlenv-test-$$
  as_root mkdir "$memory"
  echo 100000000 | as_root tee "$memory/memory.limit_in_bytes" >/dev/null
  status=0
  # shellcheck disable=SC2016  # for the shell inside
  as_root sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$memory" \
    env MLENV_STORE="$MLENV_STORE" "$MLENV" run --no-project small -- python3 -c 'b = bytearray(300 << 20)' 2>"$work/err" || status=$?
  # What reads the facts beside the run may still be in it.
  wait_until 30 as_root rmdir "$memory"
  equal "status" 137 "$status"
  grep -q 'the kernel killed a process of this run for want of memory' "$work/err" || fail "not told: $(cat "$work/err")"
  equal "record" "killed true" "$(record '"\(.state) \(.end.out_of_memory)"')"
fi

note "the disk is full below the writable layer"
truncate -s 400M "$work/disk"
mkfs.ext4 -q "$work/disk"
mkdir "$work/full"
as_root mount -o loop "$work/disk" "$work/full"
as_root cp -a "$MLENV_STORE" "$work/full/store"
(
  export MLENV_STORE=$work/full/store
  status=0
  # The job learns it as on any disk; what it wrote is thrown away afterwards.
  run small -- sh -c 'dd if=/dev/zero of=/big bs=1M 2>/dev/null' || status=$?
  equal "status" 1 "$status"
  equal "record" "failed 1" "$(record '"\(.state) \(.end.exit_code)"')"
  equal "the next one runs" ok "$(run small -- echo ok)"
  equal "scratch folders" "" "$(ls "$MLENV_STORE/tmp")"
)
as_root umount "$work/full"

note "a mount's source goes while it is used"
mkdir "$work/volume"
as_root mount -t tmpfs volume "$work/volume"
echo content >"$work/volume/file"
run -v "$work/volume:/volume" -v "$work:/data" small -- sh -c \
  'echo >/data/started; while [ -e /data/mounted ]; do sleep 0.05; done; cat /volume/file' >"$work/out" &
job=$!
touch "$work/mounted"
await_start
as_root umount -l "$work/volume"
rm "$work/mounted"
status=0
wait "$job" || status=$?
equal "the run keeps what it has" "0 content" "$status $(cat "$work/out")"
rmdir "$work/volume"
failing_with bad-mount "$MLENV" --json run --no-project -v "$work/volume:/volume" small -- true
mkdir "$work/volume"
touch "$work/volume/file" "$work/mounted"
run -v "$work/volume:/volume" -v "$work:/data" small -- sh -c \
  'echo >/data/started; while [ -e /data/mounted ]; do sleep 0.05; done; ls /volume' >"$work/out" &
job=$!
await_start
rm -r "$work/volume" "$work/mounted"
status=0
wait "$job" || status=$?
equal "a folder that was removed is empty" "0 " "$status $(cat "$work/out")"
