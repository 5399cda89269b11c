#!/usr/bin/env bash
# What mlenv locks is what apt itself would install into an empty system: the same packages, the same
# versions. Oracle: `apt-get install -s` on the machine's own sources, and backports, with an empty status
# file. Three sets of packages; all thirty with MLENV_TEST_LONG=1.
# first
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/apt.sh
. "$root/tests/support/apt.sh"
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"

suite=$VERSION_CODENAME
own_apt ""
# Debian's own archives alone, as mlenv takes them; backports lie where the suite itself does.
# shellcheck disable=SC2016  # for apt-get
apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk '$1 == "Debian" { print "deb", $2, $3, $4 }' | LC_ALL=C sort -u >"$work/debian.list"
archive=$(awk -v suite="$suite" '$3 == suite { print $2; exit }' "$work/debian.list")
[ -n "$archive" ] || skip "this machine's apt has no archive of $suite"
echo "deb $archive $suite-backports main" >>"$work/debian.list"
printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "-";\n' "$work/debian.list" >>"$work/apt.conf"
update_apt

apt_base >"$work/base"
[ "$(wc -l <"$work/base")" -gt 20 ] || fail "apt knows only $(wc -l <"$work/base") base packages"
mapfile -t base <"$work/base"

by_mlenv() {
  local list
  printf -v list '%s, ' "$@"
  printf 'name: oracle\nbase: debian:%s\nsystem: [%s]\n' "$suite" "$list" >"$work/recipe.yaml"
  rm -f "$work/recipe.lock"
  "$MLENV" lock "$work/recipe.yaml" >"$work/lock.log" 2>&1 || fail "mlenv lock: $(cat "$work/lock.log")"
  sed -nE 's/.*name = "([^"]*)", version = "([^"]*)", architecture = .*/\1 \2/p' "$work/recipe.lock" |
    LC_ALL=C sort
}

# What people put beside their frameworks; the first six hold one of each kind of choice (first
# alternative, virtual packages, what was asked for first, conflicts, two sets that share one); three of them are
# compared in every run.
sets=(
  'python3 git ca-certificates build-essential'
  'openssh-server python3'
  'systemd postfix'
  'default-jre-headless postgresql man-db'
  'libopenmpi-dev cmake'
  "openssh-client/$suite-backports git"
  'python3'
  'git openssh-client ca-certificates'
  'build-essential'
  'python3-venv python3-dev build-essential'
  'ffmpeg'
  'libgl1 libglib2.0-0'
  'libsndfile1 sox'
  'tesseract-ocr poppler-utils'
  'graphviz'
  'nodejs npm'
  'golang'
  'rustc cargo'
  'openmpi-bin libopenmpi-dev openssh-server'
  'mpich'
  'slurm-client munge'
  'libblas-dev liblapack-dev gfortran'
  'python3-numpy python3-scipy'
  'r-base-core'
  'vim-nox tmux htop'
  'curl wget gnupg'
  'nginx-light'
  'default-mysql-client'
  'xvfb x11-utils'
  'libhdf5-dev libnetcdf-dev'
  'emacs-nox'
  "cmake/$suite-backports build-essential"
  "tmux/$suite-backports borgbackup/$suite-backports"
  "meson/$suite-backports ninja-build"
)
# Those whose packages differ, as docs/debian.md tells; a set that is here and is equal fails the test.
declare -A known=()

[ ${#sets[@]} -ge 30 ] || fail "only ${#sets[@]} sets"
[ "$MLENV_TEST_LONG" = 1 ] || sets=("${sets[2]}" "${sets[3]}" "${sets[5]}")
equal_sets=0
for set in "${sets[@]}"; do
  note "$set"
  read -ra packages <<<"$set"
  apt_takes "${base[@]}" apt "${packages[@]}" >"$work/expected"
  by_mlenv "${packages[@]}" >"$work/found"
  [ "$(wc -l <"$work/found")" -ge ${#base[@]} ] || fail "only $(wc -l <"$work/found") packages locked"
  if diff -u --label apt --label mlenv "$work/expected" "$work/found" >"$work/diff"; then
    [ -z "${known[$set]:-}" ] || fail "no longer other packages than apt's: $set"
    equal_sets=$((equal_sets + 1))
  else
    cat "$work/diff"
    [ -n "${known[$set]:-}" ] || fail "other packages than apt's: $set"
  fi
done
echo "$equal_sets of ${#sets[@]} sets are what apt takes"
[ $((equal_sets * 10)) -ge $((${#sets[@]} * 9)) ] || fail "fewer than nine in ten"
