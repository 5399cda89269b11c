#!/usr/bin/env bash
# The same lock gives the same image digest as root and as an ordinary user, with another umask, time
# zone, language, TMPDIR, parallelism, store, host name and day. The user's image also runs, as that user. A bare
# Debian from nothing, and wheels on the base of another store; with MLENV_TEST_LONG=1 jax-cpu from nothing, which
# trains.
# packages: faketime
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need faketime unshare
make_user
mkdir "$work/tmp"
chmod 1777 "$work/tmp"
as_user mkdir "$user_home/project"
to_root=("${sudo[@]}")
elsewhere() { # elsewhere COMMAND…: as root, on a machine of another name
  # shellcheck disable=SC2016  # for the inner shell to expand
  "${to_root[@]}" unshare --uts sh -c 'hostname elsewhere && exec "$@"' - "$@"
}
theirs=("MLENV_STORE=$user_home/a store")

# same NAME: of $recipe_path and $image, by an ordinary user
same() {
  local name=$1 found file
  note "$name: root, umask 022, all processors: $image"
  for file in "$recipe_path" "${recipe_path%.yaml}.lock" "$root/examples/train-jax.py"; do
    as_user tee "$user_home/project/${file##*/}" <"$file" >/dev/null
  done
  # shellcheck disable=SC2016  # for the user's shell to expand
  found=$(sudo=(elsewhere) && as_user TZ=Pacific/Kiritimati LANG=tr_TR.UTF-8 LC_ALL=POSIX TMPDIR="$work/tmp" \
    "${theirs[@]}" \
    bash -c 'set -e; umask 077; cd ~/project; test "$(uname -n)" = elsewhere
      test "$(faketime -f +40h date +%F)" != "$(date +%F)"
      exec faketime -f +40h mlenv build "$0.yaml" --locked -j 1' "$name" | tail -n 1)
  equal "$name: digest as an ordinary user" "$image" "$found"
  as_root diff "$user_home/project/$name.built" "${recipe_path%.yaml}.built" ||
    fail "the .built files differ"
  [ -z "$(ls -A "$work/tmp")" ] || fail "left in TMPDIR: $(ls -A "$work/tmp")"
  note "$name: an ordinary user, everything else different too: the same"
}
runs() { # runs NAME WORDS ARGUMENT…: as that user, in whose store all is right
  # shellcheck disable=SC2016  # for the user's shell to expand
  as_user "${theirs[@]}" bash -c 'cd ~/project && exec mlenv run "$0" -- python "$@"' "$1" "${@:3}" | tee "$work/out"
  grep -q "$2" "$work/out" || fail "not a word of $2"
  as_user "${theirs[@]}" mlenv store verify >/dev/null || fail "the user's store does not verify"
}

if [ "$MLENV_TEST_LONG" = 1 ]; then
  shared_image jax-cpu
  same jax-cpu
  runs jax-cpu 'accuracy 1.000' train-jax.py
  verify_store
  exit 0
fi
shared_bare
same bare
shared_small
base_store "$work/theirs"
as_root mv "$work/theirs" "$user_home/another store"
as_root chown -R "$user_id:$user_id" "$user_home/another store"
theirs=("MLENV_STORE=$user_home/another store")
same small
runs small '^45$' -c 'import numpy; print(numpy.arange(10).sum())'
