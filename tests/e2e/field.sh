#!/usr/bin/env bash
# What people already have (tests/field): all of it is converted, and a tenth locked, with MLENV_TEST_LONG all.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

note "the runner tells right from wrong"
mkdir -p "$work/field"
cp "$root"/tests/field/*.py "$work/field/"
case_of() { # case_of NAME LINE…: a case of one package
  local folder=$work/field/requirements/$1
  shift
  mkdir -p "$folder"
  echo 'six==1.16.0' >"$folder/requirements.txt"
  printf '%s\n' 'source: - this test' 'init: requirements.txt' "$@" >"$folder/expect"
}
case_of right 'packages: six == 1.16.0'
python3 "$work/field/run.py" | tee "$work/out"
grep -q '^1 cases (1 converted, 0 locked): 1 right (100.0 %)' "$work/out"
case_of marked 'packages: six' 'wrong-today: it is another version'
ends_with 0 python3 "$work/field/run.py"
grep -q '^wrong today: requirements/marked: packages lack six' "$work/out"
case_of mended 'packages: six==1.16.0' 'wrong-today: it was'
ends_with 1 python3 "$work/field/run.py" --only '*/mended'
case_of wrong 'told: nothing of the kind'
ends_with 1 python3 "$work/field/run.py" --only '*/wrong'
grep -q '^wrong: requirements/wrong: not told: nothing of the kind$' "$work/out"

one_in=10
if [ "$MLENV_TEST_LONG" = 1 ]; then one_in=1; fi
python3 "$root/tests/field/run.py" --lock "$one_in" | tee "$work/out" || fail "$(grep -cE '^(wrong|right)' "$work/out") of the field cases"
note "$(tail -n 1 "$work/out")"
