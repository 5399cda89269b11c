#!/usr/bin/env bash
# Runs in the background: their output, what enters them, what ends them, what is left of them; as
# root with runc and as an ordinary user with crun; with --long, both with both.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3 jq
need_root

base_tree
"$MLENV" tag base small
user_store
mkdir -p "$work/project"
chmod a+rwX "$work/project"

m() { # m ARGUMENT…: mlenv as $who, in the project
  if [ "$who" = root ]; then
    (cd "$work/project" && as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@")
  else
    (cd "$work/project" && as_user MLENV_STORE="$user_home/store" mlenv "$@")
  fi
}
run() { m run --runtime "$runtime" "$@"; } # run ARGUMENT…
status_of() { # status_of COMMAND…: its status; what it says is in $work/out and $work/err
  local status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}
record() { m --json runs show "$1" | jq -r "$2"; } # record RUN EXPRESSION
said() { grep -qF -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
alive() { pgrep -f "^sleep $1\$" >/dev/null; }
gone() { ! alive "$1"; }
stop_all() {
  local id
  for who in root user; do
    m ps --names 2>/dev/null | while read -r id; do m stop --time 0 "$id" >/dev/null 2>&1 || true; done
  done
}
trap 'status=$?; stop_all; (exit "$status"); finish_test' EXIT

cgroups() { find /sys/fs/cgroup -type d -name 'mlenv-*' 2>/dev/null | LC_ALL=C sort || true; }
cgroups >"$work/cgroups-before"
# Groups made since, with nobody in them: those of other tests that run beside this one have processes,
# or come and go.
groups_left() {
  local group
  cgroups | LC_ALL=C comm -13 "$work/cgroups-before" - | while read -r group; do
    [ -n "$(find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] || [ ! -d "$group" ] || echo "$group"
  done
}
no_group_left() { [ -z "$(groups_left)" ]; }

need runc crun
runtimes=(runc crun)

background() { # background MARKER: all that a run in the background goes through
  local marker=$1 id first
  note "$who, $runtime: start, output, wait"
  id=$(run --name first -d small -- sh -c 'echo out; echo err >&2; printf part; exit 7')
  [[ $id =~ ^[0-9]{8}-[0-9]{6}-[0-9a-f]{6}$ ]] || fail "not an id: $id"
  equal "wait" 7 "$(status_of m wait "$id")"
  equal "wait says" 7 "$(cat "$work/out")"
  equal "wait again, by name" 7 "$(status_of m wait first)"
  equal "logs" 0 "$(status_of m logs "$id")"
  equal "standard output" "out part" "$(tr '\n' ' ' <"$work/out")"
  equal "standard error" err "$(cat "$work/err")"
  m logs -t first >"$work/out" 2>"$work/err"
  equal "lines with a time" 2 "$(grep -cE '^[0-9]{4}-[0-9-]+T[0-9:.]+Z ' "$work/out")"
  equal "record" "first true 7 8 4 0" "$(record "$id" '"\(.start.name) \(.start.detached) \(.end.exit_code) \(.end.log.stdout.size_bytes) \(.end.log.stderr.size_bytes) \(.end.log.lost_bytes)"')"
  equal "digest" "sha256:$(printf 'out\npart' | sha256sum | cut -d' ' -f1)" "$(record "$id" .end.log.stdout.digest)"

  note "$who, $runtime: what cannot start is told at once"
  equal "no such program" 127 "$(status_of run -d small -- no-such-program)"
  said no-such-program
  equal "no program" 126 "$(status_of run -d small -- /etc/passwd)"
  equal "no such runtime" 125 "$(status_of m run -d --runtime no-such-runtime small -- true)"
  said 'no-such-runtime'

  note "$who, $runtime: a run that goes on"
  first=$(run -d --name one -e A=1 small -- sh -c "echo begun; trap 'echo ended; exit 5' TERM; sleep $marker & wait")
  equal "ps" "$first" "$(m --json ps | jq -r '.runs[].start.id')"
  equal "ps --names" one "$(m ps --names)"
  failing_with name-taken m --json run -d --name one small -- true
  equal "also in the foreground" 125 "$(status_of run --name one small -- true)"
  # shellcheck disable=SC2016  # for the shell inside
  equal "exec" "begun 1" "$(m exec one sh -c 'echo begun $A')"
  equal "exec: status" 42 "$(status_of m exec one sh -c 'exit 42')"
  equal "exec: a signal" 143 "$(status_of m exec one sh -c 'kill -TERM $$')"
  equal "exec: no such program" 127 "$(status_of m exec one no-such-program)"
  said no-such-program
  equal "exec: no program" 126 "$(status_of m exec one /etc/passwd)"
  equal "exec: no such folder" 125 "$(status_of m exec -w /no/such one true)"
  equal "exec: no such run" 125 "$(status_of m exec nobody true)"
  equal "exec: input" hello "$(echo hello | m exec -i one cat)"
  equal "exec: none without -i" "" "$(echo hello | m exec one cat)"
  # shellcheck disable=SC2016  # for the shell inside
  equal "exec: variables, folder" "2 /opt" "$(m exec -e A=2 -w /opt one sh -c 'echo $A $(pwd)')"
  equal "exec: streams apart" out "$(m exec one sh -c 'echo out; echo err >&2' 2>/dev/null)"
  equal "exec: the same processes" yes "$(m exec one sh -c 'grep -lq begun /proc/[0-9]*/cmdline && echo yes')"
  m exec one sh -c 'grep -E "^(Cap|Seccomp:|NoNewPrivs)" /proc/self/status' >"$work/exec-rights"
  run small -- sh -c 'grep -E "^(Cap|Seccomp:|NoNewPrivs)" /proc/self/status' >"$work/run-rights"
  diff "$work/run-rights" "$work/exec-rights" || fail "other rights"
  equal "shell" shell "$(echo 'echo shell' | m shell one)"
  equal "shell of an image" image "$(echo 'echo image' | m shell small)"

  note "$who, $runtime: an exec whose client is killed"
  m exec one sleep "${marker}1" &
  wait_until 20 alive "${marker}1"
  # The client's own process: below sudo and setpriv, or our child.
  pkill -KILL -f "mlenv exec one sleep ${marker}1\$" || as_root pkill -KILL -f "mlenv exec one sleep ${marker}1\$"
  wait || true
  wait_until 20 gone "${marker}1"

  note "$who, $runtime: stop"
  m logs -f one >"$work/followed" 2>"$work/err" &
  follower=$!
  m exec one sleep "${marker}2" >"$work/out" 2>&1 &
  beside=$!
  wait_until 20 alive "${marker}2"
  equal "stop" "$first" "$(m stop one)"
  status=0
  wait "$beside" || status=$?
  [ "$status" -ne 0 ] || fail "an exec outlived its run"
  wait "$follower" || fail "logs -f: $(cat "$work/err")"
  equal "followed to the end" "begun ended" "$(tr '\n' ' ' <"$work/followed" | sed 's/ $//')"
  equal "record" "failed 5 stop" "$(record "$first" '"\(.state) \(.end.exit_code) \(.end.ended_by)"')"
  equal "stop again" 0 "$(status_of m stop "$first")"
  said 'had ended already'
  failing_with run-ended m --json exec "$first" true
  gone "$marker" || fail "a process is left"
  id=$(run -d --name one small -- sh -c "trap '' TERM; echo deaf; while :; do sleep 0.1; done")
  deaf() { m logs one | grep deaf; }
  wait_until 20 deaf
  equal "the name is free again; SIGKILL in the end" "$id" "$(m stop --time 0.2s one)"
  equal "record" "killed 9 stop" "$(record "$id" '"\(.state) \(.end.signal) \(.end.ended_by)"')"
  m runs -n 1 | grep -q '  stopped  ' || fail "in the list: $(m runs -n 1)"

  note "$who, $runtime: timeout, restarts"
  equal "timeout" 124 "$(status_of run --timeout 0.5s small -- sleep 600)"
  equal "record" "timeout 124 0.5" "$(record last '"\(.end.ended_by) \(.end.exit_code) \(.start.timeout_seconds)"')"
  equal "restarts" 3 "$(status_of run --restart on-failure:2 small -- sh -c 'echo x >>/count; wc -l </count; exit 3')"
  equal "the same writable layer" "1 2 3" "$(tr '\n' ' ' <"$work/out" | sed 's/ $//')"
  equal "recorded" "3 [3,3,3]" "$(record last '"\(.attempts.ended) \(.attempts.last | map(.exit_code) | tojson)"')"
  id=$(run -d --restart always small -- true)
  again() { [ "$(record "$id" '.attempts.ended // 0')" -ge 2 ]; }
  wait_until 30 again
  equal "a stop ends it" "$id" "$(m stop "$id")"
  equal "state" stop "$(record "$id" .end.ended_by)"
}

n=0
for who in root user; do
  for runtime in "${runtimes[@]}"; do
    case $MLENV_TEST_LONG/$who/$runtime in 0/root/crun | 0/user/runc) continue ;; esac
    n=$((n + 1))
    background "7$n$((RANDOM % 9000 + 1000))"
  done
done

who=root runtime=runc
note "much output: nothing is lost, nothing out of order"
cat >"$work/project/lines.py" <<'PYTHON'
import sys
for i in range(200000):
    print("line", i)
    if i % 2 == 0:
        print("error", i, file=sys.stderr)
PYTHON
m run -d --name many small -- python lines.py >"$work/id"
m logs -f many >"$work/followed" 2>"$work/errors"
seq -f 'line %.0f' 0 199999 | cmp - "$work/followed" || fail "lines followed"
seq -f 'error %.0f' 0 2 199998 | cmp - "$work/errors" || fail "errors followed"
m logs many 2>/dev/null | cmp - "$work/followed" || fail "lines afterwards"
m run -d --name five small -- seq 5 >"$work/id"
m wait five >/dev/null
equal "the last ones" "4 5" "$(m logs -n 2 five | tr '\n' ' ' | sed 's/ $//')"
m run -d --log-size 1M --name few small -- python lines.py >"$work/id"
m logs -f few >"$work/followed" 2>"$work/errors"
equal "followed through the rotation" "line 199999" "$(tail -n 1 "$work/followed")"
m logs few >"$work/out" 2>"$work/err"
equal "what is kept" "line 199999" "$(tail -n 1 "$work/out")"
said 'are no longer kept'
[ "$(as_root du -sb "$MLENV_STORE/runs/$(cat "$work/id")/log" | cut -f1)" -lt 1200000 ] || fail "more is kept"
equal "JSON" true "$(m --json logs -n 1 few | tail -n 1 | jq '.schema == "mlenv.log-line/1" and .complete')"
m run small -- true
failing_with no-logs m --json logs last

note "a terminal that closes; a supervisor that is killed"
cat >"$work/hang-up.py" <<'PYTHON'
# Starts a command in a session with a terminal of its own, which closes then.
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
out = b""
while True:
    try:
        data = os.read(master, 1000)
    except OSError:
        break
    if not data:
        break
    out += data
os.waitpid(pid, 0)
os.close(master)
sys.stdout.write(out.decode().strip())
PYTHON
supervisor() { # of the only run in the background of $who: the stage, its copy, has a later number
  local pid store=$MLENV_STORE
  [ "$who" = root ] || store=$user_home/store
  pgrep -f '__supervise$' | sort -n | while read -r pid; do
    as_root cat "/proc/$pid/environ" 2>/dev/null | tr '\0' '\n' >"$work/environ" || continue
    if grep -qxF "MLENV_STORE=$store" "$work/environ"; then
      echo "$pid"
      break
    fi
  done
}
mark=86$((RANDOM % 9000 + 1000))
id=$(cd "$work/project" && as_root env MLENV_STORE="$MLENV_STORE" python3 "$work/hang-up.py" \
  bash -c "'$MLENV' run -d --name hung small -- sleep $mark")
equal "it goes on" running "$(record "${id##*[!0-9a-f-]}" .state)"
alive "$mark" || fail "it ended with its terminal"
for who in root user; do
  [ "$who" = root ] || m run -d --name hung small -- sleep "${mark}" >"$work/id"
  as_root kill -KILL "$(supervisor)"
  failing_with run-lost m --json wait hung
  equal "state" lost "$(record hung .state)"
  equal "ps" "" "$(m ps)"
done
wait_until 20 gone "$mark"

note "a terminal for exec"
who=root
m run -d --name tty small -- sleep 600 >"$work/id"
cat >"$work/terminal.py" <<'PYTHON'
# A command on a terminal of 40 by 100, later 30 by 90; says what it is told to say and prints all.
import fcntl, os, pty, signal, struct, sys, termios
def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
pid, master = pty.fork()
if pid == 0:
    size(0, 40, 100)
    os.execvp(sys.argv[1], sys.argv[1:])
out = b""
def until(text):
    global out
    while text not in out:
        out += os.read(master, 1000)
until(b"ready")
os.write(master, b"stty size; echo FIR''ST\n")
until(b"FIRST")
size(master, 30, 90)
os.kill(pid, signal.SIGWINCH)
os.write(master, b"while [ \"$(stty size)\" != '30 90' ]; do :; done; echo SEC''OND\n")
until(b"SECOND")
os.write(master, b"sh -c \"echo SLEEP''ING; exec sleep 600\"\n")
until(b"SLEEPING")  # it is in the foreground by now: ^C is for it, and not for the shell that starts it
os.write(master, b"\x03")  # what was typed and not read yet is gone with it
until(b"^C")
os.write(master, b"echo THI''RD; exit 9\n")
until(b"THIRD")
try:
    while os.read(master, 1000):
        pass
except OSError:
    pass
sys.stdout.write(out.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
as_root env MLENV_STORE="$MLENV_STORE" TERM=xterm timeout 60 python3 "$work/terminal.py" "$MLENV" exec -it tty sh -c 'echo ready; exec sh' \
  >"$work/out" 2>"$work/err" && status=0 || status=$?
[ "$status" = 9 ] || fail "status $status: $(cat "$work/out" "$work/err")"
grep -q '40 100' "$work/out" || fail "another size: $(cat "$work/out")"
m stop tty >/dev/null

note "foreground runs are stopped, too"
m run --name front small -- sleep 600 &
front=$!
listed() { [ "$(m ps --names)" = front ]; }
wait_until 30 listed
m stop front >/dev/null
status=0
wait "$front" || status=$?
equal "status" 143 "$status"
equal "record" "killed stop" "$(record last '"\(.state) \(.end.ended_by)"')"

note "nothing is left"
for who in root user; do
  equal "runs of $who" "" "$(m ps)"
  m runs prune --keep 0 2>/dev/null
done
equal "records, and their output" "" "$(as_root find "$MLENV_STORE/runs" "$user_home/store/runs" -mindepth 1 -name '2*')"
for store in "$MLENV_STORE" "$user_home/store"; do
  ! grep -q " $store" /proc/self/mountinfo || fail "a mount is left in $store"
done
(wait_until 30 no_group_left) || fail "control groups are left:
$(groups_left)"
verify_store
