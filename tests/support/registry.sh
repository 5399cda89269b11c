# shellcheck shell=bash
# A real registry for e2e tests: Debian's docker-registry on 127.0.0.1, on a free port. Source it,
# then call `need` and `start_registry`. Sets $work (a folder that goes with the script).
work=$(mktemp -d)
registry_pid=
mkfifo "$work/never"

# Waits without a sleeping process.
pause() { read -rt "$1" _ <>"$work/never" || true; }

stop_registry() {
  [ -z "$registry_pid" ] && return
  kill "-${1:-TERM}" "$registry_pid" 2>/dev/null || true
  wait "$registry_pid" 2>/dev/null || true
  registry_pid=
}
trap 'stop_registry; rm -rf "$work"' EXIT

# Skips the test unless these programs are there.
need() {
  for program in "$@"; do
    command -v "$program" >/dev/null || { echo "skip: $program is not installed"; exit 77; }
  done
}

# start_registry [PORT [HTTP-LINES [OTHER-LINES]]]: sets $registry (host:port). Data stay in
# $work/data over restarts; the log is $work/registry.log.
start_registry() {
  local log=$work/registry.log
  : >"$log"
  cat >"$work/registry.yml" <<YAML
version: 0.1
log: {level: info, accesslog: {disabled: false}}
storage: {filesystem: {rootdirectory: $work/data}}
http:
  addr: 127.0.0.1:${1:-0}
  secret: e2e
${2:-}
${3:-}
YAML
  docker-registry serve "$work/registry.yml" >>"$log" 2>&1 &
  registry_pid=$!
  for _ in $(seq 200); do
    registry=$(sed -n 's/.*listening on \(127\.0\.0\.1:[0-9]*\).*/\1/p' "$log" | head -n 1)
    [ -n "$registry" ] && return
    pause 0.1
  done
  echo "docker-registry does not start:"
  cat "$log"
  exit 1
}

# random_layer FILE BYTES: a tar with one file that does not compress.
random_layer() {
  mkdir -p "$work/layer"
  head -c "$2" /dev/urandom >"$work/layer/data"
  tar -C "$work/layer" -cf "$1" data
}

# requests METHOD: how many such requests the registry has answered since it started.
requests() { grep -c "\"$1 /v2/" "$work/registry.log" || true; }

fail() {
  echo "FAILED: $*"
  exit 1
}
