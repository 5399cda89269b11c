# shellcheck shell=bash disable=SC2154,SC2119,SC2120  # tests/lib.sh sets $work
# An apt of the test's own, on this machine's sources: what it would install into an empty system. To
# be sourced after tests/lib.sh.

# own_apt [ARCHITECTURE]: sets APT_CONFIG, with lists, archives and an empty status file in $work/apt,
# and fetches the lists. Called again it is for the other architecture.
own_apt() {
  need apt-get apt-cache
  mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
  : >"$work/apt/status"
  cat >"$work/apt.conf" <<CONF
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt";
Dir::Cache::archives "$work/apt/archives";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
APT::Install-Recommends "false";
APT::Sandbox::User "";
CONF
  if [ -n "${1:-}" ]; then
    printf 'APT::Architecture "%s";\nAPT::Architectures { "%s"; };\n' "$1" "$1" >>"$work/apt.conf"
  fi
  if [ -n "${MLENV_DEBIAN_SOURCES:-}" ]; then
    cp "$(realpath "$MLENV_DEBIAN_SOURCES")" "$work/machine.list"
    printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "-";\n' "$work/machine.list" >>"$work/apt.conf"
  fi
  export APT_CONFIG=$work/apt.conf
  update_apt
}

update_apt() {
  apt-get update -qq >"$work/update.log" 2>&1 || skip "apt-get update: $(tail -n 1 "$work/update.log")"
}

# apt_base: what is in every base, as apt knows it.
apt_base() {
  apt-cache dumpavail | awk -v RS= '/\nEssential: yes/ || /\nPriority: required/ { print $2 }' | LC_ALL=C sort -u
}

# apt_takes PACKAGE…: `NAME VERSION` of all that would be installed.
apt_takes() {
  apt-get install -s "$@" >"$work/apt.log" 2>&1 || fail "apt: $(tail -n 3 "$work/apt.log")"
  sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1 \2/p' "$work/apt.log" | LC_ALL=C sort
}
