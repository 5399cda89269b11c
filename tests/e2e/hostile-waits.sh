#!/usr/bin/env bash
# Every wait has an end: a command that ignores signals, a runtime that starts nothing, a lock that a
# stopped process holds, a mlenv that is stopped. The deadline ends it, or the second signal does. With --long each
# pair of signals with each runtime.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
beside=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need busybox python3 runc

python3 "$root/tests/support/busybox_image.py" "$work/base.tar" base:v1
"$MLENV" load "$work/base.tar" >/dev/null
mkdir -p "$work/project"
cd "$work/project"

began() { SECONDS=0; }
within() { [ "$SECONDS" -le "$1" ] || fail "$2: $SECONDS s"; }
# starts WORD…: mlenv in the background, as $pid; what bash starts there ignores SIGINT, and so would mlenv.
starts() {
  nothing_said
  env --default-signal=INT "$MLENV" "$@" </dev/null >"$work/out" 2>"$work/err" &
  pid=$!
  started+=("$pid")
}
# ends STATUS WHAT: of $pid.
ends() {
  local status=0
  wait "$pid" || status=$?
  equal "$2: the status" "$1" "$status"
}
pause() { read -rt "$1" <> <(:) || true; }
deaf='trap "" INT TERM; echo begun; while :; do sleep 1000; done'

for runtime in runc crun; do
  command -v "$runtime" >/dev/null || continue
  note "$runtime: a command that ignores signals"
  pairs=("INT INT 130" "TERM INT 143" "INT TERM 130")
  [ "$MLENV_TEST_LONG/$who/$runtime" = 0/root/runc ] || [ "$MLENV_TEST_LONG/$who" = 1/root ] || pairs=("INT INT 130")
  for pair in "${pairs[@]}"; do
    read -r first second status <<<"$pair"
    starts run --runtime "$runtime" --no-project --no-check base:v1 -- sh -c "$deaf"
    wait_until 30 grep -q begun "$work/out"
    kill -s "$first" "$pid"
    pause 0.5
    kill -0 "$pid" || fail "the first signal is the command's, and ended mlenv"
    began
    kill -s "$second" "$pid"
    ends "$status" "$runtime: $pair"
    within 5 "$runtime: the second signal"
  done
  [ "$MLENV_TEST_LONG/$runtime" != 0/runc ] || continue
  note "$runtime: SIGHUP is a command's own, as often as it likes"
  # shellcheck disable=SC2016  # for the shell inside
  starts run --runtime "$runtime" --no-project --no-check base:v1 -- \
    sh -c 'trap "echo again" HUP; echo begun; i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i + 1)); done; echo end'
  wait_until 30 grep -q begun "$work/out"
  for _ in 1 2 3; do
    kill -HUP "$pid"
    pause 0.2
  done
  ends 0 "SIGHUP"
  grep -q end "$work/out" || fail "it was ended by SIGHUP: $(cat "$work/out")"
done

note "a runtime that starts nothing"
mkdir -p "$work/bin"
cat >"$work/bin/runc" <<'RUNTIME'
#!/bin/sh
trap '' INT TERM HUP
case "$*" in *--version*) echo 'runc version 1.1.5'; exit 0 ;; esac
echo asked >"${0%/*}/../asked"
while :; do sleep 1000; done
RUNTIME
chmod +x "$work/bin/runc"
asked=$work/asked
began
status=0
"$MLENV" run --runtime "$work/bin/runc" --timeout 2s --stop-timeout 1s --no-project --no-check base:v1 -- true \
  </dev/null >"$work/out" 2>"$work/err" || status=$?
equal "its deadline" 124 "$status"
within 10 "the deadline of a start"
rm -f "$asked"
starts run --runtime "$work/bin/runc" --no-project --no-check base:v1 -- true
wait_until 30 test -e "$asked"
kill -INT "$pid"
pause 0.5
began
kill -INT "$pid"
ends 130 "the second signal while it starts"
within 6 "the second signal while it starts"

note "an exec whose run's mlenv is stopped"
starts run --no-project --no-check base:v1 -- sh -c 'echo begun; exec sleep 1000'
run=$pid
wait_until 30 grep -q begun "$work/out"
stage=
for child in $(pgrep -P "$run"); do
  if pgrep -x -P "$child" mlenv-init >/dev/null; then stage=$child; fi
done
[ -n "$stage" ] || fail "the run has no stage: $(pgrep -a -P "$run")"
kill -STOP "$stage"
starts exec last -- true
pause 1
kill -INT "$pid"
pause 1
began
kill -INT "$pid"
ends 130 "exec"
within 5 "exec: the second signal"
kill -CONT "$stage"
kill -TERM "$run"
pid=$run
ends 143 "the run"

note "a lock that a stopped process holds"
"$MLENV" tag base:v1 first:v1
[ -e "$MLENV_STORE/history.lock" ] || fail "the store has no lock of its names"
python3 - "$MLENV_STORE/history.lock" <<'P' &
import fcntl, os, signal, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)
P
holder=$!
started+=("$holder")
is_stopped() { grep -q '^State:.T' "/proc/$holder/status"; }
wait_until 20 is_stopped
starts tag base:v1 other:v1
wait_until 20 grep -q "has locked" "$work/err"
grep -q "process $holder" "$work/err" || fail "it does not say who: $(cat "$work/err")"
grep -q "kill -CONT $holder" "$work/err" || fail "it does not say that it is stopped: $(cat "$work/err")"
began
kill -INT "$pid"
ends 130 "a lock"
within 3 "the first signal while it waits for a lock"
starts tag base:v1 other:v1
pause 1
kill -CONT "$holder"
ends 0 "when it is free"
both_done
