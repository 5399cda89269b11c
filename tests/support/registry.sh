# shellcheck shell=bash disable=SC2154,SC2119,SC2120  # tests/lib.sh sets $work
# A registry that tests of push and pull may configure, stop and start again: Debian's
# docker-registry on 127.0.0.1. To be sourced after tests/lib.sh.
registry_pid=

# logged_registry [PORT [HTTP-LINE [OTHER-LINE]]]: sets $registry (127.0.0.1:PORT) and $registry_pid.
# Data stay in $work/registry over restarts; $work/registry.log has a line for each request.
logged_registry() {
  need docker-registry
  local port=${1:-$(free_port)}
  cat >"$work/registry.yml" <<CONFIG
version: 0.1
log: {level: info}
storage: {filesystem: {rootdirectory: $work/registry}}
http:
  addr: 127.0.0.1:$port
  secret: test
${2:-}
${3:-}
CONFIG
  start "$work/registry.log" docker-registry serve "$work/registry.yml"
  registry_pid=${started[-1]}
  registry=127.0.0.1:$port
  wait_until 20 grep -q 'listening on' "$work/registry.log"
}

kill_registry() {
  kill -KILL "$registry_pid"
  wait "$registry_pid" 2>/dev/null || true
}

# random_image FOLDER BYTES: an OCI layout with one layer that does not compress.
random_image() {
  mkdir -p "$work/layer"
  head -c "$2" /dev/urandom >"$work/layer/data"
  tar -C "$work/layer" -cf "$work/layer.tar" data
  skopeo copy -q "tarball:$work/layer.tar" "oci:$1:v1"
  rm "$work/layer.tar" "$work/layer/data"
}

# requests PATTERN: how many requests since its start begin so (`POST /v2/`).
requests() { grep -cE "\"$1" "$work/registry.log" || true; }

# raw_digest REPOSITORY:TAG: of the manifest's bytes, as skopeo fetches them.
raw_digest() { skopeo inspect --raw --tls-verify=false "docker://$registry/$1" | sha256sum; }
