#!/usr/bin/env bash
# Where namespaces are forbidden: in a container of Docker's default profile root builds the same digest
# and another user takes finished layers or is told what to do; so is one for whom user namespaces are
# switched off.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need dockerd docker unshare setpriv
need_root

shared_bare
finished=$MLENV_STORE
export MLENV_STORE=$work/store
cp "$MLENV" "$work/mlenv"
chmod 755 "$work/mlenv" "$work"

note "user namespaces are switched off"
# In a user namespace of its own, where the setting counts for this test alone.
status=0
unshare --user --map-user=1000 --map-group=1000 --keep-caps sh -c '
  echo 0 >/proc/sys/user/max_user_namespaces || exit 77
  exec setpriv --ambient-caps=-all --inh-caps=-all "$@"' - \
  "$work/mlenv" build "$recipe_path" --locked --no-unpack >"$work/out" 2>"$work/err" || status=$?
[ "$status" -ne 77 ] || skip "user.max_user_namespaces cannot be set"
equal status 1 "$status"
grep -qF 'because: user namespaces are switched off (`user.max_user_namespaces` is 0)' "$work/err" ||
  fail "says: $(cat "$work/err")"
grep -qF 'hint: as root: `sysctl -w user.max_user_namespaces=15000`' "$work/err" || fail "says: $(cat "$work/err")"
equal "one error" 1 "$(grep -c '^error:' "$work/err")"

if grep -q 'fetch Debian packages' "$work/err"; then fail "told only after the work"; fi

note "docker"
# shellcheck disable=SC2119  # no options
start_docker
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }
# A machine like this one: its programs, read-only.
mkdir -p "$work/rootfs"/{usr,etc,tmp,proc,sys,dev,run,var,root,work}
for link in bin lib lib32 lib64 sbin; do [ ! -L "/$link" ] || cp -a "/$link" "$work/rootfs/"; done
chmod 1777 "$work/rootfs/tmp"
tar -C "$work/rootfs" -cf - . | dock import - machine >/dev/null
inside() { # inside USER STORE COMMAND…
  local user=$1 store=$2
  shift 2
  dock run --rm --network none --user "$user" -v /usr:/usr:ro -v /etc:/etc:ro -v "$store:/work/store" \
    -v "$XDG_CACHE_HOME:/work/cache:ro" -v "$work/mlenv:/work/mlenv:ro" -v "$work/project:/work/project" \
    -e MLENV_STORE=/work/store -e XDG_CACHE_HOME=/work/cache -e HOME=/tmp machine "$@"
}
project() { # project OWNER: a fresh copy
  rm -rf "$work/project"
  cp -r "$work/bare" "$work/project"
  as_root chown -R "$1:$1" "$work/project"
}
project 0
mkdir "$work/empty"
if inside 0 "$work/empty" unshare --user true 2>/dev/null; then fail "docker's profile allows namespaces"; fi

note "as root: a plain chroot"
inside 0 "$work/empty" /work/mlenv build /work/project/bare.yaml --locked --no-unpack >"$work/out" 2>"$work/err" ||
  fail "says: $(cat "$work/err")"
equal digest "$image" "$(tail -n 1 "$work/out")"

note "as another user, without finished layers"
project 1000
mkdir "$work/own"
as_root chown 1000:1000 "$work/own"
status=0
inside 1000:1000 "$work/own" /work/mlenv -q build /work/project/bare.yaml --locked --no-unpack >"$work/out" 2>"$work/err" || status=$?
equal status 1 "$status"
grep -qF 'because: this container forbids namespaces or mounts' "$work/err" || fail "says: $(cat "$work/err")"
grep -qF 'hint: run the container as root, or with `--security-opt seccomp=unconfined' "$work/err" || fail "says: $(cat "$work/err")"

note "as another user, with them"
drop "$work/own"
copy_store "$finished" "$work/own"
as_root chown -R 1000:1000 "$work/own"
inside 1000:1000 "$work/own" /work/mlenv build /work/project/bare.yaml --locked --no-unpack >"$work/out" 2>"$work/err" ||
  fail "says: $(cat "$work/err")"
equal digest "$image" "$(tail -n 1 "$work/out")"
