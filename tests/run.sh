#!/usr/bin/env bash
# Installs what the tests need, builds, and runs them all. Usage:
#   tests/run.sh [--long] [--resume] [--only PATTERN]…
#   tests/run.sh --quick [COMMIT]
# --long fuzzes and kills for longer, and runs thread-sanitised unit tests and a browser too; --only takes areas or tests
# whose name (AREA/TEST) matches the shell pattern, as `--only lint`, `--only 'e2e/jax-*'`. --resume goes on with a run
# of the same sources that was interrupted. --quick: unit tests of what changed since COMMIT, goldens, three scenarios.
# Ends with one line, `N passed, N failed, N skipped`; exit 1 on a failure, or on a skip that
# tests/allowed-skips does not name. tests/README.md tells more.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# shellcheck source=tests/support/areas.sh
. tests/support/areas.sh
# shellcheck source=tests/support/report.sh
. tests/support/report.sh
# shellcheck source=tests/support/resume.sh
. tests/support/resume.sh
# shellcheck source=tests/support/quick.sh
. tests/support/quick.sh

long=0
quick=0
resume=0
since=
filter=
only=()
while [ $# -gt 0 ]; do
  case $1 in
    --long) long=1 ;;
    --resume) resume=1 ;;
    --quick)
      quick=1
      if [[ -n ${2:-} && $2 != -* ]]; then
        since=$2
        shift
      fi
      ;;
    --only)
      only+=("${2:?--only needs a pattern}")
      shift
      ;;
    *)
      sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done
export MLENV_TEST_LONG=$long
if [ "$quick" = 1 ]; then
  filter=$(unit_filter "${since:-$(usual_since)}")
  only=(golden "${quick_scenarios[@]}")
  if [ -n "$filter" ]; then only+=(unit); fi
fi

work=$root/build/test-run
[ "$quick" = 0 ] || work=$root/build/test-quick
results=$work/results
# shellcheck source=tests/support/memory.sh
. tests/support/memory.sh
begin_results "$resume"
trap 'finish $?' EXIT
trap 'exit 130' INT TERM

area install
purposes=(build run test)
[ "$long" = 0 ] || purposes+=(long)
mapfile -t scenarios < <(chosen_scenarios)
step .ci/install "${purposes[@]}" "${scenarios[@]}"

area build
build_release

area lint
step_if lint/format .ci/format
step_if lint/layers .ci/layers
step_if lint/names .ci/names
step_if lint/bans .ci/lint
step_if lint/errors .ci/errors
step_if lint/rules .ci/rules
step_if lint/programs .ci/programs

if [ "$quick" = 1 ] && [ -n "$filter" ]; then build_folder asan build/asan mlenv_unit; fi
[ "$quick" = 1 ] || beside_scenarios

area golden
goldens

area e2e
e2e_scripts "${scenarios[@]}"

area beside
join_beside

area unit
if [ "$quick" = 1 ] && [ -n "$filter" ]; then unit_tests unit "$root/build/asan/tests/mlenv_unit" "$filter"; fi
units_once_more unit "$root/build/asan/tests/mlenv_unit"

if [ "$long" = 1 ]; then
  area tsan
  if wanted tsan; then
    build_folder tsan build/tsan mlenv_unit
    unit_tests tsan "$root/build/tsan/tests/mlenv_unit" '*Store*:*Http*:*Pool*:*Registry*'
    units_once_more tsan "$root/build/tsan/tests/mlenv_unit"
  fi
fi
