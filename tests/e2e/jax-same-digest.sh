#!/usr/bin/env bash
# The same lock gives the same image digest as root and as an ordinary user, with another umask, time
# zone, language, TMPDIR, parallelism, store, host name and day. The user's image also runs, as that user.
# first
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need faketime unshare
shared_image jax-cpu
note "root, umask 022, all processors: $image"

make_user
mkdir "$work/tmp"
chmod 1777 "$work/tmp"
as_user mkdir "$user_home/project"
for file in "$recipe_path" "${recipe_path%.yaml}.lock" "$root/examples/train-jax.py"; do
  as_user tee "$user_home/project/${file##*/}" <"$file" >/dev/null
done
note "an ordinary user, everything else different too"
to_root=("${sudo[@]}")
elsewhere() { # elsewhere COMMAND…: as root, on a machine of another name
  # shellcheck disable=SC2016  # for the inner shell to expand
  "${to_root[@]}" unshare --uts sh -c 'hostname elsewhere && exec "$@"' - "$@"
}
# shellcheck disable=SC2016  # for the user's shell to expand
found=$(sudo=(elsewhere) && as_user TZ=Pacific/Kiritimati LANG=tr_TR.UTF-8 LC_ALL=POSIX TMPDIR="$work/tmp" \
  MLENV_STORE="$user_home/a store" \
  bash -c 'set -e; umask 077; cd ~/project; test "$(uname -n)" = elsewhere
    test "$(faketime -f +40h date +%F)" != "$(date +%F)"
    exec faketime -f +40h mlenv build jax-cpu.yaml --locked -j 1' | tail -n 1)
equal "digest as an ordinary user" "$image" "$found"
as_root diff "$user_home/project/jax-cpu.built" "${recipe_path%.yaml}.built" ||
  fail "the .built files differ"
[ -z "$(ls -A "$work/tmp")" ] || fail "left in TMPDIR: $(ls -A "$work/tmp")"

note "it trains as that user"
as_user MLENV_STORE="$user_home/a store" \
  bash -c 'cd ~/project && exec mlenv run jax-cpu -- python train-jax.py' | tee "$work/out"
grep -q 'accuracy 1.000' "$work/out" || fail "no accuracy of 1"

note "both stores verify"
verify_store
as_user MLENV_STORE="$user_home/a store" mlenv store verify >/dev/null ||
  fail "the user's store does not verify"
