#!/usr/bin/env bash
# `mlenv watch`: real jobs that use all processors, one, or wait for input, each with its own sentence; its
# terminal; runs that have ended. GPUs are those of a stand-in of NVML, which shows nothing of real ones.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc python3 jq cc unshare
need_root

small_tree
user_store
mkdir -p "$work/project" "$work/slow" "$work/nvml"
chmod a+rwX "$work/project"

m() { (cd "$work/project" && as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"); }
mu() { (cd "$work/project" && as_user MLENV_STORE="$user_home/store" mlenv "$@"); }
stop_all() {
  local id
  for who in m mu; do
    "$who" ps --names 2>/dev/null | while read -r id; do "$who" stop --time 0 "$id" >/dev/null 2>&1 || true; done
  done
}
trap 'status=$?; stop_all; (exit "$status"); finish_test' EXIT

# answer NAME EXPRESSION: of what a watch printed to $work/NAME.json
answer() { tail -n 1 "$work/$1.json" | jq -r "$2"; }
rules() { answer "$1" '[.findings[].rule] | join(" ")'; }
# first_of NAME RULE…: the first thing that is said, and not for want of processors
first_of() {
  local name=$1 found
  shift
  found=$(answer "$name" .findings[0].rule)
  case " $* " in *" $found "*) ;; *) fail "$name: \`$(rules "$name")\`, not $*: $(tail -n 1 "$work/$name.json")" ;; esac
}

cat >"$work/project/jobs.py" <<'PYTHON'
import multiprocessing, os, socket, sys, time

def burn(_=None):
    while True:
        pass

def read_all(read):
    while read():
        sum(range(1000))

job = sys.argv[1]
if job == "one":
    burn()
elif job == "all":
    usable = len(os.sched_getaffinity(0))
    multiprocessing.Pool(usable).map(burn, range(usable))
elif job == "disk":
    with open("/data/data", "rb", buffering=0) as file:
        read_all(lambda: file.read(4096))
elif job == "network":
    with socket.create_connection(("127.0.0.1", int(sys.argv[2])), timeout=60) as source:
        read_all(lambda: source.recv(4096))
elif job == "pipe":
    with open("fifo", "rb", buffering=0) as source:
        read_all(lambda: source.read(4096))
elif job == "idle":
    time.sleep(600)
PYTHON
cat >"$work/trickle.py" <<'PYTHON'
# A few bytes every now and then: to whoever connects to a port, or to a FIFO.
import socket, sys, time
if sys.argv[1] == "fifo":
    out = open(sys.argv[2], "wb", buffering=0)
    send = out.write
else:
    server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    connection, _ = server.accept()
    send = connection.sendall
try:
    while True:
        send(b"x" * 100)
        time.sleep(0.3)
except OSError:
    pass
PYTHON

# job NAME ARGUMENT…: jobs.py in the background
job() {
  local name=$1 options=()
  shift
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  m run -d --name "$name" "${options[@]}" small -- python jobs.py "${@:2}" >"$work/id"
}
watching() { m --json watch "$1" --interval 0.4s --for 4.5s >"$work/$1.json"; }

note "jobs that wait: for a slow file system, the network, another process"
waiting=(network pipe)
if [ -e /dev/fuse ]; then
  start "$work/slow.log" "${sudo[@]}" python3 "$root/tests/support/slow_files.py" "$work/slow" 0.25
  slow_is_there() { as_root test -e "$work/slow/data"; }
  wait_until 20 slow_is_there
  job disk -v "$work/slow:/data:ro" -- disk
  waiting+=(disk)
fi
port=$(free_port)
start "$work/trickle.log" python3 "$work/trickle.py" port "$port"
mkfifo "$work/project/fifo"
start "$work/fifo.log" python3 "$work/trickle.py" fifo "$work/project/fifo"
listening() { grep -qi ":$(printf %04X "$port") " /proc/net/tcp; }
wait_until 20 listening
job network -- network "$port"
job pipe -- pipe
watchers=()
for name in "${waiting[@]}"; do
  watching "$name" &
  watchers+=($!)
done
for watcher in "${watchers[@]}"; do wait "$watcher" || fail "a watch failed"; done
for name in "${waiting[@]}"; do
  first_of "$name" "waits-for-$name"
  [ "$(answer "$name" '.findings[0].try | length')" -gt 0 ] || fail "$name: no advice"
  equal "$name goes on" running "$(answer "$name" .state)"
done
equal "where from" "127.0.0.1:$port" "$(answer network .figures.waited_at)"
[ ! -e "$work/disk.json" ] || equal "which file" /data/data "$(answer disk .figures.waited_at)"
jq -se '.[:-1] | length >= 5 and all(.kind == "sample")' "$work/pipe.json" >/dev/null || fail "samples"
for name in "${waiting[@]}"; do m stop --time 0 "$name" >/dev/null; done
equal "what was seen is kept" waits-for-pipe "$(m --json watch pipe | jq -r .findings[0].rule)"

note "one thread"
job one -e OMP_NUM_THREADS=1 -- one
m watch one --for 6s --interval 1s >"$work/text.out" 2>"$work/text.err" &
watcher=$!
watching one
if [ "$(nproc)" -gt 1 ]; then
  first_of one one-thread
  answer one '.findings[0].try[]' >"$work/advice"
  grep -qF 'OMP_NUM_THREADS=1' "$work/advice" || fail "not named: $(cat "$work/advice")"
else
  first_of one healthy busy-machine
fi

note "its terminal: a screen of its own, another size, Ctrl-C; the run goes on"
cat >"$work/terminal.py" <<'PYTHON'
# A command on a terminal of 24 by 80, then 12 by 40; leaves by the key that is asked for.
import fcntl, os, pty, re, signal, struct, sys, termios
def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
pid, master = pty.fork()
if pid == 0:
    size(0, 24, 80)
    os.execvp(sys.argv[2], sys.argv[2:])
out = b""
def until(done):
    global out
    while not done(out):
        out += os.read(master, 65536)
OWN, THEIRS, TOP, BELOW = b"\033[?1049h", b"\033[?1049l", b"\033[H", b"\033[J"
def frames(data):  # whole ones
    return [part.split(BELOW)[0] for part in data.split(TOP)[1:] if BELOW in part]
def lines(frame):
    return [re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", line).rstrip("\r") for line in frame.decode().split("\n")]
def check(frame, rows, columns):
    found = lines(frame)
    assert len(found) <= rows, found
    assert all(len(line) <= columns for line in found), found
    return found
until(lambda data: any(b"so far:" in frame for frame in frames(data)))
wide = check([frame for frame in frames(out) if b"so far:" in frame][-1], 24, 80)
assert out.startswith(OWN) or OWN in out
assert any("processors" in line for line in wide) and any("PROCESS" in line for line in wide), wide
before = len(out)
size(master, 12, 40)
os.kill(pid, signal.SIGWINCH)
until(lambda data: len(frames(data[before:])) > 1)
check(frames(out[before:])[-1], 12, 40)
before = len(out)
os.write(master, b"q" if sys.argv[1] == "q" else b"\x03")
until(lambda data: THEIRS in data[before:])
try:
    while True:
        data = os.read(master, 65536)
        if not data:
            break
        out += data
except OSError:
    pass
sys.stdout.write("\n".join(wide) + "\n---\n" + out.split(THEIRS)[-1].decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
for key in q interrupt; do
  as_root env MLENV_STORE="$MLENV_STORE" TERM=xterm timeout 60 \
    python3 "$work/terminal.py" "$key" "$MLENV" watch one --interval 0.3s >"$work/screen" 2>"$work/err" ||
    fail "$key: $(cat "$work/screen" "$work/err")"
  sed '1,/^---$/d' "$work/screen" >"$work/said"
  grep -qE '^(too-short|one-thread|healthy|busy-machine): ' "$work/said" || fail "no answer: $(cat "$work/screen")"
  equal "the run goes on" one "$(m ps --names)"
done

note "without a terminal, and what is wrong"
wait "$watcher" || fail "a watch failed: $(cat "$work/text.err")"
grep -qE '^ +[0-9]+ s  [0-9.]+/[0-9.]+ CPUs, ' "$work/text.err" || fail "no line: $(cat "$work/text.err")"
m -q watch one --for 0.3s >"$work/out" 2>"$work/err"
equal "quiet" "" "$(cat "$work/err")"
grep -q '^too-short: ' "$work/out" || fail "said: $(cat "$work/out")"
failing_with run-unseen as_root env MLENV_STORE="$MLENV_STORE" unshare --pid --fork --mount-proc "$MLENV" --json watch one
m_to_the_end=(as_root env MLENV_STORE="$MLENV_STORE" timeout 60 "$MLENV" -q watch --interval 1h)
(cd "$work/project" && "${m_to_the_end[@]}" --for 1s one) >"$work/out" || fail "--for waits for the interval"
m stop --time 0 one >/dev/null
failing_with run-ended m --json watch
failing_with usage m --json watch one --interval 1ms
failing_with no-run m --json watch nobody

job quota --cpus 0.2 -- all
watching quota &
watcher=$!
note "a run that ends while it is watched; one that nobody watched"
m run -d --name brief small -- sleep 2 >"$work/id"
m --json watch brief >"$work/brief.json" &
other=$!
(cd "$work/project" && "${m_to_the_end[@]}" brief) >"$work/out" || fail "the run's end waits for the interval"
wait "$other" || fail "a watch failed"
equal "its end" "done" "$(answer brief .state)"
m run --name unseen small -- true
m --json watch unseen >"$work/unseen.json"
equal "of its record" "record too-short" "$(answer unseen '"\(.from) \(.findings[0].rule)"')"

note "a quota"
wait "$watcher" || fail "a watch failed"
equal "usable" 20 "$(answer quota '.figures.cpu.usable * 100 | round')"
first_of quota cpu-quota
m stop --time 0 quota >/dev/null

note "all processors, by an ordinary user"
mu run -d --name all small -- python jobs.py all >"$work/id"
mu --json watch all --for 5s --interval 0.5s >"$work/all.json"
mu stop --time 0 all >"$work/out"
first_of all healthy busy-machine cpu-quota
if [ "$(rules all)" = healthy ]; then equal "advice" 0 "$(answer all '[.findings[].try[]] | length')"; fi

note "GPUs"
cc -Wall -Wextra -Werror -O1 -shared -fPIC -o "$work/nvml/libnvidia-ml.so.1" "$root/tests/support/standin_nvml.c"
cat >"$work/nvidia.yaml" <<'CDI'
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - {name: "0", containerEdits: {env: [DEVICE=0]}}
  - {name: "1", containerEdits: {env: [DEVICE=1]}}
CDI
# gpus NAME STATE JOB: watched beside a stand-in of NVML; in a mount namespace whose /etc/cdi is its own.
# shellcheck disable=SC2016  # for the shell inside
gpus() {
  printf '%s\n' "$2" >"$work/state-$1"
  as_root env MLENV_STORE="$MLENV_STORE" STANDIN_NVML="$work/state-$1" LD_LIBRARY_PATH="$work/nvml" \
    unshare --mount sh -euc 'mkdir -p /etc/cdi; mount -t tmpfs none /etc/cdi; cp "$2/nvidia.yaml" /etc/cdi/
      cd "$2/project"
      "$1" run -d --name "$3" --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 small -- python jobs.py "$4" >"$2/id-$3"
      "$1" --json watch "$3" --for 4s --interval 0.4s >"$2/$3.json"
      "$1" stop --time 0 "$3" >"$2/id-$3"' sh "$MLENV" "$work" "$1" "$3"
}
gpus sick hang idle &
watcher=$!
gpus busy-gpus $'97 50 4000 8000 300000 400000 60 4 1000 0\n95 50 4000 8000 300000 400000 60 0 1000 0' one
equal "busy GPUs, one thread" healthy "$(rules busy-gpus)"
equal "what NVML says" '[97,4194304000,300,60,1000000,["power-cap"]]' "$(head -n 1 "$work/busy-gpus.json" |
  jq -c '.gpus[0] | [.busy_percent, .memory_used_bytes, .power_watts, .temperature_celsius, .pcie_received_bytes_per_second, .slowed_by]')"
gpus starved $'12 1 4000 8000 90000 400000 40 0 0 0\n0 0 0 8000 60000 400000 35 40 0 0\n90 0 0 8000 60000 400000 35 0 0 0' one
equal "two of three, one of them idle and hot" '["gpus-unused","gpu-slowed"]' "$(answer starved '[.findings[:2][].rule] | tojson')"
equal "those of the run alone" '[0,1]' "$(answer starved '[.figures.gpus[].index] | tojson')"
if [ "$(nproc)" -gt 1 ]; then
  case " $(rules starved) " in *" gpu-waits-for-loader "*) ;; *) fail "starved: $(rules starved)" ;; esac
fi
wait "$watcher" || fail "a watch failed"
equal "a driver that hangs" null "$(answer sick .figures.gpus)"
answer sick .figures.gpus_unknown >"$work/why"
grep -qF 'does not answer' "$work/why" || fail "why: $(cat "$work/why")"

note "every line fits the schema, which has the rules of the documentation"
# shellcheck disable=SC2016  # for sed
sed -n '/^## Rules/,/^## Where/s/^| `\([a-z-]*\)` .*/\1/p' "$root/docs/watch.md" | LC_ALL=C sort >"$work/documented"
jq -r '.oneOf[1].properties.findings.items.properties.rule.enum[]' "$root/tests/schema/watch-1.json" |
  LC_ALL=C sort | diff "$work/documented" - || fail "other rules are documented"
if python3 -c 'import jsonschema' 2>/dev/null; then
  cat "$work"/*.json | python3 "$root/tests/schema/check.py" >"$work/out" || fail "$(cat "$work/out")"
fi

note "nothing is left"
equal "runs" "" "$(m ps; mu ps)"
verify_store
