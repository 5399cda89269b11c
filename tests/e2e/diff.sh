#!/usr/bin/env bash
# `mlenv diff` of two real images and their locks tells what dpkg and pip tell inside those images;
# packed and unpacked layers give one answer; what to fetch is what a second store fetches.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq
python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
base_tree
cd "$work"

differing() { # differing ARGUMENT…: of `mlenv diff`; its answer, which must be that they differ
  local status=0
  "$MLENV" diff "$@" || status=$?
  equal "status of diff $*" 3 "$status"
}

note "two images: other wheels, another Debian package, another setting"
small_recipe one.yaml idna==3.10 six==1.16.0 packaging
{
  sed 's/^name: .*/name: other/' one.yaml | sed 's/idna==3.10, six==1.16.0/idna==3.7, attrs/'
  echo 'system: [netbase]'
  echo 'env: {OMP_NUM_THREADS: "4"}'
} >other.yaml
one=$(build_digest one.yaml)
other=$(build_digest other.yaml)

note "equal"
equal "with itself" "no difference" "$("$MLENV" diff small small)"
equal "by name and digest" "no difference" "$("$MLENV" diff small "${one:0:19}")"
equal "a recipe and its lock" "no difference" "$("$MLENV" diff one.yaml one.lock)"
equal "an image and its lock" "no difference" "$("$MLENV" diff small one.lock)"
equal "a recipe and its image" "no difference" "$("$MLENV" diff other.yaml other)"

note "what dpkg and pip say inside"
inside() { # inside IMAGE: NAME VERSION of all packages
  # shellcheck disable=SC2016  # dpkg's own
  "$MLENV" run "$1" -- dpkg-query -W -f '${Package} ${Version}\n' >"$1.debs"
  "$MLENV" run "$1" -- python -c 'import importlib.metadata as m, re
for d in m.distributions():
    print(re.sub("[-_.]+", "-", d.metadata["Name"]).lower(), d.version)' >"$1.wheels"
  LC_ALL=C sort -o "$1.debs" "$1.debs"
  LC_ALL=C sort -o "$1.wheels" "$1.wheels"
  [ -s "$1.debs" ] || fail "no Debian package is installed in $1"
  [ -s "$1.wheels" ] || fail "no Python package is installed in $1"
}
agree() { # agree FILE.json FROM TO: both kinds of packages are as `inside` has them
  local kind
  for kind in debs wheels; do
    LC_ALL=C comm -3 "$2.$kind" "$3.$kind" | sed 's/^\t/> /; t; s/^/< /' | LC_ALL=C sort >expected
    jq -r --arg kind "$kind" '.[$kind][] | (select(.from) | "< \(.name) \(.from.version)"),
      (select(.to) | "> \(.name) \(.to.version)")' "$1" | LC_ALL=C sort >found
    [ -s expected ] || fail "$kind do not differ"
    diff expected found || fail "$kind of $1"
  done
}
inside small
inside other
differing --json small other >images.json
agree images.json small other
differing --json one.lock other.lock >locks.json
agree locks.json small other
differing --json one.yaml other >mixed.json
agree mixed.json small other
cat images.json locks.json mixed.json | python3 "$root/tests/schema/check.py" >/dev/null
equal "idna" downgraded "$(jq -r '.wheels[] | select(.name == "idna").change' images.json)"
equal "variable" 4 "$(jq -r '.settings[] | select(.name == "env OMP_NUM_THREADS").to' images.json)"

note "layers that are not unpacked"
mv store/trees unpacked
mkdir store/trees
differing --json small other | diff images.json - || fail "the blobs tell something else than the trees"
rm -r store/trees
mv unpacked store/trees

note "what to fetch"
start_registry
"$MLENV" push small "$registry/team/one:v1" 2>/dev/null
"$MLENV" push other "$registry/team/other:v1" 2>/dev/null
export MLENV_STORE=$work/second
"$MLENV" pull "$registry/team/one:v1" >/dev/null 2>&1
find second/blobs -type f -printf '%f\n' | LC_ALL=C sort >before
"$MLENV" pull "$registry/team/other:v1" >/dev/null 2>&1
find second/blobs -type f -printf '%f %s\n' | LC_ALL=C sort >after
# Two of the new ones are manifest and config.
small_ones=$("$MLENV" --json inspect "$other" | jq -r .digest | cut -d: -f2)
fetched=$(LC_ALL=C join -v 1 after before | grep -v "^$small_ones" | awk '$2 > 0 { n++; s += $2 } END { print n, s }')
config=$(jq -r '.config.digest[7:] + " " + (.config.size | tostring)' "second/blobs/$small_ones")
equal "layers and bytes" "$(awk '{ print $1 - 1, $2 - c }' c="${config#* }" <<<"$fetched")" \
  "$(jq -r '"\(.fetch.layers) \(.fetch.bytes)"' "$work/images.json")"
"$MLENV" --json diff "$one" "$other" | jq 'del(.from.name, .to.name)' >second.json || true
jq 'del(.from.name, .to.name)' images.json | diff - second.json || fail "a pulled image differs otherwise"

note "text"
differing "$one" "$other" >text
grep -qE '^  ↓ idna +3\.10 → 3\.7$' text || fail "idna: $(cat text)"
grep -qE '^  - six +1\.16\.0$' text || fail "six: $(cat text)"
grep -qF 'to fetch: ' text || fail "nothing to fetch: $(cat text)"
if grep -q $'\033' text; then fail "colour without a terminal"; fi
verify_store
