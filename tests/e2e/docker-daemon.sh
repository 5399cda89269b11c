#!/usr/bin/env bash
# `--runtime docker` and its daemon: ports that it passes on, by a bridge on a network of the test's
# own; and, with MLENV_TEST_LONG=1, a daemon that is killed while a command runs and stays away: mlenv
# ends the command, says so, and leaves nothing.
# shellcheck disable=SC2016,SC2119  # for the shells inside; no options
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need runc jq curl ss
need_root

base_tree
user_store
user_world
docker_network
start_docker
mkdir "$work/project"
chmod 777 "$work/project"
cd "$work/project"
set_words

# m WHO ARGUMENT…: mlenv on Docker's network.
m() {
  local who=$1
  shift
  if [ "$who" = root ]; then
    "${docker_place[@]}" env DOCKER_HOST="$DOCKER_HOST" MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"
  else
    "${docker_place[@]}" "${world_words[@]}" MLENV_STORE="$user_home/store" mlenv "$@"
  fi
}
fetch() { "${docker_place[@]}" curl --noproxy '*' -fsS -m 5 "http://127.0.0.1:$1/page"; }
refused() { ! fetch "$1"; }
docker_pid() { cat "$work/docker/pid"; }
containers() { as_root docker --host "$DOCKER_HOST" ps --all --quiet --filter label=dev.mlenv.run; }
no_container() { [ -z "$(containers)" ]; }
server='mkdir -p /tmp/s && cd /tmp/s && echo "a page" >page && exec python3 -m http.server 80'

for who in root user; do
  note "$who: a published port"
  port=$(free_port)
  m "$who" run -d --runtime docker --name served -p "$port:80" base -- sh -c "$server" >"$work/out"
  wait_until 30 fetch "$port"
  equal "$who: what is fetched" "a page" "$(fetch "$port")"
  # Loopback alone.
  "${docker_place[@]}" ss -ltn >"$work/listening"
  grep -qF "127.0.0.1:$port " "$work/listening" || fail "$who: nobody listens: $(cat "$work/listening")"
  ! grep -qE "(0\.0\.0\.0|\*|\[::\]):$port " "$work/listening" || fail "$who: others can reach it"
  failing_with port-taken m "$who" --json run --runtime docker -p "$port:80" base -- true
  m "$who" stop --time 0 served >/dev/null
  wait_until 20 refused "$port"
  wait_until 20 no_container
  note "$who: a network of its own, without a port"
  equal "$who: interfaces" "eth0 lo" "$(m "$who" run --runtime docker --network private base -- sh -c 'tail -n +3 /proc/net/dev | cut -d: -f1' | xargs -n 1 | LC_ALL=C sort | xargs)"
done

[ "$MLENV_TEST_LONG" = 1 ] || exit 0

marker=86$((RANDOM % 900000 + 100000))
alive() { pgrep -f "^sleep $marker\$" >/dev/null; }
gone() { ! alive; }
# What mlenv itself has of a run: its processes, its mounts, its files.
nothing_left() { # nothing_left WHO
  local store=$MLENV_STORE
  [ "$1" = root ] || store=$user_home/store
  wait_until 30 gone
  wait_until 30 sh -c "! kill -0 $first 2>/dev/null"
  ! grep -q " $store" /proc/self/mountinfo || fail "$1: a mount is left"
  equal "$1: scratch folders" "" "$(as_root ls "$store/tmp")"
}
# begin WHO: sets $job, and $first, the container's first process
begin() {
  nothing_said
  m "$1" --json run --runtime docker base -- sleep "$marker" >"$work/out" 2>"$work/err" &
  job=$!
  wait_until 60 alive
  first=$(as_root docker --host "$DOCKER_HOST" inspect --format '{{.State.Pid}}' "$(containers)")
}
kill_docker() {
  local pid
  pid=$(docker_pid)
  as_root kill -KILL "$pid"
  wait_until 20 sh -c "! kill -0 $pid 2>/dev/null"
  as_root rm -f "$work/docker/pid"
}

who=root
note "$who: the daemon is killed while the command runs, and stays away"
begin "$who"
kill_docker
began=$SECONDS
status=0
wait "$job" || status=$?
note "ended after $((SECONDS - began)) s"
equal "$who: status" 125 "$status"
grep -qF '"code":"engine-down"' "$work/err" || fail "$who: not told: $(cat "$work/err")"
grep -q 'ended while the command ran' "$work/err" || fail "$who: not told: $(cat "$work/err")"
nothing_left "$who"
equal "$who: record" "125 engine-down" "$(m "$who" --json runs show last | jq -r '"\(.end.exit_code) \(.end.failure.code)"')"
failing_with engine-down m "$who" --json run --runtime docker base -- true

note "$who: what is left of the container goes with its next start"
start_docker
wait_until 30 no_container
equal "$who: the next one runs" ok "$(m "$who" run --runtime docker base -- echo ok)"
