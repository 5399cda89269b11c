#!/usr/bin/env bash
# mlenv add and remove: the recipe keeps all that is not of the package, the lock follows, and a
# failure leaves both as they were.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir "$work/project"
cd "$work/project"
cat >recipe.yaml <<'RECIPE'
# What we train with.
name: small
base:   debian:bookworm   # the cluster has it too
python: "3.11"

packages:
  - idna   # names
  # - numpy

command: [python, train.py]
RECIPE
chmod 640 recipe.yaml
cp recipe.yaml "$work/first.yaml"

run() { # run STATUS ARGUMENT…
  local status=0 expected=$1
  shift
  "$MLENV" "$@" >"$work/out" 2>"$work/err" || status=$?
  equal "status of $*" "$expected" "$status"
}
says() { grep -qF -- "$1" "$work/err" || fail "says: $(cat "$work/err")"; }
kept() { cp recipe.yaml "$work/recipe.kept" && cp recipe.lock "$work/lock.kept"; }
unchanged() {
  cmp "$work/recipe.kept" recipe.yaml || fail "another recipe"
  cmp "$work/lock.kept" recipe.lock || fail "another lock"
}
holds() { grep -q "name = \"$1\"" recipe.lock || fail "the lock lacks $1"; }
nothing_left() { [ -z "$(find . -name '.tmp-*')" ] || fail "left: $(find . -name '.tmp-*')"; }

note "without a lock before"
run 0 add six
says 'added `six` to `packages`'
says 'wrote `recipe.lock`: 2 wheels'
sed 's/^  - idna   # names$/&\n  - six/' "$work/first.yaml" | diff - recipe.yaml ||
  fail "another recipe than this"
equal permissions 640 "$(stat -c %a recipe.yaml)"
holds six

note "there already"
kept
run 0 add SIX idna
says '`six` is in `packages` already'
says '`idna` is in `packages` already'
unchanged

note "another specifier, in its place"
run 0 add 'idna<3.8'
says '`idna` in `packages` is now `idna<3.8`'
grep -qx '  - idna<3.8   # names' recipe.yaml || fail "recipe: $(cat recipe.yaml)"
grep -qx 'packages: idna, six → idna<3.8, six' "$work/out" || fail "answers: $(cat "$work/out")"
grep -qE '^idna 3\.[0-9.]+ → 3\.7$' "$work/out" || fail "answers: $(cat "$work/out")"

note "Debian packages"
kept
run 0 add --system tree
grep -qx 'system: \[tree\]' recipe.yaml || fail "recipe: $(cat recipe.yaml)"
holds tree
run 0 remove --system tree
grep -qx 'system: \[\]' recipe.yaml || fail "recipe: $(cat recipe.yaml)"
cmp "$work/lock.kept" recipe.lock || fail "another lock than before"

note "no lock can be made"
kept
run 3 add 'six<0.1' certifi
says '`recipe.yaml` is left as it was'
unchanged
run 3 add mlenv-has-no-such-package
says '`mlenv-has-no-such-package`'
unchanged
run 3 add --system mlenv-has-no-such-package
unchanged
run 2 add 'six=1'
says '`six=1` is not a Python requirement'
run 1 remove certifi
says 'has no `certifi`'
unchanged
nothing_left

note "as answers for programs"
run 0 --json add certifi 'six>=1.16'
jq -e '.schema == "mlenv.recipe-edit/1" and .lock.written and
  .packages[0] == {package: "certifi", before: null, after: "certifi"} and
  .packages[1].after == "six>=1.16"' "$work/out" >/dev/null || fail "answers: $(cat "$work/out")"
[ ! -s "$work/err" ] || fail "says: $(cat "$work/err")"

note "removed, with another name of the recipe"
mv recipe.yaml train.yaml
mv recipe.lock train.lock
ln -s train.yaml link.yaml
cp train.lock link.lock
run 0 remove --recipe link.yaml six certifi
says 'removed `six>=1.16` from `packages`'
grep -qE '^- certifi ' "$work/out" || fail "answers: $(cat "$work/out")"
[ -L link.yaml ] || fail "the link is a file now"
if grep -qE 'six|certifi' train.yaml link.lock; then fail "it is still there"; fi
grep -qx '  # - numpy' train.yaml || fail "recipe: $(cat train.yaml)"
mv train.yaml recipe.yaml
mv link.lock recipe.lock
run 0 lock --locked

note "the recipe changes while its lock is made"
kept
uv=$(command -v uv || find "$XDG_CACHE_HOME/mlenv/uv" -name uv -type f | head -n 1)
mkdir "$work/bin"
printf '#!/bin/sh\necho "# mine" >>%q\nexec %q "$@"\n' "$PWD/recipe.yaml" "$uv" >"$work/bin/uv"
chmod +x "$work/bin/uv"
failing_with recipe-changed env PATH="$work/bin:$PATH" "$MLENV" --json add six
grep -qx '# mine' recipe.yaml || fail "the other change is gone"
cmp "$work/lock.kept" recipe.lock || fail "another lock"
cp "$work/recipe.kept" recipe.yaml

note "two at once: one wins, or one comes after the other; the lock is the recipe's"
kept
for round in 1 2 3; do
  "$MLENV" -q add six >"$work/one" 2>&1 &
  first=$!
  "$MLENV" -q add certifi >"$work/two" 2>&1 &
  second=$!
  won=0
  for pid in "$first" "$second"; do if wait "$pid"; then won=$((won + 1)); fi; done
  [ "$won" -ge 1 ] || fail "neither won: $(cat "$work/one" "$work/two")"
  [ "$won" -eq 2 ] || grep -q 'was changed while the lock was made' "$work/one" "$work/two" ||
    fail "lost otherwise: $(cat "$work/one" "$work/two")"
  "$MLENV" lock --locked >"$work/out" 2>&1 || fail "round $round: $(cat "$work/out")"
  cp "$work/recipe.kept" recipe.yaml
  cp "$work/lock.kept" recipe.lock
done
nothing_left

note "killed at a moment of its own choosing"
kept
for moment in 0.05 0.1 0.2 0.3 0.5 1; do
  timeout -s KILL "$moment" "$MLENV" -q add "six" certifi >"$work/out" 2>&1 || true
  if ! cmp -s "$work/recipe.kept" recipe.yaml; then
    grep -qx '  - certifi' recipe.yaml || fail "half a recipe: $(cat recipe.yaml)"
  fi
  "$MLENV" -q lock || fail "no recipe after a kill"
  cp "$work/recipe.kept" recipe.yaml
  cp "$work/lock.kept" recipe.lock
done
