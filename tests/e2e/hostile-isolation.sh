#!/usr/bin/env bash
# What a container is kept from, held against docker and podman: one probe, the same image, in all three. mlenv
# may allow nothing that both refuse, but for what docs/isolation.md gives reasons for; 32-bit programs run.
# shellcheck disable=SC2119  # no options
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need gcc busybox python3 runc crun podman dockerd docker skopeo setpriv
need_root

gcc -static -O1 -o "$work/probe" "$root/tests/support/confinement_probe.c"
cat >"$work/small.c" <<'C'
static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
  return result;
}
void _start(void) {
  call(4, 1, (long)"32 bits\n", 8);  // write
  call(1, 7, 0, 0);                  // exit
}
C
files=("$work/probe")
if [ "$(uname -m)" = x86_64 ]; then
  gcc -m32 -O1 -nostdlib -static -ffreestanding -fno-pie -no-pie -fno-stack-protector -o "$work/small" "$work/small.c"
  files+=("$work/small")
fi
python3 "$root/tests/support/busybox_image.py" "$work/base.tar" probe:v1 "${files[@]}"
"$MLENV" load "$work/base.tar" >/dev/null 2>&1
user_store
mkdir "$work/project"
cd "$work/project"
mlenv_of() { # mlenv_of WHO ARGUMENT…
  local who=$1
  shift
  if [ "$who" = root ]; then
    as_root env MLENV_STORE="$MLENV_STORE" HOME="$HOME" "$MLENV" run --no-project --no-check "$@"
  else
    as_user MLENV_STORE="$user_home/store" mlenv run --no-project --no-check "$@"
  fi
}

for who in root user; do
  for runtime in crun runc; do
    if [ -e "$work/small" ]; then
      note "$who, $runtime: a 32-bit program"
      ends_with 7 mlenv_of "$who" --runtime "$runtime" probe:v1 -- /opt/small
      equal "$who, $runtime: what it says" "32 bits" "$(cat "$work/out")"
    fi
    mlenv_of "$who" --runtime "$runtime" --network none probe:v1 -- /opt/probe >"$work/$who-$runtime"
  done
  # The filter and the places are mlenv's, whoever sets them up.
  diff <(grep -v '^namespace' "$work/$who-crun") <(grep -v '^namespace' "$work/$who-runc") ||
    fail "$who: crun and runc differ"
  mlenv_of "$who" probe:v1 -- /opt/probe >"$work/$who-host"
  for line in "call keyctl refused" "call add_key refused" "call bpf refused" "call io_uring_setup refused" \
    "call userfaultfd refused" "call perf_event_open refused" "call unshare_user refused" "call clone_user refused" \
    "call mount refused" "socket vsock refused" "socket alg refused" "socket vsock_wide refused" "socket alg_wide refused" "key login hidden" "mode NoNewPrivs 1" \
    "mode Seccomp 2" "write /proc/sys/kernel/core_pattern refused"; do
    for file in "$who-crun" "$who-host"; do
      grep -qxF "$line" "$work/$file" || fail "$file: not \`$line\`: $(grep -F "${line% *}" "$work/$file")"
    done
  done
  ! grep -E '^write .* allowed' "$work/$who-host" || fail "$who: a setting of the machine can be written"
  ! grep -E '^place /proc/(kcore|keys|interrupts|timer_list|scsi|acpi) seen' "$work/$who-host" || fail "$who: seen"
  # On the host's own network nobody sends or reads raw packets (13 is CAP_NET_RAW).
  grep -qxF "socket packet refused" "$work/$who-host" || fail "$who: raw packets on the host's network"
  ! grep -q 'cap Cap.*_13 ' "$work/$who-host" || fail "$who: CAP_NET_RAW on the host's network"
  grep -qxF "cap CapBnd_13 allowed" "$work/$who-crun" || fail "$who: no CAP_NET_RAW in a network of its own"
  for space in ipc mnt pid uts; do
    ! grep -qxF "namespace $space $(readlink "/proc/self/ns/$space")" "$work/$who-host" || fail "$who: the host's $space"
  done
  ! grep -qxF "namespace net $(readlink /proc/self/ns/net)" "$work/$who-crun" || fail "$who: the host's network"
done

note "docker"
make_tree() { # the same files, as a tree for engines
  mkdir "$work/tree"
  skopeo copy -q "oci-archive:$work/base.tar" "dir:$work/copied"
  as_root tar -xf "$work/copied/$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["layers"][0]["digest"][7:])' "$work/copied/manifest.json")" -C "$work/tree"
}
make_tree
start_docker
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }
tar -C "$work/tree" -cf - . | dock import - probe >/dev/null
dock run --rm --network none probe /opt/probe >"$work/docker-none"
dock run --rm --network host probe /opt/probe >"$work/docker-host"
note "podman"
podman_settings
as_engine_root podman import -q "$work/copied/$(basename "$(find "$work/copied" -type f -size +1M)")" probe >/dev/null
as_engine_root podman run --rm --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --network none probe /opt/probe >"$work/podman-none"
end_engines

# differences OURS THEIRS: `weaker` is what is allowed or seen here alone, `stronger` what is so there alone.
cat >"$work/differences.py" <<'PYTHON'
import sys
def facts(path):
    found = {}
    for line in open(path):
        kind, name, value = line.split()
        if kind in ("call", "cap", "device", "place", "socket", "write"):
            found[f"{kind} {name}"] = value in ("allowed", "seen")
    return found
ours, theirs = facts(sys.argv[1]), facts(sys.argv[2])
for name in sorted(ours.keys() | theirs.keys()):
    here, there = ours.get(name, False), theirs.get(name, False)
    if here != there:
        print("weaker" if here else "stronger", name)
PYTHON
# Reasons: docs/isolation.md. What an engine of another version has or lacks (AF_ALG, AF_VSOCK, /proc/interrupts)
# may be stronger here.
known() { # known ENGINE
  case $1 in
    # NUMA policy: training programs bind their memory. The other two: Docker's since its version 23.
    docker) printf 'weaker call %s\n' get_mempolicy name_to_handle_at process_vm_readv set_mempolicy ;;
    # Docker's capabilities, of which podman has fewer: AUDIT_WRITE 29, MKNOD 27, NET_RAW 13, and what needs them.
    podman) printf 'weaker %s\n' "cap Cap"{Bnd,Eff,Prm}_{13,27,29} "socket packet" "socket raw" "socket packet_wide" "socket raw_wide" ;;
  esac
}
compare() { # compare ENGINE OURS THEIRS
  python3 "$work/differences.py" "$work/$2" "$work/$3" >"$work/$3.differences"
  sed "s/^/  $3: /" "$work/$3.differences"
  grep '^weaker' "$work/$3.differences" | LC_ALL=C sort >"$work/weaker" || true
  known "$1" | LC_ALL=C sort | LC_ALL=C comm -23 "$work/weaker" - >"$work/unknown"
  [ ! -s "$work/unknown" ] || fail "allowed here, refused in $3: $(cat "$work/unknown")"
}
compare docker root-crun docker-none
compare docker root-host docker-host
compare podman root-crun podman-none
grep -qxF "stronger socket packet" "$work/docker-host.differences" || fail "raw packets on the host's network, as in docker"
