#!/usr/bin/env bash
# One run is the same with the built-in runtime, docker and podman, as root and as an ordinary user:
# statuses, streams, terminals, signals, mounts and their owners, limits, ports, names, restarts,
# background and logs. What may differ is listed at the end of the table, and nothing else does. Each of it
# is seen with one engine, and each engine by whoever mostly uses it; all of it with all by everybody, and with the
# built-in runtime (which run-*.sh test), with --long.
# first
# shellcheck disable=SC2016,SC2094,SC2119  # scripts for the shells inside; one file read twice; no options
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need runc python3 jq podman curl
need_root
trap 'status=$?; set +e; end_runs; end_engines; as_root rm -f "/etc/cdi/$vendor.yaml"; (exit "$status"); finish_test' EXIT

base_tree
digest=$("$MLENV" --json inspect base | jq -r .digest)
user_store
mkdir -p "$work/data/below"
as_root mount -t tmpfs -o mode=1777 tmpfs "$work/data/below"
user_world # sees it, too
start_docker
podman_settings
project=$work/project
mkdir -p "$project"
echo original >"$work/data/file"
ln -s data "$work/link"
chmod -R a+rwX "$project" "$work/data"
cd "$project"

place=()
before=()
set_words
set_root_words
# shellcheck disable=SC2016  # for that shell
start "$work/wire.log" "${sudo[@]}" unshare --net sh -c 'ip link set lo up && echo $$ >"$0" && exec sleep 3600' "$work/wire"
wait_until 20 test -s "$work/wire"
wire=$(cat "$work/wire")

# m ARGUMENT…: mlenv as $who. run ARGUMENT…: of $runtime.
m() {
  if [ "$who" = root ]; then
    "${place[@]}" "${before[@]}" "${root_words[@]}" MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"
  else
    "${before[@]}" "${world_words[@]}" MLENV_STORE="$user_home/store" mlenv "$@"
  fi
}
run() { m run --runtime "$runtime" "$@"; }
status_of() { # status_of COMMAND…: its status; what it says is in $work/out and $work/err
  local status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}
same() { # same WHAT EXPECTED FOUND
  if [ "$2" != "$3" ] && [ -s "$work/err" ]; then tail -n 4 "$work/err" >&2; fi
  equal "$who, $runtime: $1" "$2" "$3"
}
said() { grep -qF -- "$1" "$work/err" || fail "$who, $runtime: not said: $1: $(cat "$work/err")"; }
record() { m --json runs show "$1" | jq -r "$2"; } # record RUN EXPRESSION
# mlenv_of NAME: the process of mlenv that has the run of that name. stage_of NAME: the one between it and
# the container, which may be a copy of it.
mlenv_of() {
  local pid
  for pid in $(pgrep -x mlenv); do
    grep -qzxF -- "$1" "/proc/$pid/cmdline" 2>/dev/null || continue
    [ "$(cat "/proc/$(ps -o ppid= -p "$pid" | xargs)/comm")" = mlenv ] || echo "$pid"
  done
}
stage_of() {
  local pid
  for pid in $(pgrep -x mlenv -P "$(mlenv_of "$1")"); do
    if pgrep -P "$pid" >/dev/null; then echo "$pid"; fi
  done
}
alive() { pgrep -f "^sleep $1\$" >/dev/null; }
gone() { ! alive "$1"; }
end_runs() {
  local id
  for who in root user; do
    m ps --names 2>/dev/null | while read -r id; do m stop --time 0 "$id" >/dev/null 2>&1 || true; done
  done
}
marker=86$((RANDOM % 900000 + 100000))

check_status() {
  same "status" 42 "$(status_of run base -- sh -c 'exit 42')"
  local codes=(126)
  [ "$MLENV_TEST_LONG" = 0 ] || codes=(125 126 127)
  for code in "${codes[@]}"; do same "status" "$code" "$(status_of run base -- sh -c "exit $code")"; done
  same "a signal" 143 "$(status_of run base -- sh -c 'kill -TERM $$')"
  same "in the record" "143 15" "$(record last '"\(.end.exit_code) \(.end.signal)"')"
  same "no such program" 127 "$(status_of run base -- no-such-program)"
  said 'not found on the image'
  same "no program" 126 "$(status_of run base -- /etc/passwd)"
  same "wrong usage" 125 "$(status_of run -v "$work/data:/data:x" base -- true)"
  same "a folder that is a file" 125 "$(status_of run -w /etc/passwd base -- true)"
  said 'is a file, not a folder'
  same "a mount that does not fit" 125 "$(status_of m --json run --runtime "$runtime" -v "$work/data:/etc/passwd" base -- true)"
  said '"code":"bad-mount"'
}

check_streams() {
  same "input" hello "$(echo hello | run base -- cat)"
  same "streams apart" out "$(run base -- sh -c 'echo out; echo err >&2' 2>/dev/null)"
  # The user's pipe is root's, who runs this test: no runtime gives it away.
  [ "$who" = user ] || same "opened anew" x "$(run base -- sh -c 'echo x >/dev/stdout')"
  head -c 3000000 /dev/urandom >"$work/bytes"
  run base -- cat <"$work/bytes" | cmp - "$work/bytes" || fail "$who, $runtime: other bytes"
  # shellcheck disable=SC2016  # for the shell inside
  same "a reader that leaves" "141" "$(run base -- sh -c 'set -e; while :; do echo y; done' | head -n 1 >/dev/null; echo "${PIPESTATUS[0]}")"
}

# What a command finds, as $who: the built-in runtime's answer is what the others are held against.
look() { # look FILE
  # Podman has 32768 processes at most for who may not raise limits.
  run -e A=1 base -- sh -c 'env | LC_ALL=C sort | grep -v "^HOME="
    pwd
    mkdir -p "$HOME/.cache/x" && cd ~ && echo "home can be written"
    hostname
    stat -c %a /tmp
    ls -A /tmp /dev/shm | grep -q x || echo "private memory"
    stat -f -c "%b %S" /dev/shm
    cp /bin/true /tmp/ && /tmp/true && echo "memory of programs"
    awk "/^(NoNewPrivs|Seccomp):/ {print}" /proc/self/status
    ulimit -a | grep -v ^process
    umask
    [ $$ -ne 1 ] && echo "not process 1"
    echo "who: $(id -un) $(id -u)" >&2' >"$1" 2>"$work/identity"
}
check_place() {
  look "$work/look"
  diff "$work/$who.look" "$work/look" || fail "$who, $runtime: another place"
  same "who it is" "who: $(ids)" "$(tail -n 1 "$work/identity")"
  same "variables, folder, host name" "1 two /opt/new node7" "$(run -e A=1 -e B=two -w /opt/new --hostname node7 base -- \
    sh -c 'getent hosts node7 >/dev/null && echo $A $B $(pwd) $(hostname)')"
}
ids() { # who a run is
  if [ "$who" = user ] && [ "$runtime" = docker ]; then echo "user-$user_id $user_id"; else echo "root 0"; fi
}

check_mounts() {
  mkdir -p "$work/a,b"
  echo comma >"$work/a,b/file"
  # A folder, what is mounted below it by way of a link, a comma in a name, a file where the image has none, memory.
  same "mounts" "original comma original 100 tmpfs" "$(run -v "$work/data:/data:ro" -v "$work/link:/link:ro" -v "$work/a,b:/comma" \
    -v "$work/data/file:/opt/new/file:ro" --tmpfs /scratch:size=100k base -- sh -c 'cat /data/file /comma/file /opt/new/file
      df -k --output=size,fstype /scratch | tail -n 1
      if (echo new >/data/file) 2>/dev/null; then echo "read-only was written"; fi
      if (echo new >/link/below/new) 2>/dev/null; then echo "what is mounted below read-only was written"; fi' | xargs)"
  same "below a link" "" "$(ls "$work/data/below")"
  # What is mounted is the person's: nothing of ours is written into it, nothing in it removed.
  mkdir -p "$project/kept" "$project/home"
  echo mine | tee "$project/hosts" >"$project/kept/file"
  as_root chmod -R a+rwX "$project"
  same "their own hosts and home" mine "$(run -v "$project/hosts:/etc/hosts" -v "$project/home:/root" base -- cat /etc/hosts)"
  same "the file on the host" mine "$(cat "$project/hosts")"
  same "in the home" "" "$(find "$project/home" -mindepth 1)"
  same "their own folder in /tmp" "1 mine" "$(status_of run --restart on-failure:1 -v "$project/kept:/tmp/kept" base -- sh -c 'exit 1') $(cat "$project/kept/file")"
  as_root rm -rf "$project/kept" "$project/home" "$project/hosts"
  # What the container needs in the project is the caller's.
  same "a folder in memory in the project" tmpfs "$(run -v "$work/data:/workspace/inner/data" --tmpfs /workspace/memory base -- \
    sh -c "touch made-$runtime inner/data/within-$runtime; stat -f -c %T memory")"
  same "a file's owner" "$owner" "$(stat -c %u "made-$runtime")"
  same "a mounted file's owner" "$owner" "$(stat -c %u "$work/data/within-$runtime")"
  same "a mount point's owner" "$owner" "$(stat -c %u inner/data)"
  same "the owner of that in memory" "$owner" "$(stat -c %u memory)"
  as_root rm -rf inner memory "made-$runtime" "$work/data/within-$runtime"
  # Links lead where they lead inside. (crun refuses one that leads nowhere there.)
  mkdir -p "$work/outside"
  ln -s ../outside out
  status_of run -v "$work/data:/workspace/out/data" base -- true >/dev/null
  same "outside of the project" "" "$(ls -A "$work/outside")"
  as_root rm -rf out
  run base -- sh -c 'rm -f /etc/motd; echo x >/opt/x 2>/dev/null' || true
  same "thrown away; read-only" "no yes yes" "$(run --read-only base -- sh -c 'ls /opt | grep x
    for f in /opt /tmp ~; do touch $f/x 2>/dev/null && echo yes || echo no; done' | xargs)"
}

check_signals() {
  local name job status
  # What bash starts in the background ignores SIGINT, and so would mlenv.
  local before=(env --default-signal=INT)
  run --name "signals-$marker" base -- sh -c "trap 'echo USR1 >got' USR1; trap 'echo INT >got' INT; trap 'echo got; exit 9' TERM
    touch ready; while :; do sleep 0.05; done" >"$work/got" &
  job=$!
  wait_until 60 test -e ready
  # mlenv itself is not a child of this shell where another user runs it.
  for name in USR1 INT; do
    as_root kill -s "$name" "$(mlenv_of "signals-$marker")"
    wait_until 20 grep -qsx "$name" got
  done
  as_root kill -s TERM "$(mlenv_of "signals-$marker")"
  status=0
  wait "$job" || status=$?
  same "SIGTERM" "9 got" "$status $(cat "$work/got")"
  as_root rm -f ready got
  for name in mlenv stage; do
    run --name "killed-$name-$marker" base -- sleep "$marker" &
    job=$!
    wait_until 60 alive "$marker"
    as_root kill -KILL "$("${name}_of" "killed-$name-$marker")"
    status=0
    wait "$job" 2>/dev/null || status=$?
    [ "$status" -ne 0 ] || fail "$who, $runtime: its $name was killed, and it ended well"
    wait_until 20 gone "$marker"
    wait_until 20 no_container
  done
}
# engine ARGUMENT…: $runtime itself, as $who has it.
engine() {
  case $who/$runtime in
    */docker) as_root docker --host "$DOCKER_HOST" "$@" ;;
    root/podman) as_engine_root podman "$@" ;;
    user/podman) in_world podman "$@" ;;
  esac
}
# What it still has of our containers.
containers() { [ "$runtime" = builtin ] || engine ps --all --quiet --filter label=dev.mlenv.run; }
no_container() { [ -z "$(containers)" ]; }

check_terminal() {
  local words
  words=("${root_words[@]}" "MLENV_STORE=$MLENV_STORE" "$MLENV")
  if [ "$who" = user ]; then words=("${world_words[@]}" "MLENV_STORE=$user_home/store" mlenv); fi
  words+=(run --runtime "$runtime" -t base -- sh -c 'tty; stty size; read -r line; echo "<$line>"; exit 5')
  cat >"$work/terminal.py" <<'PY'
import fcntl, os, pty, select, signal, struct, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    signal.sigtimedwait([], 0.2)  # the size is set meanwhile
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
seen, sent, end = b"", False, time.monotonic() + 60
while time.monotonic() < end:
    if not select.select([fd], [], [], 0.1)[0]:
        continue
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    seen += data
    if b"33 77" in seen and not sent:
        os.write(fd, b"typed\r")
        sent = True
print(seen.decode(), flush=True)
if time.monotonic() >= end:
    os.kill(pid, signal.SIGKILL)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(0 if status == 5 and b"/dev/pts/" in seen and b"<typed>" in seen else 1)
PY
  python3 "$work/terminal.py" "${words[@]}" >"$work/tty" || fail "$who, $runtime: terminal: $(cat "$work/tty")"
}

check_background() {
  local id
  id=$(run -d --name "back" base -- sh -c 'echo out; echo err >&2; printf part; exit 7')
  same "wait" 7 "$(status_of m wait "$id")"
  same "logs" 0 "$(status_of m logs "$id")"
  same "standard output" "out part" "$(tr '\n' ' ' <"$work/out")"
  same "standard error" err "$(cat "$work/err")"
  same "no such program" 127 "$(status_of run -d base -- no-such-program)"
  id=$(run -d --name one -e A=1 base -- sh -c "echo begun; trap 'echo ended; exit 5' TERM; sleep $marker & wait")
  same "a name that is taken" 125 "$(status_of run --name one base -- true)"
  # shellcheck disable=SC2016  # for the shell inside
  same "exec" "begun 1" "$(m exec one sh -c 'echo begun $A')"
  same "exec: status" 42 "$(status_of m exec one sh -c 'exit 42')"
  same "exec: a signal" 143 "$(status_of m exec one sh -c 'kill -TERM $$')"
  same "exec: no such program" 127 "$(status_of m exec one no-such-program)"
  same "exec: no program" 126 "$(status_of m exec one /etc/passwd)"
  same "exec: no such folder" 125 "$(status_of m exec -w /no/such one true)"
  same "exec: input" hello "$(echo hello | m exec -i one cat)"
  m exec one sh -c 'grep -E "^(Cap|Seccomp:|NoNewPrivs|Uid|Gid)" /proc/self/status' >"$work/exec-rights"
  run base -- sh -c 'grep -E "^(Cap|Seccomp:|NoNewPrivs|Uid|Gid)" /proc/self/status' >"$work/run-rights"
  diff "$work/run-rights" "$work/exec-rights" || fail "$who, $runtime: other rights"
  same "shell" shell "$(echo 'echo shell' | m shell one)"
  m exec one sleep "${marker}1" &
  wait_until 20 alive "${marker}1"
  as_root pkill -KILL -f "mlenv exec one sleep ${marker}1\$"
  wait $! 2>/dev/null || true
  wait_until 20 gone "${marker}1"
  same "stop" "$id" "$(m stop one)"
  same "its status" 5 "$(status_of m wait one)"
  same "its record" "stop" "$(record one .end.ended_by)"
  wait_until 20 gone "$marker"
}

check_watch() {
  run -d --name watched base -- python3 -c 'while True: pass' >/dev/null
  m --json watch --for 2s --interval 500ms watched >"$work/seen" 2>"$work/err" || fail "$who, $runtime: watch: $(cat "$work/err")"
  same "watch" "python3 1 true true true" "$(jq -rs 'map(select(.kind == "sample")) | last |
    "\(.processes[0].name) \(.process_count) \(.cpu.used > 0) \(.memory.resident_bytes > 1000000) \(.io.read_bytes_per_second != null)"' "$work/seen")"
  m stop --time 0 watched >/dev/null
  [ "$who/$runtime" = user/docker ] || return 0
  # Of processes of another user that is told which everybody may see.
  run -d --name watched --user root base -- python3 -c 'while True: pass' >/dev/null
  m --json watch --for 2s --interval 500ms watched >"$work/seen" 2>"$work/err" || fail "$who, $runtime: watch: $(cat "$work/err")"
  same "watch what is root's" "python3 1 true true null" "$(jq -rs 'map(select(.kind == "sample")) | last |
    "\(.processes[0].name) \(.process_count) \(.cpu.used > 0) \(.memory.resident_bytes > 1000000) \(.io.read_bytes_per_second)"' "$work/seen")"
  m stop --time 0 watched >/dev/null
}

# A device of a CDI file of this test's, with hooks as NVIDIA's toolkit writes them. What they do is done here by
# a program of that name, for runtimes that start it.
vendor=mlenv-test-$$.example
specify() {
  local hook=$work/toolkit/nvidia-cdi-hook
  mkdir -p "$work/toolkit" "$work/given/lib"
  echo given >"$work/given/file"
  cp -L "$(ldconfig -p | awk '/libcrypt\.so\.1 .*x86-64|libcrypt\.so\.1 .*AArch64/ {print $NF; exit}')" "$work/given/lib/libcrypt.so.1"
  cat >"$hook" <<'HOOK'
#!/bin/sh
bundle=$(sed 's/.*"bundle": *"\([^"]*\)".*/\1/')
root=$(tr -d '\n' <"$bundle/config.json" | sed 's/.*"root": *{[^}]*"path": *"\([^"]*\)".*/\1/')
case $1 in
  create-symlinks) mkdir -p "$root/opt/links" && ln -s ../given/file "$root/opt/links/file" ;;
  update-ldcache) echo /opt/given/lib >"$root/etc/ld.so.conf.d/00-test.conf" && /sbin/ldconfig -r "$root" ;;
  update-application-profile)
    mkdir -p "$root/etc/nvidia/nvidia-application-profiles-rc.d"
    printf '%s' '{"profiles":[{"name":"_container_","settings":["EGLVisibleDGPUDevices",0x20]}],"rules":[{"pattern":[],"profile":"_container_"}]}' \
      >"$root/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"
    ;;
  enable-cuda-compat | disable-device-node-modification | apply-cuda-memory-limits) ;;
  *) exit 1 ;;
esac
HOOK
  chmod -R a+rX "$work/toolkit" "$work/given"
  chmod 755 "$hook"
  as_root mkdir -p /etc/cdi
  as_root tee "/etc/cdi/$vendor.yaml" >/dev/null <<CDI
cdiVersion: 0.5.0
kind: $vendor/device
containerEdits: {env: [OF_ALL=1]}
devices:
  - name: "0"
    containerEdits:
      env: [DEVICE=0]
      deviceNodes:
        - {path: /dev/vendor/zero, hostPath: /dev/zero}
        - {path: /dev/vendor/full, hostPath: /dev/full, type: c, major: 1, minor: 7, permissions: rw}
        - {path: /dev/nvidia7, hostPath: /dev/zero}
      mounts:
        - {hostPath: $work/given, containerPath: /opt/given, options: [ro, nosuid, nodev, bind]}
        - {hostPath: $work/given/lib, containerPath: /usr/local/cuda/compat, options: [ro, nosuid, nodev, bind]}
      hooks:
        - {hookName: createContainer, path: $hook, args: [nvidia-cdi-hook, create-symlinks, --link, "../given/file::/opt/links/file"]}
        - {hookName: createContainer, path: $hook, args: [nvidia-cdi-hook, update-ldcache, --folder, /opt/given/lib]}
        - {hookName: createContainer, path: $hook, args: [nvidia-cdi-hook, enable-cuda-compat, --host-driver-version=580.65.06]}
        - {hookName: createContainer, path: $hook, args: [nvidia-cdi-hook, disable-device-node-modification]}
        - {hookName: createContainer, path: $hook, args: [nvidia-cdi-hook, update-application-profile]}
        - {hookName: createRuntime, path: $hook, args: [nvidia-cdi-hook, apply-cuda-memory-limits, --driver-root, /, --gpu-id, GPU-0]}
  - name: odd
    containerEdits: {hooks: [{hookName: createContainer, path: /bin/true, args: ["true"]}]}
CDI
}
check_devices() {
  local found expected
  found=$(run --device "$vendor/device=0" base -- sh -c 'cd /dev/vendor && stat -c "%n %F %t:%T" *
    head -c 2 zero | od -An -tx1
    cat /opt/links/file
    grep -o "settings[^]]*]" /etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf
    touch /opt/given/new 2>/dev/null || echo read-only
    ldconfig -p | grep -o "/opt/given/lib.*"
    echo "$OF_ALL $DEVICE"' 2>"$work/err") || fail "$who, $runtime: a device: $(cat "$work/err")"
  expected='full character special file 1:7
zero character special file 1:5
 00 00
given
settings":["EGLVisibleDGPUDevices",0x20]
read-only
/opt/given/lib/libcrypt.so.1
1 0'
  same "a device" "$expected" "$found"
  [ "$runtime" = docker ] || return 0
  same "a hook that mlenv does not know" 125 "$(status_of m --json run --runtime "$runtime" --device "$vendor/device=odd" base -- true)"
  said '"code":"no-device"'
  same "links in an image that stays as it is" 125 "$(status_of m --json run --runtime "$runtime" --read-only --device "$vendor/device=0" base -- true)"
  said '"code":"no-device"'
  same "a limit of GPU memory" 125 "$(status_of m --json run --runtime "$runtime" -e NVIDIA_GPU_MEMORY_LIMIT=9 --device "$vendor/device=0" base -- true)"
  said '"code":"no-device"'
  [ "$who" = root ] || return 0
  # For whoever is not root no program of the image is run as root: the linker's cache stays as it is.
  same "libraries for another user" "/opt/given/lib 0" "$(run --user 7 --device "$vendor/device=0" base -- sh -c 'echo "$LD_LIBRARY_PATH $(ldconfig -p | grep -c /opt/given)"')"
  printf '#!/bin/sh\nexec sleep %s\n' "$marker" >"$work/given/ldconfig"
  chmod 755 "$work/given/ldconfig"
  run --name "waits-$marker" -v "$work/given/ldconfig:/usr/sbin/ldconfig:ro" --device "$vendor/device=0" base -- sleep 600 >"$work/out" 2>"$work/err" &
  local job=$! status=0
  wait_until 60 alive "$marker"
  as_root kill -TERM "$(mlenv_of "waits-$marker")"
  wait_until 40 gone "$marker"
  wait "$job" || status=$?
  same "a signal before the command" 143 "$status"
}

# A run is repeated by what ran it, over layers that are thrown away.
check_reproduce() {
  local folders by store=$MLENV_STORE
  [ "$who" = root ] || store=$user_home/store
  mkdir -p out deep "$work/words"
  echo original >"$work/words/file"
  as_root chown "$owner:$owner" out deep "$work/words"
  run --outputs out -v "$work/words:/data" base -- sh -c 'echo result >out/result; echo more >deep/more; { mkdir -p deep/theirs/in && chown -R 7:7 deep/theirs && chmod 700 deep/theirs; } 2>/dev/null; cat /data/file >>out/result' || fail "$who, $runtime: a run with outputs"
  as_root rm -rf deep/more deep/theirs
  folders=$(find . "$work/words" -printf '%p %s %T@\n' | LC_ALL=C sort)
  same "reproduce" 0 "$(status_of m --json reproduce --with-present-code last)"
  same "what it gave" "same out/result" "$(jq -r '"\(.result) \(.files | map(.path) | join(" "))"' "$work/out")"
  same "what is left in the store" "" "$(as_root find "$store" -name theirs)"
  same "the person's folders" "$folders" "$(find . "$work/words" -printf '%p %s %T@\n' | LC_ALL=C sort)"
  by=$(record "$(jq -r .by "$work/out")" '.start.runtime // "built-in"' | cut -d' ' -f1)
  case $who/$runtime in
    */builtin) ;;
    user/docker)
      same "by" built-in "$by"
      grep -q 'runtime: docker ' "$work/out" || fail "$who, $runtime: it does not say that the runtime is another: $(cat "$work/out")"
      m --json reproduce --with-present-code --runtime docker last >"$work/out" 2>"$work/err" && fail "root's daemon repeats a user's run"
      said '"code":"cannot-reproduce"'
      ;;
    *)
      same "by" "$runtime" "$by"
      same "by the built-in one" 0 "$(status_of m --json reproduce --with-present-code --runtime builtin last)"
      ;;
  esac
  as_root rm -rf out deep
}

check_life() {
  local job status=0
  if [ "$runtime" != builtin ]; then
    run --restart on-failure:3 base -- sleep "$marker" &
    job=$!
    wait_until 60 alive "$marker"
    engine kill "$(containers)" >/dev/null
    wait "$job" || status=$?
    same "a container that somebody killed" "137 137" "$status $(record last .end.exit_code)"
    wait_until 20 gone "$marker"
  fi
  same "timeout" 124 "$(status_of run --timeout 1s base -- sleep 600)"
  same "attempts" 0 "$(status_of run --restart on-failure:2 --tmpfs /mem base -- sh -c 'ls /tmp /dev/shm /mem | grep -c x
    echo x >>$HOME/count; wc -l <$HOME/count; touch /tmp/x /dev/shm/x /mem/x; [ "$(wc -l <$HOME/count)" = 3 ] || exit 3')"
  same "each has new memory, and what the one before wrote" "0 1 0 2 0 3" "$(xargs <"$work/out")"
  same "in the record" "3 0" "$(record last '"\(.attempts.ended) \(.end.exit_code)"')"
}

check_limits() {
  if [ "$who" = user ] && [ "$runtime" != docker ] && [ -e /sys/fs/cgroup/memory ]; then
    # With control groups of version 1 users have none of their own.
    m --json run --runtime "$runtime" --memory 64m base -- true 2>"$work/err" && fail "the limit was left out"
    said '"code":"no-limit"'
    return
  fi
  same "limits: processors, files" "1 777" "$(run --memory 64m --cpus 0.5 --cpuset-cpus 0 --pids-limit 40 --ulimit nofile=777 base -- \
    sh -c 'nproc; ulimit -n' | xargs)"
  run --pids-limit 20 base -- sh -c 'for i in $(seq 40); do sleep 5 & done; kill $(jobs -p)' 2>"$work/err" && fail "more processes than allowed"
  same "no memory" 137 "$(status_of run --memory 64m base -- python3 -c 'x = bytearray(200_000_000)')"
  same "in the record" true "$(record last .end.out_of_memory)"
}

check_network() {
  local port
  port=$(free_port)
  # /sys shows an ordinary user the host's devices.
  # shellcheck disable=SC2016  # for awk
  same "none" lo "$(run --network none base -- awk -F: 'NR > 2 {print $1}' /proc/net/dev | xargs)"
  start "$work/taken" python3 -m http.server --bind 127.0.0.1 "$port"
  wait_until 20 curl --noproxy '*' -fs "http://127.0.0.1:$port/"
  m --json run --runtime "$runtime" -p "$port:80" base -- true >"$work/out" 2>"$work/err" && fail "$who, $runtime: the port was taken"
  said '"code":"port-taken"'
  port=$(free_port)
  # This daemon has no bridge, and not every machine lets users make networks.
  if [ "$runtime" = docker ] || { [ "$who" = user ] && ! in_world test -w /dev/net/tun; }; then
    m --json run --runtime "$runtime" -p "$port:80" base -- true >"$work/out" 2>"$work/err" && fail "there is no network, and the port was passed on"
    said '"code":"no-network"'
    return
  fi
  # podman of root makes a bridge: on a network of the test's own.
  [ "$who $runtime" != "root podman" ] || place=("${sudo[@]}" nsenter --net="/proc/$wire/ns/net")
  run -d --name served -p "$port:8000" base -- python3 -m http.server 8000 >/dev/null
  wait_until 30 "${place[@]}" curl --noproxy '*' -fs "http://127.0.0.1:$port/"
  m stop --time 0 served >/dev/null
  place=()
}

specify
checks=(status streams place mounts signals terminal background watch devices reproduce life limits network)
declare -A took
for who in ${MLENV_TEST_WHO:-root user}; do
  owner=0
  runtime=builtin
  if [ "$who" = user ]; then owner=$user_id; fi
  look "$work/$who.look"
  same "who it is" "who: root 0" "$(tail -n 1 "$work/identity")"
  for words in "A=1" "/workspace" "home can be written" "$(hostname)" 1777 "private memory" "memory of programs" "not process 1" \
    "$(printf 'NoNewPrivs:\t1')" "$(printf 'Seccomp:\t2')"; do
    grep -qxF -- "$words" "$work/$who.look" || fail "$who: not \`$words\`: $(cat "$work/$who.look")"
  done
  for runtime in ${MLENV_TEST_RUNTIMES:-builtin docker podman}; do
    note "$who, $runtime"
    wanted=("${checks[@]}")
    case $MLENV_TEST_LONG/$who/$runtime in
      0/root/docker) wanted=(status place devices life limits network) ;;
      0/root/podman) wanted=(mounts devices reproduce) ;;
      0/user/docker) wanted=(place background watch) ;;
      0/user/podman) wanted=(streams place signals terminal background network) ;;
      0/*/builtin) continue ;;
    esac
    for check in "${wanted[@]}"; do
      began=${EPOCHREALTIME/./}
      "check_$check"
      took["$who $runtime $check"]=$(((${EPOCHREALTIME/./} - began) / 1000))
    done
    wait_until 20 no_container
  done
done

note "engines that are not to be had"
who=root
failing_with no-engine env PATH=/nowhere "$MLENV" --json run --runtime docker base -- true
failing_with engine-down env DOCKER_HOST="unix://$work/nothing" "$MLENV" --json run --runtime docker base -- true
as_root chown 0 "$work/docker/socket"
failing_with engine-denied in_world MLENV_STORE="$user_home/store" mlenv --json run --runtime docker base -- true
mkdir "$work/tiny"
as_root mount -t tmpfs -o size=10m tmpfs "$work/tiny"
printf '[storage]\ndriver="overlay"\ngraphroot="%s/tiny/root"\nrunroot="%s/tiny/run"\n' "$work" "$work" >"$work/podman/tiny.conf"
failing_with engine-image as_root env CONTAINERS_CONF="$work/podman/containers.conf" CONTAINERS_STORAGE_CONF="$work/podman/tiny.conf" \
  MLENV_STORE="$MLENV_STORE" "$MLENV" --json run --runtime podman base -- true

if [ -e /sys/fs/cgroup/unified/cgroup.procs ] && command -v crun >/dev/null; then
  note "podman's crun where control groups of both versions are in use"
  sed 's/^runtime=.*/runtime="crun"/' "$work/podman/containers.conf" >"$work/podman/crun.conf"
  with_crun=("${root_words[@]}" CONTAINERS_CONF="$work/podman/crun.conf" MLENV_STORE="$MLENV_STORE" "$MLENV")
  equal "runc in its place" again "$("${with_crun[@]}" run --runtime podman base -- echo again)"
  equal "its record" "with runc" "$(record last .start.runtime | cut -d' ' -f3-)"
  failing_with no-runtime "${sudo[@]}" unshare --mount sh -c 'mount --bind /dev/null "$0" && exec "$@"' "$(command -v runc)" \
    "${with_crun[@]}" --json run --runtime podman base -- true
fi

note "an image that was removed from an engine is handed over again"
as_root docker --host "$DOCKER_HOST" image rm --force "localhost/mlenv:${digest#sha256:}" >/dev/null
runtime=docker
equal "after it was removed" again "$(run base -- echo again)"
equal "its record" docker "$(record last .start.runtime | cut -d' ' -f1)"
verify_store

echo "milliseconds of each check:"
for check in "${checks[@]}"; do
  printf '%-12s' "$check"
  for who in root user; do
    for runtime in builtin docker podman; do printf '%16s' "$who $runtime ${took["$who $runtime $check"]:-}" ; done
  done
  echo
done
