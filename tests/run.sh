#!/usr/bin/env bash
# Installs what the tests need, builds, and runs them all. Usage:
#   tests/run.sh [--long] [--only PATTERN]…
# --long fuzzes and kills for longer, and runs thread-sanitised unit tests and a browser too; --only takes areas or tests
# whose name (AREA/TEST) matches the shell pattern, as `--only lint`, `--only 'e2e/jax-*'`.
# Ends with one line, `N passed, N failed, N skipped`; exit 1 on a failure, or on a skip that
# tests/allowed-skips does not name. tests/README.md tells more.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# shellcheck source=tests/support/areas.sh
. tests/support/areas.sh

long=0
only=()
while [ $# -gt 0 ]; do
  case $1 in
    --long) long=1 ;;
    --only)
      only+=("${2:?--only needs a pattern}")
      shift
      ;;
    *)
      sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done
export MLENV_TEST_LONG=$long

work=$root/build/test-run
results=$work/results
rm -rf "$work"
mkdir -p "$work"
: >"$results"
trap 'finish $?' EXIT
trap 'exit 130' INT TERM

area install
purposes=(build run test)
[ "$long" = 0 ] || purposes+=(long)
step .ci/install "${purposes[@]}"

area build
build_release

area lint
step_if lint/format .ci/format
step_if lint/layers .ci/layers
step_if lint/bans .ci/lint
step_if lint/errors .ci/errors
step_if lint/rules .ci/rules
step_if lint/programs .ci/programs
step_if lint/shellcheck .ci/shellcheck

beside_scenarios

area golden
goldens

area e2e
e2e_scripts tests/e2e/*.sh

area beside
join_beside

area unit
if wanted unit; then unit_tests unit "$root/build/asan/tests/mlenv_unit"; fi

area fuzz
if wanted fuzz; then fuzz_targets $((long ? 300 : 20)); fi

if [ "$long" = 1 ]; then
  area tsan
  if wanted tsan; then
    build_folder tsan build/tsan mlenv_unit
    unit_tests tsan "$root/build/tsan/tests/mlenv_unit" '*Store*:*Http*:*Pool*:*Registry*'
  fi
fi
