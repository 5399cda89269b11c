#!/usr/bin/env bash
# A container's root stops mlenv's keeper, or has it say half a frame: the run ends at its deadline, or at
# the second signal, and its container goes. With docker and podman, as root; each of the two ways with one of them, with
# --long with both.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$root/tests/support/engines.sh"
need busybox python3 gcc docker podman runc
need_root
[ "$(id -u)" -eq 0 ] || skip "its containers are root's"
[ "$(uname -m)" = x86_64 ] || skip "it speaks for x86-64"
user_id=$(id -u) user_home=$HOME
trap 'status=$?; set +e; end_engines; (exit "$status"); finish_test' EXIT

gcc -static -O1 -o "$work/hold" "$root/tests/support/hold_keeper.c"
python3 "$root/tests/support/busybox_image.py" "$work/base.tar" base:v1 --file "bin/hold=$work/hold"
"$MLENV" load "$work/base.tar" >/dev/null
# shellcheck disable=SC2119  # it has no words of ours
start_docker
podman_settings
export CONTAINERS_CONF=$work/podman/containers.conf CONTAINERS_STORAGE_CONF=$work/podman/root.conf
mkdir -p "$work/project"
cd "$work/project"

left() { # left ENGINE: containers
  case $1 in
    docker) docker --host "$DOCKER_HOST" ps -aq ;;
    podman) podman ps -aq ;;
  esac
}
# podman removes a container that was killed after its client has ended.
gone() { [ -z "$(left "$1")" ]; }
began() { SECONDS=0; }
within() { [ "$SECONDS" -le "$1" ] || fail "$2: $SECONDS s: $(cat "$work/err")"; }

paused() { # paused ENGINE: what it has of containers is, from outside
  case $1 in
    docker) docker --host "$DOCKER_HOST" pause "$(left docker)" ;;
    podman) podman pause "$(left podman)" ;;
  esac
}

for engine in docker podman; do
  for how in stop half; do
    case $MLENV_TEST_LONG/$engine/$how in 0/docker/half | 0/podman/stop) continue ;; esac
    note "$engine, $how: the deadline"
    began
    status=0
    "$MLENV" run --runtime "$engine" --timeout 4s --stop-timeout 1s --no-project --no-check base:v1 -- hold "$how" \
      </dev/null >"$work/out" 2>"$work/err" || status=$?
    # Where a container may not trace, there is nothing to hold.
    case $(cat "$work/out" "$work/err") in
      *held*) [ "$status" = 124 ] || [ "$how $status" = "half 137" ] || fail "status $status: $(cat "$work/err")" ;;
      *"cannot trace the keeper"*) equal "$engine: the status of who may not" 3 "$status" ;;
      *) fail "it holds nothing: $(cat "$work/out" "$work/err")" ;;
    esac
    within 40 "$engine, $how"
    wait_until 20 gone "$engine"
  done
  note "$engine: the second signal, with its container paused"
  nothing_said
  env --default-signal=INT "$MLENV" run --runtime "$engine" --no-project --no-check base:v1 -- sh -c 'echo begun; exec sleep 1000' \
    </dev/null >"$work/out" 2>"$work/err" &
  pid=$!
  started+=("$pid")
  wait_until 60 grep -q begun "$work/out"
  paused "$engine" >/dev/null
  kill -INT "$pid"
  read -rt 0.5 <> <(:) || true
  began
  kill -INT "$pid"
  status=0
  wait "$pid" || status=$?
  equal "$engine: the status" 130 "$status"
  within 20 "$engine: the second signal"
  wait_until 20 gone "$engine"
done
