#!/usr/bin/env bash
# `base: ubuntu:noble` through the same code as Debian: an archive with Ubuntu's fields and components,
# made of Debian's packages, some of them packed with zstd as all of Ubuntu's are. With
# MLENV_TEST_LONG=1 the base is built and run, too.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/archive.sh
. "$(dirname "$0")/../support/archive.sh"
need apt-get curl ar xz zstd dpkg-deb
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"

note "the packages of a Debian base"
printf 'name: debian\nbase: debian:bookworm\npython: "3.11"\n' >"$work/debian.yaml"
"$MLENV" lock "$work/debian.yaml" 2>/dev/null
mkdir -p "$work/main" "$work/universe" "$work/none" "$work/ubuntu/DEBIAN"
while read -r name path digest; do
  part=main
  if [[ $name == *python3* ]]; then part=universe; fi
  fetch_deb "$path" "$digest" "$work/$part/${path##*/}"
done < <(debs_of "$work/debian.lock")

note "as Ubuntu has them"
zstd_deb() { # zstd_deb FILE: control and data packed with zstd
  local folder=$work/members member
  rm -rf "$folder"
  mkdir "$folder"
  (
    cd "$folder"
    ar x "$1"
    for member in control data; do
      xz -dc "$member.tar.xz" | zstd -q -1 -o "$member.tar.zst"
    done
    ar rc "$1.new" debian-binary control.tar.zst data.tar.zst
    mv "$1.new" "$1"
  )
}
for name in apt dpkg bash coreutils libpython3.11-minimal; do
  for one in "$work"/*/"$name"_*.deb; do zstd_deb "$one"; done
done
files=("$work"/main/base-files_*.deb)
rm -rf "$work/ubuntu"
dpkg-deb -R "${files[0]}" "$work/ubuntu"
cat >"$work/ubuntu/usr/lib/os-release" <<'RELEASE'
PRETTY_NAME="Ubuntu 24.04.3 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
RELEASE
rm "${files[0]}"
dpkg-deb --root-owner-group -Zzstd --build "$work/ubuntu" "$work/main/base-files_13ubuntu10_amd64.deb" >/dev/null

make_key ubuntu
archive() { # archive ORIGIN
  write_archive ubuntu "$work/www/ubuntu" noble "Origin=$1" "Label=$1" Version=24.04 "main:$work/main" \
    "restricted:$work/none" "universe:$work/universe" "multiverse:$work/none"
}
archive Ubuntu
serve "$work/www"

note "the recipe's own source, main and universe unless it names others"
mkdir "$work/project"
cp "$work/ubuntu.asc" "$work/project"
recipe() { # recipe SOURCES…
  printf 'name: noble\nbase: ubuntu:noble\npackages: [six]\n' >"$work/project/recipe.yaml"
  if [ $# -gt 0 ]; then printf '%s\n' "$@" >>"$work/project/recipe.yaml"; fi
}
lock() {
  rm -f "$work/project/recipe.lock"
  "$MLENV" lock "$work/project/recipe.yaml" >"$work/out" 2>"$work/err"
}
refuses() { # refuses WORDS
  local status=0
  lock || status=$?
  [ "$status" -ne 0 ] || fail "locked"
  grep -qF "$1" "$work/err" || fail "says: $(cat "$work/err")"
}
own="sources: {debian: {uri: \"$served/ubuntu\", signed-by: ubuntu.asc}}"
recipe "$own"
lock || fail "lock: $(cat "$work/err")"
grep -qx 'distribution = "ubuntu"' "$work/project/recipe.lock" || fail "another distribution in the lock"
grep -qx 'python = "3.11.2"' "$work/project/recipe.lock" || fail "another Python in the lock"
grep -q 'path = "pool/universe/python3' "$work/project/recipe.lock" || fail "python3 is not from universe"
cp "$work/project/recipe.lock" "$work/own.lock"
recipe 'python: "3.11"' "$own"
refuses '`base: ubuntu:noble` has Python 3.12, the recipe wants 3.11'

note "the machine's sources"
recipe
printf 'deb [signed-by=%s] %s noble main universe\n' "$work/ubuntu.gpg" "$served/ubuntu" >"$work/ubuntu.list"
export MLENV_DEBIAN_SOURCES=$work/ubuntu.list
lock || fail "lock: $(cat "$work/err")"
diff <(debs_of "$work/own.lock") <(debs_of "$work/project/recipe.lock") || fail "other packages"
archive Debian
refuses 'is another archive than before'
ln -s ubuntu "$work/www/never-seen"
printf 'deb [signed-by=%s] %s noble main universe\n' "$work/ubuntu.gpg" "$served/never-seen" >"$work/ubuntu.list"
refuses 'none of the package sources has the suite `noble`'
archive Ubuntu
printf 'deb %s noble main universe\n' "$served/ubuntu" >"$work/ubuntu.list"
if [ ! -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]; then refuses 'install the package ubuntu-keyring'; fi
unset MLENV_DEBIAN_SOURCES
refuses 'no package source for `ubuntu:noble`'

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "build and run"
need runc
recipe "$own"
build_digest "$work/project/recipe.yaml" >/dev/null
"$MLENV" run noble -- sh -c '. /etc/os-release; echo "$ID $VERSION_CODENAME"; python -c "import six, sys; print(sys.version_info[:2])"
  dpkg --audit; cat /etc/apt/sources.list.d/mlenv.sources' >"$work/found"
equal "in the image" "ubuntu noble
(3, 11)" "$(head -n 2 "$work/found")"
grep -qx 'Components: main universe' "$work/found" || fail "sources: $(cat "$work/found")"
grep -qx 'Signed-By: /etc/apt/keyrings/ubuntu.asc' "$work/found" || fail "sources: $(cat "$work/found")"
verify_store
