#!/usr/bin/env bash
# Container engines that lie, hang up or have something else by the name of ours, and images made for
# whoever hands them to one: nothing but the run's own container is touched, and what an engine says
# wrong is its failure, not a bug of mlenv's. What is no matter of the engine is tried with one of them; with --long
# with both.
# shellcheck disable=SC2016  # for other shells
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need busybox python3 jq runc podman docker dockerd
need_root
trap 'status=$?; set +e; end_engines; (exit "$status"); finish_test' EXIT
python3 "$root/tests/support/busybox_image.py" "$work/base.tar" hostile/base:v1
"$MLENV" -q load "$work/base.tar" >/dev/null
layers=$("$MLENV" inspect hostile/base:v1 --json | jq -c '[.layers[].diff_id]')

# An engine that answers as $work/answers says: FIRST-WORD has what it says, and its status by FIRST-WORD.status.
mkdir -p "$work/fake" "$work/answers"
cat >"$work/fake/docker" <<'SCRIPT'
#!/bin/sh
folder=$(dirname "$0")/../answers
echo "$*" >>"$folder/asked"
if [ -e "$folder/$1" ]; then cat "$folder/$1"; fi
if [ -e "$folder/$1.err" ]; then cat "$folder/$1.err" >&2; fi
if [ -e "$folder/$1.status" ]; then exit "$(cat "$folder/$1.status")"; fi
SCRIPT
chmod +x "$work/fake/docker"
cp "$work/fake/docker" "$work/fake/podman"
faked() { PATH=$work/fake:$PATH "$MLENV" --json run --runtime "$@"; }

note "junk for an answer"
junk=('' '[]' '"text"' 'null' '{' '{"ServerErrors":"text"}' '{"ServerErrors":{"a":1}}' '{"ServerErrors":[1]}' '{"ServerVersion":7}'
  '{"host":"text","version":{"Version":"4"}}' '{"host":[],"version":[]}' '{"host":{"security":"text","ociRuntime":4},"version":"4"}'
  '{"host":{"cgroupControllers":4,"cgroupVersion":"v2"},"version":null}')
for engine in docker podman; do
  for text in "${junk[@]}"; do
    printf '%s' "$text" >"$work/answers/info"
    status=0
    faked "$engine" hostile/base:v1 -- true >"$work/out" 2>"$work/err" </dev/null || status=$?
    equal "status where $engine says $text" 125 "$status"
    grep -q '"code":"internal"' "$work/err" && fail "$engine, $text: $(cat "$work/err")"
  done
  python3 -c 'import sys; sys.stdout.write("[" * 200000)' >"$work/answers/info"
  failing_with engine-down faked "$engine" hostile/base:v1 -- true
  printf '{"ServerErrors":["\\u001b]0;owned\\u0007"]}' >"$work/answers/info"
  failing_with engine-down faked "$engine" hostile/base:v1 -- true
  ! grep -q $'\x1b' "$work/err" || fail "an engine drives the terminal"
done

note "somebody else's container has the name"
printf '{"ServerVersion":"20.10.24"}' >"$work/answers/info"
echo "[{\"RootFS\": {\"Layers\": $layers}, \"Config\": {}}]" >"$work/answers/image"
echo 1 >"$work/answers/run.status"
echo 'docker: Error response from daemon: Conflict. The container name "/mlenv-x" is already in use' >"$work/answers/run.err"
printf 'not an id\n--all\n' >"$work/answers/ps"
: >"$work/answers/asked"
failing_with run-failed faked docker hostile/base:v1 -- true
grep -E '^rm ' "$work/answers/asked" && fail "removed a container that is not its own"
name=$(grep -oE -m 1 -- '--name mlenv-[0-9a-f]+' "$work/answers/asked" | cut -d' ' -f2)
grep -qxF "ps --all --quiet --no-trunc --filter label=dev.mlenv.run=$name" "$work/answers/asked" ||
  fail "did not ask for its own: $(cat "$work/answers/asked")"
note "its own is removed, by its id"
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
echo "$id" >"$work/answers/ps"
failing_with run-failed faked docker hostile/base:v1 -- true
grep -qxF "rm --force --volumes $id" "$work/answers/asked" || fail "did not remove its own container"

note "an image that was made for an engine"
printf 'root:x:0:0:root:/root,type=bind,source=/,target=/host:/bin/sh\n' >"$work/passwd"
python3 "$root/tests/support/busybox_image.py" "$work/made.tar" hostile/made:v1 --file "etc/passwd=$work/passwd" --annotations '{
  "io.containers.trace-syscall": "of:/tmp/trace", "run.oci.hooks.stdout": "/owned", "example.org/x": "y"}' --config '{
  "Entrypoint": ["/bin/sh", "-c", "echo ENTRYPOINT"], "Cmd": ["/bin/sh"], "User": "0:0", "WorkingDir": "/opt/../../..",
  "Env": ["PATH=/bin", "LD_PRELOAD=/opt/x.so", "GLIBC_TUNABLES=glibc.malloc.check=3", "LISTEN_FDS=9", "NOTIFY_SOCKET=/x", "=x",
    "NVIDIA_VISIBLE_DEVICES=all"],
  "Labels": {"dev.mlenv.run": "other", "io.podman.annotations.privileged": "TRUE",
    "io.containers.capabilities": "NET_BIND_SERVICE"}, "StopSignal": "SIGNONE", "ExposedPorts": {"80/tcp": {}},
  "Volumes": {"/etc": {}, "/run": {}, "/": {}, "/proc": {}, "/run/mlenv/keeper": {}}, "OnBuild": ["RUN false"],
  "Healthcheck": {"Test": ["CMD-SHELL", "echo HEALTH >/tmp/health"], "Interval": 1000000000}}'
"$MLENV" -q load "$work/made.tar" >/dev/null
# shellcheck disable=SC2119  # no options
start_docker
podman_settings
m() { as_engine_root MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"; }
probe='echo began; test ! -e /host || echo ESCAPED; ls /host 2>/dev/null
if mkdir /tmp/m && mount -t proc proc /tmp/m 2>/dev/null; then echo MAY-MOUNT; fi
test ! -e /tmp/health || echo HEALTH; echo open $(ls /proc/self/fd | tr "\n" " ")
echo caps $(sed -n "s/^CapEff:.//p" /proc/self/status)
if cat /proc/1/environ >/dev/null 2>&1; then echo TRACES-THE-FIRST; fi'
look_at() { # look_at WHAT
  grep -q began "$work/out" || fail "$1: $(cat "$work/out" "$work/err")"
  grep -E 'ESCAPED|MAY-MOUNT|HEALTH|ENTRYPOINT|TRACES' "$work/out" && fail "$1: see above"
  grep -qE '^open 0 1 2 3 ?$' "$work/out" || fail "$1: $(grep open "$work/out")"
  equal "$1: capabilities" 00000000a80405fb "$(sed -n 's/^caps //p' "$work/out")"
}
for engine in podman docker; do
  for more in "" --read-only; do
    case $MLENV_TEST_LONG/$engine/$more in 0/podman/ | 0/docker/--read-only) continue ;; esac
    # shellcheck disable=SC2086  # words
    (exec 7<"$work" 9<"$work/answers" && m run --runtime "$engine" $more --tmpfs /tmp hostile/made:v1 -- sh -c "$probe") \
      >"$work/out" 2>"$work/err" </dev/null || fail "$engine $more: $(cat "$work/err")"
    look_at "$engine $more"
  done
  equal "containers that are left" "" "$(as_engine_root "$engine" ps -aq)"
done
equal "volumes that are left" "" "$(as_engine_root docker volume ls -q)"

note "an image whose /dev leads to the machine"
mkdir "$work/machine"
echo kept >"$work/machine/ptmx"
for way in "" ../../../../../../../../../../../..; do
  python3 "$root/tests/support/busybox_image.py" "$work/dev.tar" hostile/dev:v1 "dev@$way$work/machine"
  "$MLENV" -q load "$work/dev.tar" >/dev/null
  for engine in podman docker; do
    case $MLENV_TEST_LONG/$engine/$way in 0/podman/ | 0/docker/?*) continue ;; esac
    m run --runtime "$engine" --no-check --no-project hostile/dev:v1 -- ls -l /dev/fd >"$work/out" 2>"$work/err" </dev/null ||
      fail "$engine: $(cat "$work/err")"
    equal "$engine: the machine's folder" "ptmx kept" "$(ls -A "$work/machine") $(cat "$work/machine/ptmx")"
    grep -q /proc/self/fd "$work/out" || fail "$engine: $(cat "$work/out")"
  done
done

note "an image that somebody else put under our name"
name=localhost/mlenv:$("$MLENV" inspect hostile/made:v1 --json | jq -r '.digest[7:]')
for engine in podman docker; do
  as_engine_root "$engine" image inspect "$name" >"$work/shown"
  equal "$engine: what it knows of the image's settings" '[{},[]]' \
    "$(jq -c '[.[0].Annotations // {}, [.[0].Config | (.Env, .Labels, .Volumes, .StopSignal) | select(. != null and . != "")]]' "$work/shown")"
done
python3 "$root/tests/support/busybox_image.py" "$work/oci.tar" "$name" --file "etc/passwd=$work/passwd" --config '{"Env": ["HELD=x"]}'
as_engine_root podman load --quiet --input "$work/oci.tar" >/dev/null
"$MLENV" -q load "$work/oci.tar" >/dev/null
"$MLENV" save "$name" "docker-archive:$work/docker.tar" 2>/dev/null
as_engine_root docker load --quiet --input "$work/docker.tar" >/dev/null
for engine in podman docker; do
  equal "$engine: it has another" 1 "$(as_engine_root "$engine" image inspect "$name" | grep -c HELD=x)"
  m run --runtime "$engine" hostile/made:v1 -- true >"$work/out" 2>"$work/err" </dev/null || fail "$engine: $(cat "$work/err")"
  equal "$engine: it has ours" 0 "$(as_engine_root "$engine" image inspect "$name" | grep -c HELD=x || true)"
done

note "a folder that cannot be entered is named"
for engine in podman docker; do
  failing_with bad-workdir m --json run --runtime "$engine" --no-check --no-project -w /proc/1/cwd hostile/base:v1 -- true
  grep -qF '/proc/1/cwd' "$work/err" || fail "$engine: $(cat "$work/err")"
done

note "pipes and links in the place of the control group's files"
mkdir -p "$work/groups/memory"
mkfifo "$work/groups/memory.events" "$work/groups/memory/memory.oom_control"
ln -s /dev/zero "$work/groups/memory/memory.events"
for engine in podman docker; do
  # shellcheck disable=SC2016  # for that shell
  ends_with 0 timeout --kill-after=1 60 "${root_words[@]}" MLENV_STORE="$MLENV_STORE" "$MLENV" run --runtime "$engine" --no-project \
    -v "$work/groups:/sys/fs/cgroup" hostile/base:v1 -- true
done
