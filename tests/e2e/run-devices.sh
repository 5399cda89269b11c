#!/usr/bin/env bash
# `mlenv run --device` and `--gpus` give a container what CDI specifications say, as root and as an
# ordinary user, and the same as podman does with the same file. The devices are ones that any
# machine has; `nvidia.com/gpu` is stood in for, which shows nothing of real GPUs.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc
need_root
[ ! -e /dev/nvidiactl ] || skip "this machine has NVIDIA's driver, which this test stands in for"
base_tree
"$MLENV" tag base bare
user_store
project=$work/project
mkdir -p "$project"
chmod 777 "$project"
cd "$project"

# Names of its own, so that tests may run side by side.
vendor=mlenv-test-$$.example
specification=/etc/cdi/$vendor.yaml
mkdir -p "$work/given"
echo given >"$work/given/file"
cat >"$work/hook" <<'HOOK'
#!/bin/sh
# As NVIDIA's hooks do it: the bundle from the state, the root from its configuration.
bundle=$(sed 's/.*"bundle": *"\([^"]*\)".*/\1/')
root=$(tr -d '\n' <"$bundle/config.json" | sed 's/.*"root": *{[^}]*"path": *"\([^"]*\)".*/\1/')
echo "$1 $HOOK" >"$root/etc/from-hook"
HOOK
chmod 755 "$work/hook" "$work/given"
specify() { # specify FILE KIND
  as_root mkdir -p "$(dirname "$1")"
  as_root tee "$1" >/dev/null <<CDI
cdiVersion: 0.5.0
kind: $2
containerEdits:
  env: [OF_ALL=1]
  hooks:
    - {hookName: createContainer, path: $work/hook, args: [hook, argument], env: [HOOK=h]}
devices:
  - name: "0"
    containerEdits:
      env: [DEVICE=0]
      deviceNodes:
        - {path: /dev/vendor/zero, hostPath: /dev/zero}
        - {path: /dev/vendor/full, hostPath: /dev/full, type: c, major: 1, minor: 7, permissions: rw}
      mounts:
        - {hostPath: $work/given, containerPath: /opt/given, options: [ro, nosuid, nodev, bind]}
  - name: "1"
    containerEdits: {deviceNodes: [{path: /dev/vendor/null, hostPath: /dev/null}]}
  - name: fuse
    containerEdits: {deviceNodes: [{path: /dev/fuse}]}
CDI
}
remove_specifications() { as_root rm -f "$specification" "/var/run/cdi/$vendor.json"; }
trap 'remove_specifications; finish_test' EXIT
specify "$specification" "$vendor/device"

# shellcheck disable=SC2016  # for the shell inside
script='cd /dev/vendor && for node in *; do stat -c "%n %F %t:%T" "$node"; done
head -c 2 zero 2>/dev/null | od -An -tx1
cat /opt/given/file /etc/from-hook 2>/dev/null
touch /opt/given/new 2>/dev/null || echo read-only
echo "$OF_ALL $DEVICE"'
run_as() { # run_as WHO ARGUMENT…
  local who=$1
  shift
  if [ "$who" = root ]; then
    as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" run bare "$@"
  else
    as_user MLENV_STORE="$user_home/store" mlenv run bare "$@"
  fi
}
zero_and_full='full character special file 1:7
zero character special file 1:5
 00 00
given
argument h
read-only
1 0'

for who in root user; do
  note "$who"
  equal "$who: a device" "$zero_and_full" "$(run_as "$who" --device "$vendor/device=0" -- sh -c "$script")"
  equal "$who: both" "full null zero" \
    "$(run_as "$who" --device "$vendor/device=0" --device "$vendor/device=1" -- ls /dev/vendor | xargs)"
  equal "$who: nothing unasked" no "$(run_as "$who" -- sh -c '[ -e /dev/vendor ] || echo no')"
done
equal "the image is as it was" no "$(run_as root -- sh -c '[ -e /etc/from-hook ] || echo no')"

note "the cgroup lets no other device be used"
if [ -c /dev/fuse ]; then
  opens='mknod /root/fuse c 10 229 && { (: </root/fuse) 2>/dev/null && echo opens || echo refused; }'
  equal "another device" refused "$(run_as root --device "$vendor/device=0" -- sh -c "$opens")"
  equal "the same where it is given" opens "$(run_as root --device "$vendor/device=fuse" -- sh -c "$opens")"
fi

note "what is asked wrongly"
complaint() { # complaint CODE TEXT ARGUMENT…
  local code=$1 text=$2 status=0
  shift 2
  run_as root "$@" >"$work/out" 2>"$work/err" || status=$?
  equal "status of $*" 125 "$status"
  equal "errors about $*" 1 "$(grep -c '^error: ' "$work/err")"
  grep -qF "$text" "$work/err" || fail "$*: $(cat "$work/err")"
  failing_with "$code" as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" --json run bare "$@"
}
complaint no-device "of \`$vendor/device\` there are: 0, 1, fuse" --device "$vendor/device=2" -- true
complaint no-device 'there is no NVIDIA GPU that a container could get' --gpus all -- true
complaint usage 'indices are' --gpus 0,1 -- true
equal "without GPUs" yes "$(run_as root --gpus none -- echo yes)"
echo '{"cdiVersion": "0.6.0", "kind": "'"$vendor"'/broken", "devices": [{"name": "a", "nodes": []}]}' |
  as_root tee "/var/run/cdi/$vendor.json" >/dev/null 2>&1 || {
  as_root mkdir -p /var/run/cdi
  echo '{"cdiVersion": "0.6.0", "kind": "'"$vendor"'/broken", "devices": [{"name": "a", "nodes": []}]}' |
    as_root tee "/var/run/cdi/$vendor.json" >/dev/null
}
complaint bad-cdi "$vendor.json:1:" --device "$vendor/broken=a" -- true
equal "others are not concerned" yes "$(run_as root --device "$vendor/device=1" -- echo yes)"
as_root sed -i "s|$work/given,|$work/gone,|" "$specification"
complaint stale-cdi "names what is not there: \`$work/gone\`" --device "$vendor/device=0" -- true
specify "$specification" "$vendor/device"

if command -v podman >/dev/null; then
  note "podman gives the same"
  "$MLENV" -q save bare "oci:$work/oci"
  as_root umoci unpack --image "$work/oci:latest" "$work/unpacked" 2>/dev/null || fail "umoci does not unpack it"
  rootfs=$work/unpacked/rootfs
  # Limits as they are here: podman's own may be more than this machine allows.
  found=$(as_root podman --runtime runc --cgroup-manager cgroupfs run --rm --network none \
    --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --device "$vendor/device=0" \
    --rootfs "$rootfs" sh -c "$script" 2>"$work/podman.log") || fail "podman: $(tail -n 3 "$work/podman.log")"
  equal "podman's container" "$zero_and_full" "$found"
fi
