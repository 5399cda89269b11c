# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of tests/lib.sh
# Docker and podman for tests, brought up by the test and ended with it: to be read after
# tests/lib.sh. Neither sees the machine's own: all that they keep lies in $work.

# docker_network: start_docker is to have a bridge, in a network of the test's own without a way out;
# what is to reach a port that Docker passes on goes there by "${docker_place[@]}".
docker_place=()
docker_bridge=none
docker_network() {
  need nsenter unshare ip
  # shellcheck disable=SC2016  # for that shell
  start "$work/docker-network.log" "${sudo[@]}" unshare --net sh -c 'ip link set lo up && echo $$ >"$0" && exec sleep 3600' \
    "$work/docker-network"
  wait_until 20 test -s "$work/docker-network"
  docker_place=("${sudo[@]}" nsenter --net="/proc/$(cat "$work/docker-network")/ns/net")
  docker_bridge= # its own, docker0
}

# start_docker [OPTION…]: dockerd on a socket of its own, for root and for the ordinary user; sets
# DOCKER_HOST.
start_docker() {
  need dockerd docker
  mkdir -p "$work/docker"
  start "$work/docker/log" "${sudo[@]}" "${docker_place[@]}" dockerd --data-root "$work/docker/data" --exec-root "$work/docker/exec" \
    --pidfile "$work/docker/pid" --host "unix://$work/docker/socket" --bridge "$docker_bridge" --iptables=false \
    --ip6tables=false "$@"
  export DOCKER_HOST=unix://$work/docker/socket
  wait_until 60 as_root docker --host "$DOCKER_HOST" version
  as_root chown "$user_id" "$work/docker/socket"
}

# podman_settings: for root and for the ordinary user. crun 1.8 cannot work where cgroups 1 and 2 are
# both in use.
podman_settings() {
  mkdir -p "$work/podman" "$work/run"
  printf '[engine]\ncgroup_manager="cgroupfs"\nruntime="runc"\nevents_logger="none"\n' >"$work/podman/containers.conf"
  printf '[storage]\ndriver="overlay"\ngraphroot="%s/podman/root"\nrunroot="%s/podman/run"\n' "$work" "$work" \
    >"$work/podman/root.conf"
  printf '[storage]\ndriver="overlay"\ngraphroot="%s/containers"\nrunroot="%s/run/containers"\n' "$user_home" "$work" \
    >"$work/podman/user.conf"
  # Where nobody asked for rules: images are not signed here.
  [ -e /etc/containers/policy.json ] || skip "podman has no policy of images here"
  as_root chown "$user_id:$user_id" "$work/run"
}

# user_world: mounts of its own, in which the ordinary user has a name and more ids than one, as
# podman needs them; sets $world. The machine's files stay as they are.
user_world() {
  need nsenter newuidmap
  local folder=$work/world
  mkdir -p "$folder"
  { cat /etc/passwd && echo "mlenv-test:x:$user_id:$user_id::$user_home:/bin/sh"; } >"$folder/passwd"
  { cat /etc/group && echo "mlenv-test:x:$user_id:"; } >"$folder/group"
  echo "$user_id:300000:65536" >"$folder/subuid"
  # shellcheck disable=SC2016  # for that shell
  start "$folder/log" "${sudo[@]}" unshare --mount --propagation slave sh -c '
    mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/group" /etc/group
    touch /etc/subuid /etc/subgid
    mount --bind "$0/subuid" /etc/subuid && mount --bind "$0/subuid" /etc/subgid
    echo $$ >"$0/pid"
    exec sleep 3600' "$folder"
  wait_until 20 test -s "$folder/pid"
  world=$(cat "$folder/pid")
}

# in_world [K=V]… COMMAND…: as the ordinary user, who may gain ids by programs with setuid. The words
# for it are in $world_words once set_words was called.
in_world() {
  set_words
  "${world_words[@]}" "$@"
}
set_words() {
  world_words=("${sudo[@]}" nsenter --mount="/proc/$world/ns/mnt" --wd="$PWD" setpriv --reuid "$user_id" --regid "$user_id" --clear-groups \
    env -i HOME="$user_home" PATH="$work/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    LC_ALL=C.UTF-8 XDG_RUNTIME_DIR="$work/run" DOCKER_HOST="${DOCKER_HOST:-}" \
    CONTAINERS_CONF="$work/podman/containers.conf" CONTAINERS_STORAGE_CONF="$work/podman/user.conf" "${machine_env[@]}")
}

# as_engine_root COMMAND…: as root, with the test's podman.
as_engine_root() {
  set_root_words
  "${root_words[@]}" "$@"
}
set_root_words() {
  root_words=("${sudo[@]}" env CONTAINERS_CONF="$work/podman/containers.conf" CONTAINERS_STORAGE_CONF="$work/podman/root.conf"
    DOCKER_HOST="${DOCKER_HOST:-}")
}

# end_engines: podman's storage of other ids, and the process that keeps its namespaces.
end_engines() {
  local pause
  if [ -n "${world:-}" ] && command -v podman >/dev/null; then
    in_world podman rm --all --force >/dev/null 2>&1 || true
    pause=$(as_root cat "$work/run/libpod/tmp/pause.pid" 2>/dev/null || true)
    if [ -n "$pause" ]; then as_root kill "$pause" 2>/dev/null || true; fi
  fi
  if [ -d "$work/podman/root" ]; then as_engine_root podman rm --all --force >/dev/null 2>&1 || true; fi
}
