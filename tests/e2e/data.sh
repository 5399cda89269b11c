#!/usr/bin/env bash
# Data sets: verified by digest where they are, mounted read-only in runs, never in the image.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc

project=$work/project
path=$project/app.yaml
mkdir -p "$project/src" "$project/corpus/part"
echo hello >"$project/src/main.txt"
echo one >"$project/corpus/a"
echo two >"$project/corpus/part/b"
ln -s ../a "$project/corpus/part/link"
recipe_with() { # recipe_with DIGEST
  printf 'name: app\nbase: debian:bookworm\npython: "3.11"\nfiles: {.: /workspace}\n' >"$path"
  printf 'data:\n  corpus: {from: ./corpus%s, stage: node}\n' "$1" >>"$path"
}
refused() { # refused STATUS WORDS COMMAND…
  local status=0 expected=$1 words=$2
  shift 2
  "$@" >"$work/out" 2>"$work/err" || status=$?
  equal "status" "$expected" "$status"
  grep -qF -- "$words" "$work/err" || fail "says: $(cat "$work/err")"
}
base_tree

note "the digest is told, and is what coreutils say"
recipe_with ''
refused 2 'has no `digest`; of what is here now it is `digest: sha256:' "$MLENV" lock "$path"
digest=$(grep -oE 'sha256:[0-9a-f]{64}' "$work/err")
expected=$(cd "$project/corpus" && find -L . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum)
equal "digest" "sha256:${expected%% *}" "$digest"

note "a run sees it, the image does not hold it"
recipe_with ", digest: \"$digest\""
"$MLENV" build "$path" 2>"$work/err"
grep -qF 'data = [' "${path%.yaml}.lock"
equal "in the run" "one two one" \
  "$("$MLENV" run --no-project "$path" -- cat /data/corpus/a /data/corpus/part/b /data/corpus/part/link | xargs)"
refused 1 'Read-only file system' "$MLENV" run "$path" -- touch /data/corpus/new
equal "in the image" "app.lock app.yaml src" "$("$MLENV" run --no-project app -- ls /workspace | xargs)"
refused 2 'cannot access' "$MLENV" run --no-project app -- ls /data

note "other data is refused, absent data is told of"
echo three >"$project/corpus/a"
refused 3 "declared $digest" "$MLENV" build --locked "$path"
failing_with data-differs "$MLENV" --json build --locked "$path"
refused 125 'is not the data' "$MLENV" run "$path" -- true
echo one >"$project/corpus/a"
mv "$project/corpus" "$project/elsewhere"
"$MLENV" lock --locked "$path" 2>"$work/err"
grep -qF 'was not verified' "$work/err" || fail "says: $(cat "$work/err")"
mv "$project/elsewhere" "$work/elsewhere"
refused 125 'is not at' "$MLENV" run "$path" -- true
failing_with no-data "$MLENV" --json run "$path" -- true
