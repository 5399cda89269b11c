#!/usr/bin/env bash
# What mlenv locks is what apt itself would install into an empty system: the same packages, the same
# versions. Oracle: `apt-get install -s` on the machine's own sources with an empty status file.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need apt-get apt-cache
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"

apt=$work/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: >"$apt/status"
cat >"$work/apt.conf" <<CONF
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
APT::Install-Recommends "false";
APT::Sandbox::User "";
CONF
if [ -n "${MLENV_DEBIAN_SOURCES:-}" ]; then
  printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "-";\n' \
    "$(realpath "$MLENV_DEBIAN_SOURCES")" >>"$work/apt.conf"
fi
export APT_CONFIG=$work/apt.conf
apt-get update -qq >"$work/update.log" 2>&1 || skip "apt-get update: $(tail -n 1 "$work/update.log")"

apt-cache dumpavail | awk -v RS= '/\nEssential: yes/ || /\nPriority: required/ { print $2 }' |
  LC_ALL=C sort -u >"$work/base"
[ "$(wc -l <"$work/base")" -gt 20 ] || fail "apt knows only $(wc -l <"$work/base") base packages"
mapfile -t base <"$work/base"

by_apt() {
  apt-get install -s "${base[@]}" apt "$@" >"$work/apt.log" 2>&1 || fail "apt: $(tail -n 3 "$work/apt.log")"
  sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1 \2/p' "$work/apt.log" | LC_ALL=C sort
}
by_mlenv() {
  local list
  printf -v list '%s, ' "$@"
  printf 'name: oracle\nbase: debian:%s\nsystem: [%s]\n' "$VERSION_CODENAME" "$list" \
    >"$work/recipe.yaml"
  rm -f "$work/recipe.lock"
  "$MLENV" lock "$work/recipe.yaml" >"$work/lock.log" 2>&1 || fail "mlenv lock: $(cat "$work/lock.log")"
  sed -nE 's/.*name = "([^"]*)", version = "([^"]*)", architecture = .*/\1 \2/p' "$work/recipe.lock" |
    LC_ALL=C sort
}

same() {
  note "$*"
  by_apt "$@" >"$work/expected"
  by_mlenv "$@" >"$work/found"
  [ "$(wc -l <"$work/found")" -ge ${#base[@]} ] || fail "only $(wc -l <"$work/found") packages locked"
  diff -u --label apt --label mlenv "$work/expected" "$work/found" || fail "other packages than apt's: $*"
}

same python3
same git openssh-client ca-certificates
same openssh-server python3
same build-essential
same systemd postfix
same default-jre-headless postgresql man-db
same libopenmpi-dev cmake
