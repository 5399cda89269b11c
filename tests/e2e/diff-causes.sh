#!/usr/bin/env bash
# What differs between two runs is ranked: a planted cause comes first among ten differences that
# explain nothing, whatever is drawn.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3
seeds=4
[ "$MLENV_TEST_LONG" = 0 ] || seeds=100
PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/support/planted_changes.py" "$MLENV" "$work" "$seeds" >"$work/out" ||
  fail "$(tail -n 20 "$work/out")"
tail -n 1 "$work/out"
"$MLENV" --json diff "$work/a.json" "$work/b.json" >"$work/answer" || true
python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
equal "schema" mlenv.diff/1 "$(python3 "$root/tests/schema/check.py" <"$work/answer")"
