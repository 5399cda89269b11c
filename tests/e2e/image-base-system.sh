#!/usr/bin/env bash
# `system` on a base that is an image: the set that apt takes there, and the tree that apt makes there
# (excluded paths, diversions, overridden modes, alternatives, new users); one layer on top of the
# base's; with --long one digest as root and as an ordinary user. Newer versions only where something needs them.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/archive.sh
. "$(dirname "$0")/../support/archive.sh"
need runc skopeo curl
need_root
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"
base_tree

note "a base as slim images are, with settings of its own"
cat >"$work/base.yaml" <<'RECIPE'
name: base
base: debian:bookworm
python: "3.11"
run:
  - |
    cat > /etc/dpkg/dpkg.cfg.d/docker <<'RULES'
    path-exclude /usr/share/doc/*
    path-include /usr/share/doc/*/copyright
    path-exclude /usr/share/man/*
    path-exclude /usr/share/locale/*
    RULES
    dpkg-divert --local --rename --divert /usr/bin/lesskey.real --add /usr/bin/lesskey
    dpkg-statoverride --add root root 0700 /usr/bin/lessecho
    echo 0123456789abcdef0123456789abcdef > /etc/machine-id
    echo kept > /var/log/wtmp
RECIPE
build_digest --no-unpack --output "oci:$work/layout" "$work/base.yaml" >/dev/null
packages=(less vim-tiny openssh-client uuid-runtime)
mkdir "$work/top"
top=$work/top/top.yaml
cat >"$top" <<RECIPE
name: top
base: oci:../layout
system: [$(printf '%s, ' "${packages[@]}")]
RECIPE
image=$(build_digest --output "oci:$work/made" "$top")
taken() { sed -nE 's/.*name = "([^"]*)", version = "([^"]*)", architecture.*/\1=\2/p' "$1"; }
layers() { skopeo inspect --raw "oci:$1" | python3 -c 'import json,sys
for one in json.load(sys.stdin)["layers"]: print(one["digest"])'; }

note "one layer on top of the base's"
layers "$work/layout" >"$work/below"
layers "$work/made" | head -n -1 | diff "$work/below" - || fail "other layers below"
verify_store

note "what apt takes and what apt makes there"
# Kind, mode, owners, path and content of all that does not hang on the moment, or on who was first
# to get a number (accounts: by name). apt also keeps lists, and marks what came by itself.
list='
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp -o -path /workspace \
  -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /etc/apt -o -path "/var/lib/dpkg/*-old" \
  -o -path /var/lib/dpkg/available -o -path "/var/lib/dpkg/lock*" -o -path /var/lib/dpkg/triggers/Lock \
  -o -path /etc/.pwd.lock -o -path "/etc/*-" -o -path /etc/hosts -o -path /etc/hostname -o -path /etc/resolv.conf \
  -o -path /etc/mtab \) -prune -o -printf "%y %m %u:%g %p -> %l\n" -type f ! -path "/etc/*shadow" \
  ! -path /etc/passwd ! -path /etc/group -exec sha256sum {} + | LC_ALL=C sort
cut -d: -f1 /etc/passwd /etc/group /etc/shadow /etc/gshadow | LC_ALL=C sort'
"$MLENV" run --no-project base -- sh -c "apt-get update -qq >&2
apt-get install -qq -s --no-install-recommends ${packages[*]} | sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1=\3/p' | sort > /tmp/set
apt-get install -qq -y --no-install-recommends ${packages[*]} >&2
cat /tmp/set; echo; $list" >"$work/by-apt" 2>"$work/err" || fail "apt: $(tail -n 5 "$work/err")"
taken "$work/top/top.lock" | LC_ALL=C sort >"$work/set"
sed '/^$/,$d' "$work/by-apt" | LC_ALL=C sort | diff "$work/set" - || fail "apt takes another set"
[ -s "$work/set" ] || fail "nothing was taken"
"$MLENV" run --no-project top -- sh -c "$list" >"$work/by-mlenv"
sed '1,/^$/d' "$work/by-apt" | diff - "$work/by-mlenv" >"$work/differences" || fail "trees differ: $(head -n 40 "$work/differences")"
inside() { "$MLENV" run --no-project top -- "$@"; }
equal "dpkg --audit" "" "$(inside dpkg --audit)"
equal "dpkg -V" "" "$(inside dpkg -V | grep -Ev '/usr/share/(doc|man|locale)/' || true)"
equal "excluded" "copyright" "$(inside ls /usr/share/doc/less)"
equal "diverted" "/usr/bin/lesskey.real" "$(inside sh -c 'ls /usr/bin/lesskey*')"
equal "overridden" "700" "$(inside stat -c %a /usr/bin/lessecho)"
equal "alternative" "/usr/bin/vim.tiny" "$(inside readlink -f /usr/bin/vi)"
equal "of the base" "0123456789abcdef0123456789abcdef kept" "$(inside sh -c 'echo $(cat /etc/machine-id /var/log/wtmp)')"
equal "user and group" "uuidd _ssh" "$(inside sh -c 'echo $(stat -c %U /var/lib/libuuid) $(stat -c %G /usr/bin/ssh-agent)')"

note "nothing that the base has is in it again"
top_layer() { tar -tzf "$1/blobs/sha256/$(layers "$1" | tail -n 1 | cut -d: -f2)"; }
top_layer "$work/made" >"$work/entries"
for path in usr/bin/dpkg etc/dpkg/dpkg.cfg.d/docker etc/machine-id var/log/dpkg.log var/lib/dpkg/available etc/passwd-; do
  grep -qx "$path" "$work/entries" && fail "$path is in the layer"
done

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "the same as an ordinary user"
  make_user
  as_root cp -r "$work/top" "$work/layout" "$user_home/"
  as_root chown -R "$user_id:$user_id" "$user_home"
  found=$(as_user mlenv build --locked "$user_home/top/top.yaml" | tail -n 1)
  equal "the user's image" "$image" "$found"
fi
note "kept on relock"
before=$(cat "$work/top/top.lock")
sed -i 's/name: top/name: other/' "$top"
"$MLENV" lock "$top" 2>/dev/null
equal "packages" "$(grep -c sha256 <<<"$before")" "$(grep -c sha256 "$work/top/top.lock")"

note "newer versions where something needs them, from the base's own sources; what is on hold stays"
make_key own
file_deb() { # file_deb NAME VERSION "PATH…" [FIELD…]
  local name=$1 version=$2 paths=$3 path
  shift 3
  rm -rf "$work/deb"
  mkdir -p "$work/deb/DEBIAN" "$work/debs"
  for path in $paths; do
    mkdir -p "$work/deb/$(dirname "$path")"
    echo "$name $version" >"$work/deb/$path"
    case $path in etc/*) echo "/$path" >>"$work/deb/DEBIAN/conffiles" ;; esac
  done
  {
    printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Test <test@example.org>\n' "$name" "$version"
    if [ $# -gt 0 ]; then printf '%s\n' "$@"; fi
    printf 'Description: for a test\n'
  } >"$work/deb/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip --build "$work/deb" "$work/debs/${name}_${version}_all.deb" >/dev/null
}
file_deb tool 1 'opt/tool/main opt/tool/shared opt/tool/old etc/tool.conf' 'Depends: toollib'
file_deb toollib 1 opt/lib
file_deb kept 1 opt/kept
write_archive own "$work/www" any "own:$work/debs"
serve "$work/www"
mkdir "$work/next"
cp "$work/own.asc" "$work/next/"
cat >"$work/next/middle.yaml" <<RECIPE
name: middle
base: oci:../layout
system: [tool, kept]
sources: {debian: [{uri: "$served", suite: any, components: [own], signed-by: own.asc}]}
run:
  - echo 'our own' > /etc/tool.conf
  - apt-mark hold kept
  - echo "deb [signed-by=\$(ls /etc/apt/keyrings/*)] $served bookworm main" > /etc/apt/sources.list
RECIPE
build_digest --no-unpack --output "oci:$work/middle" "$work/next/middle.yaml" >/dev/null
equal "taken" "kept=1 tool=1 toollib=1" "$(taken "$work/next/middle.lock" | xargs)"
file_deb tool 2 'opt/tool/main etc/tool.conf' 'Depends: toollib'
file_deb toollib 2 opt/lib
file_deb kept 2 opt/kept
file_deb helper 1 opt/helper
file_deb plugin 2 opt/tool/shared 'Pre-Depends: helper' 'Depends: toollib (>= 2)' 'Breaks: tool (<< 2)' 'Replaces: tool (<< 2)'
file_deb needy 1 opt/needy 'Depends: kept (>= 2)'
file_deb clash 1 opt/tool/main
file_deb rival 1 opt/rival 'Conflicts: tool'
write_archive own "$work/www" bookworm "main:$work/debs"
unset MLENV_DEBIAN_SOURCES # it would come first
next() { # next SYSTEM
  printf 'name: next\nbase: oci:../middle\nsystem: [%s]\n' "$1" >"$work/next/next.yaml"
}
next 'plugin, kept, toollib'
"$MLENV" lock "$work/next/next.yaml" 2>"$work/story" || fail "$(cat "$work/story")"
build_digest --output "oci:$work/next/out" "$work/next/next.yaml" >/dev/null
equal "replaced and added" "helper=1 plugin=2 tool=2 toollib=2" "$(taken "$work/next/next.lock" | xargs)"
equal "files" "plugin 2 tool 2 toollib 2 kept 1 our own" \
  "$("$MLENV" run --no-project next -- sh -c 'test ! -e /opt/tool/old; test -z "$(dpkg --audit)"
echo $(cat /opt/tool/shared /opt/tool/main /opt/lib /opt/kept /etc/tool.conf)')"
top_layer "$work/next/out" >"$work/entries"
grep -qx 'opt/tool/.wh.old' "$work/entries" || fail "no whiteout: $(cat "$work/entries")"
grep -q 'opt/kept' "$work/entries" && fail "what nothing changed is in the layer"

grep -qE 'packages of (any own|bookworm [a-z]*)' "$work/story" || fail "$(cat "$work/story")"
grep -q 'non-free\|bookworm-updates' "$work/story" && fail "not the base's sources alone: $(cat "$work/story")"

note "what cannot be, in one message"
refuses() { # refuses SYSTEM WORDS
  next "$1"
  rm -f "$work/next/next.lock"
  failing_with unsatisfiable "$MLENV" --json lock "$work/next/next.yaml"
  grep -qF -- "$2" "$work/err" || fail "says: $(cat "$work/err")"
}
next clash
failing_with base-failed "$MLENV" --json build "$work/next/next.yaml"
grep -qF 'cannot unpack the package `clash`' "$work/err" || fail "says: $(cat "$work/err")"
grep -qF "trying to overwrite '/opt/tool/main'" "$work/err" || fail "says: $(cat "$work/err")"
refuses needy 'the base holds `kept` at its version'
refuses rival '`tool 1` of the base'
printf 'name: other\nbase: oci:../layout\nrun: [rm /var/lib/dpkg/status /etc/os-release && echo ID=alpine > /etc/os-release]\n' \
  >"$work/next/other.yaml"
build_digest --no-unpack --output "oci:$work/other" "$work/next/other.yaml" >/dev/null
sed -i 's,oci:../middle,oci:../other,' "$work/next/next.yaml"
rm -f "$work/next/next.lock"
"$MLENV" lock "$work/next/next.yaml" 2>"$work/err" && fail "it was locked"
grep -qF 'next.yaml:3:10: the recipe asks for `rival`' "$work/err" || fail "$(cat "$work/err")"
grep -qF 'its os-release says `alpine`' "$work/err" || fail "$(cat "$work/err")"

note "Python, for a base without"
own_store=$MLENV_STORE
shared_bare
"$MLENV" build --locked --no-unpack --output "oci:$work/bare/image" "$recipe_path" >/dev/null
export MLENV_STORE=$own_store
printf 'name: python\nbase: oci:image\npackages: [six]\n' >"$work/bare/python.yaml"
"$MLENV" lock "$work/bare/python.yaml" 2>"$work/err" && fail "it was locked without Python"
grep -qF 'add it with `system: [python3]`' "$work/err" || fail "$(cat "$work/err")"
echo 'system: [python3]' >>"$work/bare/python.yaml"
build_digest "$work/bare/python.yaml" >/dev/null
grep -qE '^interpreter = "/usr/bin/python3\.[0-9]+"$' "$work/bare/python.lock" || fail "no interpreter"
equal "imported" "/opt/venv/lib/python3/site-packages/__pycache__" "$("$MLENV" run --no-project python -- \
  python -c 'import os, six; print(os.path.dirname(os.path.realpath(six.__cached__)))')"
verify_store
