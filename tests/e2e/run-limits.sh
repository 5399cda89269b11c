#!/usr/bin/env bash
# Limits of a run are applied by control groups, or refused; that the kernel killed for memory is
# told, and recorded; no group stays.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc crun jq
need_root

small_tree
user_store
mkdir -p "$work/project"
chmod 777 "$work/project"
cd "$work/project"

run() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" run "$@"; }
record() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" --json runs show last | jq -cr "$1"; }
groups() { find /sys/fs/cgroup -name 'mlenv-limits-*' 2>/dev/null | LC_ALL=C sort; }
before=$(groups)
status_of() {
  local status=0
  run "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}

if [ "$(status_of --pids-limit 100 small -- true)" != 0 ]; then
  grep -q '^error: .* cannot be applied here' "$work/err" || fail "$(cat "$work/err")"
  skip "this machine gives root no control groups: $(cat "$work/err")"
fi

note "memory"
equal "within" 0 "$(status_of --memory 256m small -- python3 -c 'b = bytearray(50 << 20)')"
equal "within: not told" "false 268435456" "$(record '"\(.end.out_of_memory) \(.start.options.limits.memory_bytes)"')"
equal "beyond" 137 "$(status_of --memory 64m small -- python3 -c 'b = bytearray(300 << 20)')"
# shellcheck disable=SC2016  # backticks of the message
grep -qF 'the kernel killed a process of this run for want of memory; `--memory` allows 64 MiB' "$work/err" ||
  fail "not told: $(cat "$work/err")"
equal "recorded" "killed true" "$(record '"\(.state) \(.end.out_of_memory)"')"
equal "a child of the command" 5 "$(status_of --memory 64m small -- sh -c 'python3 -c "b = bytearray(300 << 20)"; exit 5')"
equal "recorded" "failed true" "$(record '"\(.state) \(.end.out_of_memory)"')"
"$MLENV" runs show last >"$work/shown"
grep -q 'killed a process.*for want of memory' "$work/shown" || fail "not shown: $(cat "$work/shown")"

note "memory and swap"
# of_group V1 V2: what the group of the run in the background has there
of_group() {
  local file
  file=$(find /sys/fs/cgroup -path '*/mlenv-limits-*' \( -name "$1" -o -name "$2" \) ! -path '*/mlenv-limits-*/*/*' | head -n 1)
  [ -n "$file" ] && echo "$(basename "$file") $(cat "$file")"
}
status=$(status_of -d --name swap --memory 64m --memory-swap 96m small -- sleep 1000)
if [ "$status" = 0 ]; then
  swap=$(of_group memory.memsw.limit_in_bytes memory.swap.max)
  case $swap in
  memory.memsw*) equal "memory and swap" $((96 << 20)) "${swap#* }" ;;
  *) equal "swap alone" $((32 << 20)) "${swap#* }" ;;
  esac
  "$MLENV" stop --time 0 swap >/dev/null
  run -d --name swap --memory 64m --memory-swap -1 small -- sleep 1000 >/dev/null
  swap=$(of_group memory.memsw.limit_in_bytes memory.swap.max)
  [ "${swap#* }" = max ] || [ "${swap#* }" -gt $((1 << 40)) ] || fail "limited: $swap"
  "$MLENV" stop --time 0 swap >/dev/null
else
  grep -q '^error: .*memory-swap.* cannot be applied here' "$work/err" || fail "$(cat "$work/err")"
  equal "unlimited, as the kernel has it" 0 "$(status_of --memory 64m --memory-swap -1 small -- true)"
fi
equal "without --memory" 125 "$(status_of --memory-swap 1g small -- true)"
equal "recorded" "67108864 true" "$(run --memory 64m --memory-swap -1 small -- true; record '.start.options.limits | "\(.memory_bytes) \(.unlimited_swap)"')"

note "processors, and processor time"
equal "one of them" 1 "$(run --cpuset-cpus 0 small -- nproc)"
equal "a share" 0 "$(status_of --cpus 0.5 small -- python3 -c '
import os, time
start, began = time.monotonic(), os.times()
while time.monotonic() - start < 2: pass
used = os.times()
raise SystemExit((used.user + used.system - began.user - began.system) > 1.5)')"
equal "more than there are" 125 "$(status_of --cpus 100000 small -- true)"
equal "others than there are" 125 "$(status_of --cpuset-cpus 8000 small -- true)"
grep -q '^error: .*cpuset-cpus.* cannot be applied here' "$work/err" || fail "$(cat "$work/err")"

note "processes"
equal "none for the runtime" 125 "$(status_of --pids-limit 1 small -- true)"
grep -q "^hint: .--pids-limit. holds for the runtime" "$work/err" || fail "$(cat "$work/err")"
# shellcheck disable=SC2016  # for the shell inside
equal "too many" 1 "$(status_of --pids-limit 20 small -- python3 -c '
import os, sys
try:
    for _ in range(100):
        if os.fork() == 0:
            os.read(0, 1); os._exit(0)
except BlockingIOError:
    sys.exit(1)')"

note "all together, with a terminal; by crun, or it says that it cannot"
equal "together" 0 "$(status_of --memory 128m --cpus 1 --cpuset-cpus 0 --pids-limit 50 small -- true)"
script -qec "$MLENV run -t --memory 64m small -- python3 -c 'b = bytearray(300 << 20)'" /dev/null >"$work/out" 2>&1 </dev/null || true
grep -q 'for want of memory' "$work/out" || fail "not told on a terminal: $(cat "$work/out")"
crun_status=$(status_of --runtime crun --memory 64m small -- python3 -c 'b = bytearray(300 << 20)')
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  equal "crun" 137 "$crun_status"
else
  equal "crun" 125 "$crun_status"
  failing_with no-limit "$MLENV" --json run --runtime crun --memory 64m small -- true
fi

note "mlenv is killed: the groups go all the same"
mkfifo "$work/started"
"$MLENV" run --memory 128m --pids-limit 50 small -v "$work:/data" -- sh -c 'echo >/data/started; exec sleep 1000' &
job=$!
read -r <"$work/started"
[ "$(groups)" != "$before" ] || fail "there is no group while it runs"
kill -KILL "$job"
wait "$job" 2>/dev/null || true
as_before() { [ "$(groups)" = "$before" ]; }
wait_until 20 as_before

note "an ordinary user, whom this machine gives groups or not"
status=0
as_user MLENV_STORE="$user_home/store" mlenv --json run --memory 64m small -- python3 -c 'b = bytearray(300 << 20)' 2>"$work/err" || status=$?
if [ "$status" != 137 ]; then
  equal "status" 125 "$status"
  grep -q '"code":"no-limit"' "$work/err" || fail "not refused: $(cat "$work/err")"
fi
equal "groups afterwards" "$before" "$(groups)"
