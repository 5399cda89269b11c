#!/usr/bin/env bash
# `mlenv facts` says what the machine's own programs say, as root and not, fits its schema, and
# answers where parts of /proc and /sys are missing.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq
cd "$work"

started_at=$(date +%s%N)
"$MLENV" facts --json >facts.json
note "all facts took $((($(date +%s%N) - started_at) / 1000000)) ms"
fact() { jq -r "$1.value | if type == \"array\" then join(\" \") else . end" "${2:-facts.json}"; }

note "against uname, nproc, /proc, findmnt, getent, ip"
equal kernel "$(uname -r)" "$(fact .system.kernel)"
equal architecture "$(uname -m)" "$(fact .system.architecture)"
# shellcheck source=/dev/null
equal distribution "$(. /etc/os-release && echo "$ID")" "$(fact .system.distribution)"
equal processors "$(getconf _NPROCESSORS_ONLN)" "$(fact .cpu.processors)"
equal usable "$(env -u OMP_NUM_THREADS nproc)" "$(fact .cpu.usable)"
equal memory "$(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) * 1024))" "$(fact .memory.total_bytes)"
equal "host name" "$(cat /proc/sys/kernel/hostname)" "$(fact .network.host_name)"
equal "open files" "$(ulimit -Sn)" "$(jq -r '.limits.open_files_soft.value.most // "unlimited"' facts.json)"
equal "user" "$(id -u)" "$(fact .system.user_id)"
if command -v findmnt >/dev/null; then
  equal "disk" "$(findmnt -no FSTYPE -T "$work")" "$(fact .storage.store.type)"
  equal "mounted at" "$(findmnt -no TARGET -T "$work")" "$(fact .storage.store.mount_point)"
fi
equal "size of /dev/shm" "$(df -B1 --output=size /dev/shm | tail -1 | tr -d ' ')" \
  "$(fact .storage.shared_memory.size_bytes)"
if command -v getent >/dev/null && getent ahosts "$(fact .network.host_name)" >hosts; then
  equal "addresses of the name" "$(awk '!met[$1]++ { print $1 }' hosts | paste -sd ' ')" \
    "$(fact .network.host_addresses)"
fi
if command -v ip >/dev/null; then
  ip -j addr | jq -c '[.[] | {name: .ifname, addresses: [.addr_info[] | "\(.local)/\(.prefixlen)"] | sort}] | sort_by(.name)' >expected
  jq -c '[.network.interfaces.value[] | {name, addresses: .addresses.value | sort}] | sort_by(.name)' facts.json >found
  diff expected found || fail "interfaces and their addresses"
fi
if command -v runc >/dev/null; then
  equal "runc" "$(runc --version | awk 'NR == 1 { print $3 }')" \
    "$(jq -r '.containers.engines.value[] | select(.name == "runc").version.value' facts.json)"
fi

note "a file comes back as it is, and every unknown fact says why"
"$MLENV" facts --json facts.json | diff facts.json - || fail "read and written again it differs"
equal "silent unknown facts" 0 "$(jq '[.. | objects | select(has("source") and .value == null and .source == "")] | length' facts.json)"
"$MLENV" facts facts.json >text
grep -q "^  kernel  *$(uname -r)$" text || fail "no kernel in the text: $(cat text)"

if command -v cc >/dev/null; then
  note "a library that prints on stdout gets nothing into the answer"
  mkdir lib
  cat >lib/noise.c <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void at_loading(void) { printf("loading\n"); (void)!write(1, "now\n", 4); }
int nvmlInit_v2(void) { return 9; }
const char *nvmlErrorString(int status) { return status == 9 ? "Driver Not Loaded" : "?"; }
C
  cc -shared -fPIC -o lib/libnvidia-ml.so.1 lib/noise.c
  LD_LIBRARY_PATH=$work/lib "$MLENV" __facts nvml >answer 2>noise
  equal "answer" "nvmlInit_v2: Driver Not Loaded" "$(jq -r .gpus.source answer)"
  equal "noise" "loading now" "$(LC_ALL=C sort noise | paste -sd ' ')"
fi
if command -v taskset >/dev/null; then
  first=$(taskset -cp $$ | grep -oE '[0-9]+' | sed -n 2p)
  equal "usable of one" 1 "$(taskset -c "$first" "$MLENV" facts --json | jq .cpu.usable.value)"
fi

note "without parts of /sys and /proc"
lines=(facts.json)
if unshare -rm true 2>/dev/null; then
  # shellcheck disable=SC2016
  unshare -rm sh -c 'mount -t tmpfs none /sys && "$MLENV" facts --json' >no-sys.json
  equal "interfaces without /sys" "$(jq '.network.interfaces.value | length' facts.json)" \
    "$(jq '.network.interfaces.value | length' no-sys.json)"
  equal "modules without /sys" null "$(fact .nvidia.peermem no-sys.json)"
  equal "NUMA without /sys" null "$(fact .memory.numa no-sys.json)"
  # shellcheck disable=SC2016
  unshare -rm sh -c 'mount -t tmpfs none /proc/sys && "$MLENV" facts --json' >no-sysctl.json
  equal "switches without /proc/sys" null "$(fact .isolation.unprivileged_user_namespaces no-sysctl.json)"
  lines+=(no-sys.json no-sysctl.json)
fi

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  note "as an ordinary user"
  cp "$MLENV" mlenv # where others may read it
  (
    export MLENV_STORE=$work/store HOME=/nonexistent
    setpriv --reuid 65534 --regid 65534 --clear-groups ./mlenv facts --json
  ) >user.json
  stable='del(.system.user_id, .memory.available_bytes, .isolation.sandbox, .storage[].free_bytes, .containers.engines)'
  diff <(jq -S "$stable" facts.json) <(jq -S "$stable" user.json) || fail "root and others differ in more than that"
  lines+=(user.json)
fi

if python3 -c 'import jsonschema' 2>/dev/null; then
  cat "${lines[@]}" | python3 "$root/tests/schema/check.py" >/dev/null
fi
note "${#lines[@]} answers"
