#!/usr/bin/env bash
# Signals to `mlenv run` reach the job, once; when mlenv is killed outright the job and all that it
# started die too, and no cgroup is left.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc python3

small_tree
mkdir "$work/project"
cd "$work/project"

cat >job.py <<'JOB'
import os, signal, subprocess, sys, time
seen = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, lambda n, frame: seen.append(n))
marker = sys.argv[1]
subprocess.Popen(["sleep", marker])
open("cgroup", "w").write(open("/proc/self/cgroup").read())
open("ready", "w").close()
end = time.monotonic() + 60
while not seen and time.monotonic() < end:
    signal.sigtimedwait([], 0.1)
signal.sigtimedwait([], 1)  # a second one would come soon after
print(*seen, flush=True)
sys.exit(len(seen))
JOB

# Unlike the shell's background jobs, not with SIGINT ignored.
start_job() { # start_job MARKER: sets $job
  rm -f ready
  env --default-signal=INT "$MLENV" run small -- python job.py "$1" >out &
  job=$!
  wait_until 60 test -e ready
}
alive() { pgrep -f "^sleep $1\$" >/dev/null; }
gone() { ! alive "$1"; }

marker=86400$((RANDOM % 900 + 100))
for name in INT TERM HUP USR1; do
  note "$name"
  start_job "$marker"
  kill -s "$name" "$job"
  status=0
  wait "$job" || status=$?
  equal "$name: how many came" 1 "$status"
  equal "$name: which came" "$(kill -l "$name")" "$(cat out)"
  wait_until 10 gone "$marker"
done

note "a job without handlers ends by the signal"
env --default-signal=INT "$MLENV" run small -- sh -c 'touch started; exec sleep 600' &
job=$!
wait_until 60 test -e started
kill -INT "$job"
status=0
wait "$job" || status=$?
equal "status" 130 "$status"

note "kill -9"
start_job "$marker"
kill -KILL "$job"
wait "$job" 2>/dev/null || true
wait_until 20 gone "$marker"
# An ordinary user's container has no cgroup of its own.
cgroup=$(grep -om1 'mlenv-[0-9a-f]*' cgroup || true)
no_cgroup() { [ -z "$(find /sys/fs/cgroup -name "${cgroup:-none}" 2>/dev/null)" ]; }
wait_until 20 no_cgroup
# The next run works, whatever the last one left.
equal "afterwards" fine "$("$MLENV" run small -- echo fine)"

note "Ctrl-C on a terminal, with and without one for the job"
cat >terminal.py <<'TERMINAL'
import os, pty, select, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
out, sent, end = b"", False, time.monotonic() + 60
while time.monotonic() < end:
    if select.select([fd], [], [], 0.1)[0]:
        try:
            data = os.read(fd, 4096)
        except OSError:
            break
        if not data:
            break
        out += data
    if b"ready" in out and not sent:
        os.write(fd, b"\x03")
        sent = True
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
TERMINAL
status=0
python3 terminal.py "$MLENV" run small -- sh -c 'tty; echo ready; exec sleep 100' || status=$?
equal "Ctrl-C on the job's own terminal" 130 "$status"
status=0
# shellcheck disable=SC2016  # for the shell inside
python3 terminal.py /bin/bash -c 'exec "$@" </dev/null' bash \
  "$MLENV" run small -- sh -c 'echo ready; exec sleep 100' || status=$?
equal "Ctrl-C on ours" 130 "$status"
