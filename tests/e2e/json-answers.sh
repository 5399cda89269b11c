#!/usr/bin/env bash
# Every `--json` answer, failure and progress line fits its schema, and every schema is met here.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
lines=$work/lines

note "lock, build, images, inspect, push, pull, store verify"
base_store
small_recipe "$work/small.yaml" idna
start_registry
image=$registry/team/small:v1
{
  "$MLENV" --json --progress json lock "$work/small.yaml" 2>"$work/err"
  cat "$work/err"
  "$MLENV" --json --progress json build "$work/small.yaml" 2>"$work/err"
  cat "$work/err"
  "$MLENV" --json build "$work/small.yaml" 2>"$work/err" | tee "$work/again"
  "$MLENV" --json images
  "$MLENV" --json inspect small
  "$MLENV" --json push small "$image" 2>"$work/err"
  "$MLENV" --json push small "$image" 2>"$work/err"
  "$MLENV" --json store verify
} >>"$lines"
jq -e '.steps | length > 2 and all(.reused)' "$work/again" >/dev/null || fail "not all reused: $(cat "$work/again")"
MLENV_STORE=$work/other "$MLENV" --json pull "$image" >>"$lines" 2>"$work/err"
equal "pulled" "$("$MLENV" --json inspect small | jq -r .digest)" \
  "$(MLENV_STORE=$work/other "$MLENV" --json inspect "$image" | jq -r .digest)"

note "failures of each kind"
failing() { # failing STATUS ARGUMENT…
  local status=0 expected=$1
  shift
  "$MLENV" --json -q "$@" >"$work/out" 2>"$work/err" || status=$?
  equal "status of $*" "$expected" "$status"
  [ ! -s "$work/out" ] || fail "an answer beside the failure of $*"
  equal "exit_status in $*" "$expected" "$(jq .exit_status "$work/err")"
  cat "$work/err" >>"$lines"
}
failing 1 build "$work/nothing.yaml"
failing 2 build --no-such-option
sed -i 's/idna/idna, six/' "$work/small.yaml"
failing 3 build --locked "$work/small.yaml"
printf 'nmae: x\nbase: debian:bokworm\n' >"$work/bad.yaml"
failing 2 lock "$work/bad.yaml"
failing 125 run no-such-image true

python3 "$root/tests/schema/check.py" <"$lines" >"$work/met" || fail "see above"
python3 "$root/tests/schema/check.py" --list </dev/null | diff "$work/met" - || fail "schemas that nothing here met"
note "$(wc -l <"$lines") lines fit $(wc -l <"$work/met") schemas"
