#!/usr/bin/env bash
# Archives of one's own: trusted by the key that the recipe names, each for itself, armoured or binary;
# NotAutomatic as apt sees it; and whatever is expired, unsigned, tampered with or turned back refused
# with one message.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/archive.sh
. "$(dirname "$0")/../support/archive.sh"
need curl
export XDG_CACHE_HOME=$work/cache
now=$(date +%s)

note "two archives, two keys"
make_key first
make_key second
make_deb "$work/main" base-files 12 'Essential: yes' 'Priority: required'
make_deb "$work/main" apt 2.6
make_deb "$work/main" tool 1.0 'Depends: libtool (>= 1.0)'
make_deb "$work/main" libtool 1.0
make_deb "$work/extra" ours 3
make_deb "$work/newer" tool 2.0 'Depends: libtool (>= 2.0)'
make_deb "$work/newer" libtool 2.0
make_deb "$work/newer" fresh 1
write_archive first "$work/www/main" bookworm "main:$work/main"
write_archive first "$work/www/main" bookworm-backports NotAutomatic=yes ButAutomaticUpgrades=yes \
  "main:$work/newer"
write_archive second "$work/www/extra" any "own:$work/extra"
serve "$work/www"
mkdir -p "$work/project/keys"
cp "$work/first.asc" "$work/project/keys/first.asc"
cp "$work/second.gpg" "$work/project/keys/second.gpg"

write_recipe() { # write_recipe SYSTEM [FIRST-KEY [SECOND-KEY [MORE]]]
  cat >"$work/project/recipe.yaml" <<RECIPE
name: archives
base: debian:bookworm
system: [$1]
sources:
  debian:
    - {uri: "$served/main", signed-by: ${2:-keys/first.asc}${4:-}}
    - {uri: "$served/main", suite: bookworm-backports, signed-by: ${2:-keys/first.asc}}
    - {uri: "$served/extra", suite: any, components: [own], signed-by: ${3:-keys/second.gpg}}
RECIPE
}
locks() { # locks NAME VERSION…: what the lock then holds, the base aside
  rm -f "$work/project/recipe.lock"
  "$MLENV" lock "$work/project/recipe.yaml" >"$work/out" 2>"$work/err" || fail "lock: $(cat "$work/err")"
  equal "packages" "$*" "$(sed -nE 's/.*name = "([^"]*)", version = "([^"]*)", architecture.*/\1 \2/p' \
    "$work/project/recipe.lock" | grep -Ev '^(apt|base-files) ' | paste -sd' ')"
}
refuses() { # refuses CODE WORDS
  local status=0
  rm -f "$work/project/recipe.lock"
  "$MLENV" --json lock "$work/project/recipe.yaml" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" -ne 0 ] || fail "locked, instead of $1"
  grep -qF "\"code\":\"$1\"" "$work/out" "$work/err" || fail "not $1: $(cat "$work/out" "$work/err")"
  grep -qF "$2" "$work/out" "$work/err" || fail "says: $(cat "$work/out" "$work/err")"
}

write_recipe 'ours, tool'
locks libtool 1.0 ours 3 tool 1.0

note "a suite that says NotAutomatic"
write_recipe tool/bookworm-backports
locks libtool 2.0 tool 2.0
write_recipe fresh
locks fresh 1
write_recipe 'libtool=2.0'
locks libtool 2.0
write_recipe ours/bookworm-backports
refuses unsatisfiable 'there is no `ours` in bookworm-backports, only 3 in any'
write_recipe tool/trixie
refuses unsatisfiable 'no package source here has the suite `trixie`'

note "a key is for its own archive"
write_recipe ours keys/second.gpg
refuses bad-signature 'by a key that is not in the keyring'
write_recipe ours keys/first.asc keys/first.asc
refuses bad-signature 'extra/dists/any/InRelease'
write_recipe ours keys/absent.gpg
refuses absent 'keys/absent.gpg'

note "unsigned, expired, tampered with"
write_recipe tool
write_archive - "$work/www/main" bookworm "main:$work/main"
refuses bad-signature 'it holds no OpenPGP signature'
write_archive first "$work/www/main" bookworm "Date=@$((now - 900))" "Valid-Until=@$((now - 600))" "main:$work/main"
refuses index-expired 'is no longer valid'
write_recipe tool keys/first.asc keys/second.gpg ', check-valid-until: false'
locks libtool 1.0 tool 1.0
write_recipe tool
make_deb "$work/main" tool 1.1
write_archive first "$work/www/main" bookworm "main:$work/main"
sed -i 's/^Version: 1.1/Version: 9.9/' "$work/www/main/dists/bookworm/main/binary-amd64/Packages"
gzip -nc "$work/www/main/dists/bookworm/main/binary-amd64/Packages" >"$work/www/main/dists/bookworm/main/binary-amd64/Packages.gz"
refuses index-mismatch 'is not what the signed Release file says'

note "turned back"
rm "$work/main/tool_1.0_all.deb"
write_archive first "$work/www/main" bookworm "main:$work/main"
locks tool 1.1
rm "$work/main/tool_1.1_all.deb"
make_deb "$work/main" tool 1.0
write_archive first "$work/www/main" bookworm "Date=@$((now - 86400))" "main:$work/main"
"$MLENV" lock --upgrade "$work/project/recipe.yaml" 2>"$work/err" || fail "lock: $(cat "$work/err")"
grep -q 'is older (.*) than what was seen before (.*): using that one' "$work/err" || fail "says: $(cat "$work/err")"
rm -r "$work/cache"
failing_with index-older "$MLENV" --json lock --upgrade "$work/project/recipe.yaml"
grep -qF 'the lock has `tool` 1.1, the newest is 1.0' "$work/err" || fail "says: $(cat "$work/err")"
rm "$work/project/recipe.lock"
locks tool 1.0
