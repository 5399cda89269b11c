#!/usr/bin/env bash
# apt and pip work inside a run, for root and for an ordinary user, with this machine's sources; also
# for packages whose files belong to others than root.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc
need_root
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"

small_tree
user_store
mkdir "$work/project"
chmod 777 "$work/project"
cd "$work/project"

# openssh-client holds a setgid file of a group of its own (ssh-agent).
# shellcheck disable=SC2016  # for the container to expand
script='set -e
apt-get update -q
apt-get install -y -q --no-install-recommends hello openssh-client
hello
test -z "$(dpkg --audit)"
test -f /usr/bin/ssh-agent'

note "root"
as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" run small -- sh -c "$script" >"$work/root.log" 2>&1 ||
  fail "$(tail -n 20 "$work/root.log")"
grep -q 'Hello, world!' "$work/root.log" || fail "hello did not speak"
note "an ordinary user"
as_user MLENV_STORE="$user_home/store" mlenv run small -- sh -c "$script" >"$work/user.log" 2>&1 ||
  fail "$(tail -n 20 "$work/user.log")"
grep -q 'Hello, world!' "$work/user.log" || fail "hello did not speak"

note "the image knows nothing of it"
equal "hello in the next run" 127 "$("$MLENV" run small -- hello >/dev/null 2>&1 || echo $?)"
