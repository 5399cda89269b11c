#!/usr/bin/env bash
# What `mlenv compare` says of a container and of a virtual machine is what the same tools say in a
# container and in a virtual machine that this script makes by itself, of the same files: a bundle
# unpacked by umoci and started by runc; a disk by mke2fs, an initial RAM disk by cpio, the kernel's
# package unpacked by dpkg-deb, started by QEMU. With --long; without it the judge alone is tested.
# packages: qemu-system-x86
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq

# Both are measured in turn on one machine that others may keep busy. Two medians of one quantity
# differ by chance by less than the intervals that hold them (order statistics, as compare has them);
# on top come a tenth for what the two are known to differ in (where memory lies, which modules are
# loaded), and no more: a factor of 1.5, planted below, has to be seen.
# shellcheck disable=SC2016  # jq's own variables
judge='
  def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
  # The smallest and the largest but those that 95 % allow to leave out: one of eight, two of eleven.
  def around: sort | (if length < 8 then 0 elif length < 11 then 1 else 2 end) as $out | {low: .[$out], high: .[length - 1 - $out]};
  {ours: ($ours | around + {median: median}), hand: ($hand | around + {median: median})} |
  .ratio = .ours.median / .hand.median |
  .agree = ((.ours.low <= .hand.high * 1.1 and .hand.low <= .ours.high * 1.1) and .ratio < 1.4 and .ratio > 1 / 1.4)'
verdict() { jq -cn --argjson ours "$1" --argjson hand "$2" "$judge"; }
agree() { [ "$(verdict "$1" "$2" | jq .agree)" = true ]; }

note "the judge"
agree '[10, 11, 10.5, 9.8, 10.2]' '[10.4, 9.9, 10.1, 10.3, 11.2]' || fail "the same is judged to be another"
! agree '[10, 11, 10.5, 9.8, 10.2]' '[15, 16.5, 15.8, 14.7, 15.3]' || fail "a factor is not seen"
! agree '[10, 11, 10.5, 9.8, 30]' '[15, 16.5, 15.8, 14.7, 15.3]' || fail "one wild sample makes all the same"
[ "$MLENV_TEST_LONG" = 1 ] || exit 0

need qemu-system-x86_64 runc umoci mke2fs cpio busybox depmod dpkg-deb
need_root
rounds=${MLENV_TEST_ROUNDS:-8}
memory=512
base_store
printf 'name: tools\nbase: debian:bookworm\npython: "3.11"\nsystem: [sysbench, fio]\n' >"$work/tools.yaml"
build_digest "$work/tools.yaml" >/dev/null
cd "$work"
compare() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" -q compare "$@"; }

note "a container by hand"
"$MLENV" -q save tools oci:layout
as_root umoci unpack --image layout:latest bundle >/dev/null
as_root chmod 755 bundle
mkdir folder
# The words of compare's table, and what the tools print.
cat >measure <<'MEASURE'
#!/bin/sh
cd /folder
number() { sed -nE "s/.*$1 *\(?([0-9.]+).*/\1/p"; }
echo cpu.integer "$(sysbench cpu --threads=1 --time=1 run | number 'events per second:')"
echo cpu.all "$(sysbench cpu --threads="$(nproc)" --time=1 run | number 'events per second:')"
echo memory.bandwidth "$(sysbench memory --memory-block-size=64M --memory-total-size=1T --time=1 run | number 'MiB transferred')"
fio --name=compare --filename=fio.data --size=64M --runtime=1 --time_based --ioengine=psync --rw=write --bs=4k --fdatasync=1 --output-format=json >/tmp/fio
echo disk.fsync "$(python3 -c 'import json; print(json.load(open("/tmp/fio"))["jobs"][0]["sync"]["lat_ns"]["mean"])')"
MEASURE
chmod 755 measure
jq --arg folder "$work/folder" --arg measure "$work/measure" '.process.terminal = false | .process.args = ["/measure"] |
  del(.linux.resources) | .root.readonly = false |
  .mounts += [{destination: "/folder", source: $folder, type: "bind", options: ["bind", "rw"]},
              {destination: "/measure", source: $measure, type: "bind", options: ["bind", "ro"]},
              {destination: "/tmp", source: "tmpfs", type: "tmpfs"}]' bundle/config.json >config.tools
jq '.process.args = ["sh", "-c", "echo"]' config.tools >config.start
# As compare starts what it measures: in a session of its own, which the scheduler gives its own share
# of a busy machine (sched(7), autogroup).
in_container() { # in_container CONFIG
  as_root cp "$1" bundle/config.json
  as_root setsid --wait runc run --bundle bundle "by-hand-$$"
}

note "a virtual machine by hand"
mlenv_run() { "$MLENV" -q run --runtime "$@"; }
mlenv_run vm --memory "${memory}m" tools -- true
# The very package that mlenv's machine has its kernel from, by name; its bytes lie in the cache.
sum=$(sed -nE 's/.*name = "linux-image-.*sha256 = "([0-9a-f]+)".*/\1/p' "$MLENV_STORE"/vm/bookworm.lock)
deb=$XDG_CACHE_HOME/mlenv/debs/$sum
[ -s "$deb" ] || fail "the kernel's package is not in the cache"
equal "the kernel's package" "$sum" "$(sha256sum "$deb" | cut -d' ' -f1)"
mkdir kernel initial initial/bin
dpkg-deb -x "$deb" kernel
version=$(ls kernel/lib/modules)
cp "$(command -v busybox)" initial/bin/busybox
tree=lib/modules/$version
mkdir -p "initial/$tree"
cp "kernel/$tree"/modules.{order,builtin,builtin.modinfo} "initial/$tree"
(cd "kernel/$tree" && find kernel/fs/{ext4,jbd2,9p,netfs,fscache} kernel/fs/mbcache.ko kernel/net/9p kernel/drivers/virtio \
  kernel/drivers/block/virtio_blk.ko kernel/lib/crc* kernel/crypto/crc32c* kernel/arch/x86/crypto/crc32c* -name '*.ko' -print0 |
  xargs -0 cp --parents -t "$work/initial/$tree")
depmod -b initial "$version"
cat >initial/init <<'INIT'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /image /sbin /usr/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in virtio_pci virtio_blk crc32c_generic crc32c_intel ext4 9p 9pnet_virtio; do modprobe $module; done 2>/dev/null
until [ -e /dev/vda ]; do usleep 5000; done
mount -t ext4 /dev/vda /image
mount -t proc proc /image/proc
mount -t devtmpfs dev /image/dev
mount -t tmpfs tmp /image/tmp
case $(cat /proc/cmdline) in
  *by_hand=start*) chroot /image sh -c echo ;;
  *)
    mkdir -p /image/folder
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=mmap folder /image/folder
    cp /measure /image/tmp/measure
    chroot /image /tmp/measure
    ;;
esac
sync
reboot -f
INIT
chmod 755 initial/init
cp measure initial/measure
(cd initial && find . -print0 | LC_ALL=C sort -z | cpio --null -o -H newc --quiet) >initial.cpio
as_root mke2fs -q -t ext4 -d bundle/rootfs disk.ext4 2G
as_root chmod a+rw disk.ext4
"$MLENV" runs show last --json >record
accelerator=$(jq -r .vm.accelerator record)
equal "kernel" "$version" "$(jq -r .vm.kernel record)"
processor=max
[ "$accelerator" = tcg ] || processor=host
in_machine() { # in_machine start|tools
  as_root setsid --wait timeout 120 qemu-system-x86_64 -machine q35 -accel "$accelerator" -cpu "$processor" -smp "$(nproc)" -m "$memory" \
    -nodefaults -display none -no-reboot -serial stdio -kernel "kernel/boot/vmlinuz-$version" -initrd initial.cpio \
    -append "console=ttyS0 quiet panic=-1 reboot=t no_timer_check tsc=unstable by_hand=$1" \
    -drive "file=disk.ext4,format=raw,if=virtio,snapshot=on" \
    -fsdev local,id=folder,security_model=passthrough,path=folder -device virtio-9p-pci,fsdev=folder,mount_tag=folder \
    </dev/null 2>machine.err | tr -d '\r'
}

# Seconds until the first line of its output is there, and then its end.
cat >first_line.py <<'PYTHON'
import subprocess, sys, time
begin = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
line = process.stdout.readline()
print("start.user", time.monotonic() - begin)
process.stdout.read()
if process.wait() != 0 or line.strip() not in (b"", b"\x1bc"):
    sys.exit(f"{sys.argv[1:]} ended with {process.returncode}, and began with {line}")
PYTHON
export -f in_machine in_container as_root
declare -p sudo >functions
{
  declare -f in_machine in_container as_root
  echo "work='$work' accelerator=$accelerator processor=$processor memory=$memory version=$version"
} >>functions

note "measured in turn, $rounds rounds"
for ((round = 1; round <= rounds; ++round)); do
  compare tools --tools tools --sides builtin,vm --memory "${memory}m" --json-file ours.json \
    --rows cpu.integer,cpu.all,memory.bandwidth,disk.fsync --budget 50s >table 2>err || fail "$(cat err)"
  in_container config.tools >>container.hand
  in_machine tools >>vm.hand
  compare tools --tools tools --sides builtin,vm --memory "${memory}m" --json-file start.json --rows start.user --budget 8s >table 2>err
  python3 first_line.py bash -c '. ./functions; in_container config.start' >>container.hand
  python3 first_line.py bash -c '. ./functions; in_machine start' >>vm.hand
done
equal "accelerator of the compared machine" "$accelerator" "$(jq -r '.sessions[0].machines[0].accelerator' ours.json)"

ours() { # ours FILE ROW SIDE
  jq -c --arg row "$2" --arg side "$3" '[.rows[] | select(.id == $row) | .sides[] | select(.side == $side) | .samples[].value]' "$1"
}
hand() { # hand FILE ROW SCALE
  awk -v row="$2" -v scale="$3" '$1 == row { printf "%s%.9g", (n++ ? "," : "["), $2 * scale } END { print n ? "]" : "[]" }' "$1"
}
disagreements=0
busy=
judged() { # judged ROW SCALE SIDE FILE
  local ours hand found
  ours=$(ours ours.json "$1" "$3")
  hand=$(hand "$4" "$1" "$2")
  if [ "$(jq length <<<"$ours")" -lt 5 ] || [ "$(jq length <<<"$hand")" -lt 5 ]; then
    fail "$1 on $3: too few samples: $ours, $hand"
  fi
  found=$(verdict "$ours" "$hand")
  echo "$1 $3 $found"
  # Where one of the intervals is as wide as the factor that has to be seen, nothing can be said.
  if [ "$(jq '[.ours, .hand] | all(.high < .low * 1.5)' <<<"$found")" != true ]; then
    note "$1 on $3: too unsteady to be judged"
    return
  fi
  steady=$((steady + 1))
  agree "$ours" "$hand" || disagreements=$((disagreements + 1))
  # What is planted is seen, in either direction, with these very samples.
  ! agree "$ours" "$(jq -c 'map(. * 2)' <<<"$hand")" || fail "$1 on $3: a factor of two would not be seen"
  ! agree "$(jq -c 'map(. * 2)' <<<"$ours")" "$hand" || fail "$1 on $3: a factor of two would not be seen"
}
for side in container vm; do
  name=$([ "$side" = vm ] && echo vm || echo builtin)
  steady=0
  judged cpu.integer 1 "$name" "$side.hand"
  judged cpu.all 1 "$name" "$side.hand"
  judged memory.bandwidth 1048576 "$name" "$side.hand"
  judged disk.fsync 1e-9 "$name" "$side.hand"
  echo "start.user $name $(verdict "$(ours start.json start.user "$name")" "$(hand "$side.hand" start.user 1)")"
  [ "$steady" -ge 3 ] || busy="the machine is too busy to compare"
done
equal "rows that are another by hand" 0 "$disagreements"
[ -z "$busy" ] || skip "$busy"
