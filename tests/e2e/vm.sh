#!/usr/bin/env bash
# `mlenv run --runtime vm`: status, streams, folders, users, signals and record of a run in a virtual
# machine, as root and as an ordinary user; a KVM that hangs costs seconds, and a guest that hangs is ended
# like any other; nothing is left behind. With --long: repeated, short of memory and of disk, a kernel that fails,
# a comparison, a KVM that worked once.
# first
# packages: qemu-system-x86
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need qemu-system-x86_64 e2fsck jq
need_root

base_tree
make_user
mkdir -p "$work/project"
chmod a+rwX "$work/project"

vm() { # vm ARGUMENT…: as whoever runs this test
  (cd "$work/project" && "$MLENV" run --runtime vm --memory 512m --cpus 2 "$@")
}
status_of() {
  local status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  if [ "$status" = 125 ]; then cat "$work/err" >&2; fi
  echo "$status"
}
nothing_left() { # no process, and no socket but the one in the record's folder
  local pid
  ! pgrep -f "[n]ode-name=disk.*$work" >/dev/null || return 1
  for pid in $(pgrep -x mlenv-vm); do
    ! grep -qzF "=$work/" "/proc/$pid/environ" 2>/dev/null || return 1
  done
  [ -z "$(find "$MLENV_STORE" "$XDG_CACHE_HOME" -type s ! -path "$MLENV_STORE/runs/*")" ]
}
no_scratch() {
  "$MLENV" images # which takes away what a killed run left in there, if nobody holds it any more
  [ -z "$(find "$MLENV_STORE/tmp" -mindepth 1)" ]
}
leaves_nothing() {
  wait_until 20 nothing_left
  wait_until 20 no_scratch
}
gone() { ! kill -0 "$1" 2>/dev/null; }

note "what a virtual machine does not have is refused"
failing_with vm-option vm --json --network host base -- true
failing_with vm-option vm --json --gpus all base -- true
failing_with vm-option vm --json --pids-limit 5 base -- true
failing_with vm-option vm --json --memory-swap 1g base -- true
failing_with vm-option vm --json --memory-swap -1 base -- true
failing_with no-limit "$MLENV" --json run --runtime vm --cpus 4096 base -- true
failing_with vm-option "$MLENV" --json run --runtime vm --cpus 1.5 base -- true
failing_with no-vm env PATH=/nowhere "$MLENV" --json run --runtime vm base -- true

note "the first run: kernel and disk; streams, environment, the network's absence, a signal"
# shellcheck disable=SC2016  # for the shell inside
equal "ended by a signal" 143 "$(echo hello | status_of vm -e A=1 -w /opt --network none --outputs /workspace/kernel base -- \
  sh -c 'echo $A $(pwd) $(id -u) $(cat) $(ls /sys/class/net); echo problem >&2; uname -r >/workspace/kernel
    head -c 3000000 /dev/zero; kill -TERM $$')"
equal "output" "1 /opt 0 hello lo" "$(head -n 1 "$work/out")"
equal "many bytes" 3000018 "$(wc -c <"$work/out")"
disk=$(find "$MLENV_STORE/vm/disks" -name '*.ext4')
e2fsck -fn "$disk" >"$work/check" 2>&1 || fail "the disk has mistakes: $(cat "$work/check")"
grep -q 'name = "linux-image-6' "$MLENV_STORE"/vm/*.lock || fail "no lock of the kernel"
grep -q '^problem$' "$work/err" || fail "standard error: $(cat "$work/err")"
equal "owner of what it wrote" "$(id -u)" "$(stat -c %u "$work/project/kernel")"
[ "$(cat "$work/project/kernel")" != "$(uname -r)" ] || fail "it has this machine's kernel"
"$MLENV" runs show last --json >"$work/record"
jq -e '.vm.accelerator == "tcg" or .vm.accelerator == "kvm"' "$work/record" >/dev/null ||
  fail "record: $(jq -c .vm "$work/record")"
equal "kernel in the record" "$(cat "$work/project/kernel")" "$(jq -r .vm.kernel "$work/record")"
jq -e '.vm.cpus == 2 and .vm.memory_bytes == 536870912' "$work/record" >/dev/null || fail "$(jq -c .vm "$work/record")"

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "it is repeated, in a virtual machine, over layers that are thrown away"
  touch -d @1000000000 "$work/project/kernel"
  equal "reproduce" 0 "$(cd "$work/project" && status_of "$MLENV" --json reproduce --with-present-code last)"
  equal "what it gave" same "$(jq -r .result "$work/out")"
  equal "the person's file" 1000000000 "$(stat -c %Y "$work/project/kernel")"
  equal "its kernel" "$(cat "$work/project/kernel")" "$("$MLENV" runs show last --json | jq -r .vm.kernel)"
fi

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "more than its memory is written; then the memory is too little"
  cat >"$work/project/greedy.py" <<'PYTHON'
block = bytes(1 << 20)
with open("/large", "wb") as file:
    for _ in range(300):
        file.write(block)
print(open("/sys/devices/system/clocksource/clocksource0/current_clocksource").read().strip(), flush=True)
all = []
while True:
    all.append(bytearray(1 << 20))
PYTHON
  equal "killed" 137 "$(cd "$work/project" && status_of "$MLENV" run --runtime vm --memory 160m --cpus 1 --disk 1g base -- \
    sh -c 'df -B1 --output=size / | tail -n 1; exec python3 greedy.py')"
  room=$(head -n 1 "$work/out")
  if [ "$room" -lt 900000000 ] || [ "$room" -gt 1073741824 ]; then fail "its size: $(cat "$work/out")"; fi
  "$MLENV" runs show last --json >"$work/record"
  equal "the record" "killed true 1073741824" "$(jq -r '"\(.state) \(.end.out_of_memory) \(.vm.disk_bytes)"' "$work/record")"
  # An emulated counter tells a wrong time on a busy machine.
  clock=$(sed -n 2p "$work/out")
  [ "$(jq -r .vm.accelerator "$work/record")" = kvm ] || [ "$clock" != tsc ] || fail "its clock is $clock"
  equal "scratch folders" "" "$(find "$MLENV_STORE/tmp" -mindepth 1 -maxdepth 1)"

  note "this machine's disk is full"
  as_root mount -t tmpfs -o size=64m tmpfs "$MLENV_STORE/tmp"
  failing_with vm-disk "$MLENV" --json run --runtime vm --memory 256m --cpus 1 --no-project base -- \
    sh -c 'head -c 100000000 /dev/zero >/large; sync; exit 0'
  as_root umount -l "$MLENV_STORE/tmp"
  verify_store
fi

note "its console is flooded; QEMU is killed"
failing_with usage "$MLENV" --json run --disk 1g base -- true
failing_with vm-option vm --json --disk 1m base -- true
failing_with vm-option vm --json --disk 4t base -- true
nothing_said
(cd "$work/project" && exec "$MLENV" --json run --runtime vm --memory 512m --cpus 1 base -- \
  sh -c 'mknod /dev/serial c 4 64; head -c 800000 /dev/zero | tr "\0" x >/dev/serial; echo ready; sleep 600') \
  >"$work/out" 2>"$work/err" &
pid=$!
started+=("$pid")
wait_until 60 grep -q ready "$work/out"
failing_with run-unseen "$MLENV" --json watch last --for 1s
qemu=$(pgrep -f "[n]ode-name=disk.*$work/store")
console=$(as_root find "/proc/$qemu/fd" -lname '*/said/console')
size=$(as_root stat -L -c %s "$console")
if [ "$size" -lt 200000 ] || [ "$size" -gt 524288 ]; then fail "$size bytes of its console are kept"; fi
kill -KILL "$qemu"
status=0
wait "$pid" || status=$?
equal "status" 125 "$status"
grep -q '"code":"vm-ended"' "$work/err" || fail "$(cat "$work/err")"
grep -q 'QEMU was ended by SIGKILL' "$work/err" || fail "$(cat "$work/err")"
equal "the record" "vm-ended" "$("$MLENV" runs show last --json | jq -r .end.failure.code)"

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "its kernel fails"
  failing_with vm-ended vm --json --no-project base -- sh -c 'echo c >/proc/sysrq-trigger; sleep 60'
  grep -q 'Kernel panic' "$work/err" || fail "$(cat "$work/err")"
fi

note "an ordinary user, who types Ctrl-C"
as_root mkdir "$user_home/store" "$user_home/store/trees"
find "$MLENV_STORE" -mindepth 1 -maxdepth 1 ! -name trees -exec "${sudo[@]}" cp -a --reflink=auto -t "$user_home/store" {} +
as_root chown -R "$user_id:$user_id" "$user_home/store"
as_root chown -R "$user_id:$user_id" "$work/project"
nothing_said
(cd "$work/project" && as_user MLENV_STORE="$user_home/store" env --default-signal=INT mlenv run --runtime vm --memory 512m \
  --cpus 2 --name "theirs-$$" base -- sh -c 'trap "exit 9" INT; id -u; echo x >mine; echo ready; while :; do sleep 1; done') \
  >"$work/out" 2>"$work/err" &
pid=$!
started+=("$pid")
wait_until 60 grep -q ready "$work/out"
as_root kill -INT "$(pgrep -o -x -u "$user_id" -f "mlenv run .* --name theirs-$$ .*")"
status=0
wait "$pid" || status=$?
equal "the command's own answer to it" 9 "$status"
equal "user inside" 0 "$(head -n 1 "$work/out")"
equal "owner of their file" "$user_id" "$(stat -c %u "$work/project/mine")"
leaves_nothing

note "Ctrl-C while it starts"
nothing_said
env --default-signal=INT "$MLENV" run --runtime vm --memory 512m --cpus 1 --no-project base -- true >"$work/out" 2>"$work/err" &
pid=$!
started+=("$pid")
wait_until 60 pgrep -f "[n]ode-name=disk.*$work/store"
kill -INT "$pid"
status=0
wait "$pid" || status=$?
equal "its status" 130 "$status"
leaves_nothing

note "kill -9"
nothing_said
(cd "$work/project" && exec "$MLENV" run --runtime vm --memory 512m --cpus 2 base -- \
  sh -c 'echo ready; sleep 600') >"$work/out" 2>"$work/err" &
pid=$!
started+=("$pid")
wait_until 60 grep -q ready "$work/out"
kill -KILL "$pid"
wait "$pid" || true
leaves_nothing

note "a guest that says hello, and no more"
mkdir "$work/silent" "$work/stub"
cat >"$work/silent/qemu-system-x86_64" <<STUB
#!$(command -v python3)
# Frames as runner/vm/frames.hpp has them: the keeper's hello. What a guest that hangs later on does to a run,
# not when it does.
import os, struct, time
hello = struct.pack("=II", 0, 8)
os.write(3, struct.pack("=IIHBB", len(hello), 0, 0, 2, 0) + hello)
open("$work/said", "w").close()
time.sleep(1000)
STUB
chmod 755 "$work/silent/qemu-system-x86_64"
for signal in INT KILL; do
  rm -f "$work/said"
  nothing_said
  PATH=$work/silent:$PATH env --default-signal=INT "$MLENV" run --runtime vm --memory 512m --cpus 1 --no-project base -- true \
    >"$work/out" 2>"$work/err" &
  pid=$!
  started+=("$pid")
  wait_until 60 test -e "$work/said"
  kill "-$signal" "$pid"
  wait_until 20 gone "$pid"
  status=0
  wait "$pid" || status=$?
  [ "$signal" = KILL ] || equal "its status" 130 "$status"
  leaves_nothing
done

note "a QEMU that hangs with KVM, and one that fails"
qemu=$(command -v qemu-system-x86_64)
cat >"$work/stub/qemu-system-x86_64" <<STUB
#!/bin/sh
[ ! -e "$work/fails" ] || { echo planted >&2; exit 1; }
case "\$*" in *"-accel kvm"*) kvm=1 ;; *) kvm=0 ;; esac
echo "\$kvm \$(date +%s)" >>"$work/tries"
[ "\$kvm" = 0 ] || [ ! -e "$work/kvm-fails" ] || { echo planted >&2; exit 1; }
[ "\$kvm" = 0 ] || exec sleep 1000
exec $qemu "\$@"
STUB
chmod 755 "$work/stub/qemu-system-x86_64"
# with_kvm COMMAND…: with a /dev/kvm that can be opened. The stub asks no more of it: where this machine has
# none, another device stands in for it, in a /dev of the command's own.
with_kvm() {
  if [ -w /dev/kvm ]; then
    "$@"
    return
  fi
  mkdir -p "$work/dev"
  # shellcheck disable=SC2016  # for the shell inside
  unshare --mount bash -euc 'mount -t tmpfs dev "$1" && mkdir "$1/upper" "$1/work"
    mount -t overlay -o "lowerdir=/dev,upperdir=$1/upper,workdir=$1/work" dev /dev
    rm -f /dev/kvm; ln -s null /dev/kvm; shift; exec "$@"' sh "$work/dev" "$@"
}
tries() { grep -c "^$1" "$work/tries" || true; } # tries 1: with KVM, 0: without
stubbed() { (cd "$work/project" && PATH=$work/stub:$PATH with_kvm "$MLENV" "$@"); }
if with_kvm test -w /dev/kvm; then
  equal "emulated after all" 0 "$(status_of stubbed run --runtime vm --memory 512m --no-project base -- true)"
  grep -q 'emulated' "$work/err" || fail "nothing said of emulation: $(cat "$work/err")"
  # Seconds, and not the run: eight as documented, and far more than any noise.
  took=$(awk '$1 == 1 { began = $2 } $1 == 0 { print $2 - began; exit }' "$work/tries")
  [ "$took" -lt 30 ] || fail "KVM that hangs cost $took s"
  # shellcheck disable=SC2016  # the backquotes are the message's own
  remembered=$(sed -nE 's/.*not tried again for (59|60) min, or until `(.*)` is removed.*/\2/p' "$work/err")
  [ -f "$remembered" ] || fail "where it is remembered is not said: $(cat "$work/err")"
  equal "tries of KVM, in all" 1 "$(tries 1)"

  if [ "$MLENV_TEST_LONG" = 1 ]; then
    equal "compare" 0 "$(status_of stubbed compare base --sides builtin,vm --rows start.user --budget 15s --json-file "$work/sides.json")"
    "$root/tests/schema/check.py" <"$work/sides.json"
    equal "what it compared with" tcg "$(jq -r '.sessions[0].machines[0].accelerator' "$work/sides.json")"
    grep -q 'virtual machine: .*, tcg, ' "$work/out" || fail "it does not say how it ran: $(cat "$work/out" "$work/err")"
    grep -q '^not equal: virtual machine had .* of memory' "$work/out" || fail "unequal memory is not told: $(cat "$work/out")"
    # Where a busy machine left time for a start.
    jq -e '.rows[] | select(.id == "start.user") | .sides[] | select(.side == "vm") | .summary == null or .relation != null' \
      "$work/sides.json" >/dev/null || fail "not held against the container: $(cat "$work/out")"

    note "a KVM that worked, and does not any more"
    echo works >"$remembered"
    touch "$work/kvm-fails"
    equal "emulated after all" 0 "$(status_of stubbed run --runtime vm --memory 512m --no-project base -- true)"
    grep -q 'with KVM planted' "$work/err" || fail "not why: $(cat "$work/err")"
    equal "tries of KVM, in all" 2 "$(tries 1)"
    grep -q '^failed 1 ' "$remembered" || fail "it is not remembered: $(cat "$remembered")"
  fi
else
  note "not tried: this machine has no /dev/kvm, and nothing can stand in for it"
fi
touch "$work/fails"
XDG_CACHE_HOME=$work/fresh PATH=$work/stub:$PATH failing_with vm-failed vm --json --no-project base -- true
[ -z "$(find "$work/fresh" -path '*/kvm/*')" ] || fail "a QEMU that works in no way is remembered as KVM's fault"
PATH=$work/stub:$PATH failing_with vm-failed vm --json --no-project base -- true
grep -q planted "$work/err" || fail "QEMU's own words are missing: $(cat "$work/err")"
leaves_nothing
verify_store
