#!/usr/bin/env bash
# What guards a build: the lock against edits, the .built file against other results, --locked
# against writing. A project that cannot be written still builds and runs.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc
need_root

path=$work/project/small.yaml
lock=${path%.yaml}.lock
built=${path%.yaml}.built
mkdir "$work/project"
small_recipe "$path" idna
base_store

failing() { # failing STATUS WORDS ARGUMENT…: mlenv fails, says so, and leaves lock and .built alone
  local status=0 expected=$1 words=$2
  shift 2
  cp "$lock" "$work/lock.before"
  cp "$built" "$work/built.before"
  "$MLENV" "$@" >"$work/out" 2>"$work/err" || status=$?
  equal "status of $*" "$expected" "$status"
  grep -qF "$words" "$work/err" || fail "$* says: $(cat "$work/err")"
  [ ! -s "$work/out" ] || fail "an answer beside the failure of $*"
  diff "$work/lock.before" "$lock" || fail "$* wrote the lock"
  diff "$work/built.before" "$built" || fail "$* wrote .built"
}

note "a build says what it locked"
image=$("$MLENV" build "$path" 2>"$work/err")
grep -qE "^wrote \`$lock\`: 1 wheel, [0-9]+ Debian packages$" "$work/err" || fail "says: $(cat "$work/err")"
grep -qx "lock = \"$(sed -n 's/^checksum = "\(.*\)"$/\1/p' "$lock")\"" "$built" || fail "another lock in .built"
small_recipe "$path" idna six
second=$("$MLENV" build "$path" 2>"$work/err")
grep -qx 'packages: idna → idna, six' "$work/err" || fail "says: $(cat "$work/err")"
grep -qE '^\+ six ' "$work/err" || fail "says: $(cat "$work/err")"
[ "$second" != "$image" ] || fail "another package and the same image"

note "--locked compares, and writes only a record that is missing"
equal "with .built" "$second" "$("$MLENV" build --locked "$path")"
mv "$built" "$work/kept.built"
equal "without .built" "$second" "$("$MLENV" build --locked "$path")"
diff "$work/kept.built" "$built" || fail "another .built"
equal "a plain build" "$second" "$("$MLENV" build "$path")"
diff "$work/kept.built" "$built" || fail "another .built"

note "an edited lock"
cp "$lock" "$work/good.lock"
sed -i '/name = "six"/d' "$lock"
failing 2 'edited or merged by hand' build --locked "$path"
failing 2 'edited or merged by hand' build "$path"
sed -i 's/^revision = 1$/revision = 0/; /^checksum = /d' "$lock"
failing 3 'the lock holds no wheel for `six`' build --locked "$path"
equal "a plain build" "$second" "$("$MLENV" build "$path" 2>/dev/null)"
diff "$work/good.lock" "$lock" || fail "another lock"

note "a result that differs"
sed -i '/title = "debian:bookworm"/s/sha256 = "......../sha256 = "00000000/' "$built"
for option in "" --locked; do
  failing 3 'layer `debian:bookworm`: recorded sha256:00000000' build ${option:+"$option"} "$path"
  if grep -q 'because: image:' "$work/err"; then fail "the image does not differ: $(cat "$work/err")"; fi
done
sed -i 's/^lock = "......../lock = "00000000/' "$built"
failing 3 'it records a build of lock 00000000' build --locked "$path"
equal "a plain build" "$second" "$("$MLENV" build "$path")"
diff "$work/kept.built" "$built" || fail "another .built"

note "a project of somebody else"
user_store
as_root chmod -R a+rX,go-w "$work/project"
rm "$built"
foreign() {
  as_user MLENV_STORE="$user_home/store" mlenv "$@" 2>"$work/err" || fail "$* says: $(cat "$work/err")"
}
equal "a plain build" "$second" "$(foreign build "$path")"
equal "sentences" 1 "$(grep -c '^warning: `.*small.built` is not written, so nothing records this build: ' "$work/err")"
equal "with --locked" "$second" "$(foreign build --locked "$path")"
grep -q 'is not written' "$work/err" || fail "says: $(cat "$work/err")"
for option in "" --locked; do
  equal "run $option" "1" "$(foreign run ${option:+"$option"} "$path" python -c 'print(1)')"
done
verify_store
