# shellcheck shell=bash disable=SC2154  # $work and $root are those of lib.sh
# Sourced by tests/e2e/hostile-*.sh after lib.sh: the whole scenario is run by an ordinary user first, who may become
# nobody else, and then goes on as it is. $who is `root` or `user`, for what only one of them can see.
# With `beside=1` before, the user's goes on beside it, until `both_done`. With `long_both=1` before, where nothing depends
# on who it is, only `--long` has the user's.
who=root
both_done() {
  [ -n "${user_pid:-}" ] || return 0
  local status=0
  wait "$user_pid" || status=$?
  sed 's/^/(user) /' "$work/user.log"
  [ "$status" = 0 ] || fail "as an ordinary user: status $status"
}
as_the_user() {
  as_user MLENV_TEST_ORDINARY=1 MLENV="$work/bin/mlenv" MLENV_TEST_CACHE="$user_home/cache" TMPDIR="$user_home/tmp" \
    bash "$work/checkout/tests/e2e/$(basename "$0")"
}
if [ -n "${MLENV_TEST_ORDINARY:-}" ] || [ "$(id -u)" -ne 0 ]; then
  # shellcheck disable=SC2034  # for the scenario
  who=user
elif [ "$MLENV_TEST_LONG/${long_both:-}" = 0/1 ]; then
  note "as root; with --long as an ordinary user, too"
else
  make_user
  # The checkout may lie where only root can look, and so may what lies beside the programs.
  mkdir -p "$work/checkout"
  cp -r "$root/tests" "$work/checkout/"
  cp -r "$(dirname "$MLENV")/share" "$work/bin/" 2>/dev/null || true
  cp "$(dirname "$MLENV")"/mlenv-* "$work/bin/"
  chmod -R a+rX "$work/checkout" "$work/bin"
  as_root install -d -m 700 -o "$user_id" -g "$user_id" "$user_home/tmp"
  note "as an ordinary user"
  if [ -n "${beside:-}" ]; then
    as_the_user >"$work/user.log" 2>&1 </dev/null &
    user_pid=$!
    started+=("$user_pid")
  else
    as_the_user || fail "as an ordinary user: status $?"
    as_root rm -rf "$user_home" "$work/bin" "$work/checkout"
  fi
  note "as root"
fi
