# shellcheck shell=bash
# The parts of tests/run.sh. A result is a line `pass|fail|skip TAB AREA/TEST TAB SECONDS TAB REASON`
# in $results; logs lie in build/test-run/logs/AREA/TEST.log.
# shellcheck disable=SC2154  # root, work, results, only, long: set by tests/run.sh
area_name=
area_began=0

now_ms() {
  local stamp=${EPOCHREALTIME/[.,]/}
  echo $((stamp / 1000))
}

# Ends the area before; its minutes go into the table at the end.
area() {
  end_area
  area_name=$1
  area_began=$(now_ms)
  mkdir -p "$work/logs/$1"
  if [ "$1" = install ] || wanted "$1"; then echo "== $1"; fi
}

end_area() {
  if [ -n "$area_name" ]; then
    printf '%s\t%d\n' "$area_name" $((($(now_ms) - area_began) / 1000)) >>"$work/areas"
    area_name=
  fi
}

# Whether --only lets AREA or AREA/TEST run. An area runs when any of its tests may.
wanted() {
  [ ${#only[@]} -eq 0 ] && return 0
  local pattern
  for pattern in "${only[@]}"; do
    # shellcheck disable=SC2053  # a pattern on purpose
    [[ $1 == $pattern || $1 == $pattern/* || $pattern == $1/* ]] && return 0
  done
  return 1
}

# record VERDICT NAME MILLISECONDS [REASON]
record() {
  local line
  printf -v line '%s\t%s\t%d.%01d\t%s' "$1" "$2" $(($3 / 1000)) $(($3 % 1000 / 100)) "${4:-}"
  printf '%s\n' "$line" >>"$results"
  case $1 in
    pass) printf 'ok    %-40s %6d.%01d s\n' "$2" $(($3 / 1000)) $(($3 % 1000 / 100)) ;;
    skip) printf 'skip  %-40s %s\n' "$2" "${4:-}" ;;
    fail) printf 'FAIL  %-40s %6d.%01d s  %s\n' "$2" $(($3 / 1000)) $(($3 % 1000 / 100)) "${4:-}" ;;
  esac
}

# What must work before anything else; output is shown, a failure ends the run.
step() {
  local began status=0
  began=$(now_ms)
  "$@" || status=$?
  if [ "$status" -ne 0 ]; then
    record fail "$area_name/${1##*/}" $(($(now_ms) - began)) "exit $status"
    exit 1
  fi
}

# step_if NAME COMMAND…: a test that is one command; its output is shown when it fails.
step_if() {
  local name=$1 log=$work/logs/$1.log began status=0
  shift
  wanted "$name" || return 0
  if has_result "$name"; then return 0; fi
  began=$(now_ms)
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    record pass "$name" $(($(now_ms) - began))
  else
    tail -n 200 "$log"
    record fail "$name" $(($(now_ms) - began)) "exit $status"
  fi
}

# What one clone compiled serves the next, wherever it lies.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true
# Not where a folder is built already: other words for the compiler would compile all of it again.
with_ccache() {
  if [ ! -e "$1/CMakeCache.txt" ] && command -v ccache >/dev/null; then echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
}

# build_folder PRESET FOLDER [TARGET…]: warnings are errors. Fuzz targets and unit tests share the
# sanitised build of clang; the release build is GCC's, so both compilers have their say. The folder may be
# one that somebody configured without tests, as the quickstart does.
build_folder() {
  local preset=$1 folder=$2 log=$work/logs/build/$1.log began
  shift 2
  began=$(now_ms)
  mkdir -p "${log%/*}"
  # shellcheck disable=SC2046  # none or one word
  if ! { cmake --preset "$preset" -DMLENV_WERROR=ON -DMLENV_TESTS=ON $(with_ccache "$folder") &&
    cmake --build "$folder" ${1:+--target "$@"}; } >"$log" 2>&1; then
    grep -E -A12 'FAILED|error:|CMake Error' "$log" | head -n 200 || tail -n 50 "$log"
    record fail "build/$preset" $(($(now_ms) - began)) "see ${log#"$root"/}"
    exit 1
  fi
  record pass "build/$preset" $(($(now_ms) - began))
}

# The program as the README builds it.
build_release() {
  wanted e2e || wanted golden || wanted build || return 0
  build_folder release build mlenv mlenv-gpu-probe mlenv-node node_driver
  export MLENV=$root/build/mlenv
}

# sanitised BINARY [FILTER]: its GoogleTest cases. A frame that is used after its function ended is looked for with --long:
# that alone takes a third of the time.
sanitised() {
  ASAN_OPTIONS=detect_stack_use_after_return=$long:strict_string_checks=1 \
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    "$1" --gtest_color=no ${2:+--gtest_filter="$2"}
}

# cases_of LOG AREA: results of each case, as lines of $results.
cases_of() {
  sed -nE -e "s,^\[       OK \] (\S+).* \(([0-9]+) ms\)$,pass\t$2/\1\t\2,p" \
    -e "s,^\[  SKIPPED \] (\S+).* \(([0-9]+) ms\)$,skip\t$2/\1\t\2\tsee ${1#"$root"/},p" \
    -e "s,^\[  FAILED  \] (\S+).* \(([0-9]+) ms\)$,fail\t$2/\1\t\2\tsee ${1#"$root"/},p" \
    "$1" | awk -F'\t' -v OFS='\t' '{ $3 = sprintf("%.1f", $3 / 1000) } 1'
}

# unit_tests AREA BINARY [FILTER]: each GoogleTest case is a test. Cases that fail beside scenarios have another try, alone
# (units_once_more): up to five; more are no chance.
unit_tests() {
  local area=$1 began log=$work/logs/$1/gtest.log status=0 failed
  if [ -e "$work/$area.done" ]; then return 0; fi
  mkdir -p "${log%/*}"
  began=$(now_ms)
  sanitised "${@:2}" >"$log" 2>&1 || status=$?
  cases_of "$log" "$area" >"$work/gtest"
  failed=$(grep -c ^fail "$work/gtest" || true)
  if [ "$status" -ne 0 ]; then
    grep -vE '^\[( RUN      |       OK |---)' "$log" | tail -n 200 || true
    # A crash says nothing in the list of failures.
    if [ "$failed" -eq 0 ]; then
      record fail "$area/program" $(($(now_ms) - began)) "exit $status: $(tail -n 1 "$log")"
    fi
  fi
  if [ "$failed" -gt 0 ] && [ "$failed" -le 5 ]; then
    sed -n "s,^fail\t$area/,,p" "$work/gtest" | cut -f1 >"$work/$area.again"
    sed -i /^fail/d "$work/gtest"
  fi
  cat "$work/gtest" >>"$results"
  printf '%s: %d cases passed, %d failed, %d skipped in %d s\n' "$area" \
    "$(grep -c ^pass "$work/gtest" || true)" "$failed" "$(grep -c ^skip "$work/gtest" || true)" \
    $((($(now_ms) - began) / 1000))
  if [ "$status" -eq 0 ]; then : >"$work/$area.done"; fi
}

# units_once_more AREA BINARY: what failed beside scenarios, alone.
units_once_more() {
  local area=$1 log=$work/logs/$1/gtest-alone.log status=0
  [ -s "$work/$area.again" ] || return 0
  mkdir -p "${log%/*}"
  echo "$area: failed beside scenarios, tried once more: $(paste -sd' ' "$work/$area.again")"
  sanitised "$2" "$(paste -sd: "$work/$area.again")" >"$log" 2>&1 || status=$?
  cases_of "$log" "$area" | tee "$work/gtest" >>"$results"
  if [ "$status" -ne 0 ]; then
    grep -vE '^\[( RUN      |       OK |---)' "$log" | tail -n 200 || true
    grep -q ^fail "$work/gtest" || record fail "$area/program" 0 "exit $status: $(tail -n 1 "$log")"
  fi
}

goldens() {
  local command
  for command in tests/golden/*.cmd; do
    [ -e "$command" ] || continue
    command=${command##*/}
    step_if "golden/${command%.cmd}" bash tests/support/golden.sh "${command%.cmd}"
  done
}

# processor_seconds: sets $processor to those of what this shell waited for; in a pipe it would tell of another shell.
processor_seconds() {
  local file=$work/processor-$BASHPID
  times >"$file"
  processor=$(awk 'NR == 2 {
    for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); seconds += 60 * part[1] + part[2] }
    printf "%.1f", seconds
  }' "$file")
  rm "$file"
}

# run_script FILE [alone]: one scenario, in a process of its own group so that nothing outlives it. One
# that fails beside others is noted in $work/again.
run_script() {
  local name=e2e/${1##*/} log began processor status=0
  name=${name%.sh}
  log=$work/logs/$name${2:+-$2}.log
  began=$(now_ms)
  local place=()
  if [ -n "$memory" ] && ! grep -q '^# on disk' "$1"; then
    place=(env -u MLENV_TEST_LATER MLENV_TEST_TMP="$memory" MLENV_TEST_SHARED="$memory/shared")
  fi
  timeout --kill-after=30 "${MLENV_TEST_TIMEOUT:-1500}" "${place[@]}" bash "$1" >"$log" 2>&1 </dev/null &
  local child=$!
  # shellcheck disable=SC2064  # this child
  trap "kill $child; wait $child" TERM
  wait "$child" || status=$?
  local took=$(($(now_ms) - began))
  processor_seconds
  printf '%s\t%s\n' "$name" "$processor" >>"$work/processors"
  case $status in
    0) record pass "$name" "$took" ;;
    77) record skip "$name" "$took" "$(tail -n 1 "$log")" ;;
    *)
      {
        echo "---- $name (${log#"$root"/}), last 150 lines:"
        tail -n 150 "$log"
        echo "----"
      } >"$log.shown"
      cat "$log.shown"
      if [ -n "${2:-}" ]; then
        record fail "$name" "$took" "exit $status, alone as well as beside another"
      else
        echo "not ok beside another: $name, exit $status"
        echo "$1" >>"$work/again"
      fi
      ;;
  esac
}

# What failed on a machine that scenarios share has another try for itself. More than three are no
# chance. What then passes is said in the end.
once_more() {
  local script again most=3
  [ -e "$work/again" ] || return 0
  mapfile -t again <"$work/again"
  for script in "${again[@]}"; do
    if [ ${#again[@]} -gt $most ]; then
      record fail "e2e/$(basename "$script" .sh)" 0 "one of ${#again[@]}: too many to try again"
    else
      (run_script "$script" alone) # its processor time is what a shell of its own waited for
    fi
  done
}

# base_commit: what changed since is looked at anew: $MLENV_TEST_SINCE, else the newest commit that is older than a day.
base_commit() {
  local base=${MLENV_TEST_SINCE:-$(git rev-list -1 --before='1 day ago' HEAD 2>/dev/null || true)}
  echo "${base:-$(commit_before)}"
}

# Sources by themselves, and by clang-tidy: all with --long, else what changed.
sources_alone() { if [ "$long" = 1 ]; then .ci/sources build; else .ci/sources build "$(base_commit)"; fi; }
tidy() { if [ "$long" = 1 ]; then .ci/tidy build/asan; else .ci/tidy build/asan --since "$(base_commit)"; fi; }

# The sanitised build and checks of sources, which take long where nothing is remembered, get what scenarios leave of
# the processors: these wait for links, disks and machines that start. Unit tests and fuzzing have limits of time: they
# take turns with scenarios as one of those would. They show their results when they have them.
with_what_is_left() { # with_what_is_left FUNCTION, in a shell of its own
  chrt --idle --pid 0 "$BASHPID" || true
  "$@"
}

build_sanitised() {
  local targets=()
  if wanted unit; then targets=(mlenv_unit); fi
  if wanted fuzz; then mapfile -t -O ${#targets[@]} targets < <(fuzz_names); fi
  if [ ${#targets[@]} -gt 0 ]; then
    build_folder asan build/asan "${targets[@]}"
  elif wanted tidy; then
    cmake --preset asan >"$work/tidy-configure.log" # clang-tidy reads its compile commands
  fi
}

check_sources() {
  step_if lint/shellcheck .ci/shellcheck
  [ -e build/compile_commands.json ] || ! wanted tidy || cmake --preset release >>"$work/tidy-configure.log"
  step_if tidy/clang-tidy tidy
  step_if tidy/sources sources_alone
}

beside=
beside_scenarios() {
  wanted unit || wanted fuzz || wanted tidy || wanted lint || return 0
  mkdir -p "$work/logs/tidy" "$work/logs/lint" "$work/logs/fuzz"
  set -m # a process group of its own, to be ended whole
  {
    (with_what_is_left build_sanitised) || exit 1
    if wanted unit; then unit_tests unit "$root/build/asan/tests/mlenv_unit"; fi
    if wanted fuzz; then fuzz_targets $((long ? 300 : 10)); fi
    (with_what_is_left check_sources)
  } &
  beside=$!
  set +m
}

join_beside() {
  [ -n "$beside" ] || return 0
  wait "$beside" || exit 1 # it said what failed
  beside=
}

# Whether tests/only-long names it, and nobody else does.
left_to_long() {
  local name
  [ "$long" = 0 ] || return 1
  for name in "${only[@]}"; do
    if [ "$name" = "$1" ]; then return 1; fi
  done
  grep -q "^$1 " tests/only-long
}

# Files of the scenarios that this run is for.
chosen_scenarios() {
  local script name
  for script in tests/e2e/*.sh; do
    name=e2e/$(basename "$script" .sh)
    if wanted "$name" && ! left_to_long "$name"; then echo "$script"; fi
  done
}

# Whether what runs beside scenarios is at it.
has_company() { [ -n "$beside" ] && kill -0 "$beside" 2>/dev/null; }

# Four at a time, and three where something runs beside them; scripts that say `# first` near the top take longest and go first.
e2e_scripts() {
  local script scripts=() most
  for script in "$@"; do
    has_result "e2e/$(basename "$script" .sh)" || scripts+=("$script")
  done
  [ ${#scripts[@]} -eq 0 ] && return 0
  mkdir -p "$work/logs/e2e" "$work/shared"
  export MLENV_TEST_SHARED=$work/shared
  export MLENV_TEST_CACHE=${MLENV_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mlenv-tests}
  mkdir -p "$MLENV_TEST_CACHE"
  mount_memory
  MLENV_TEST_LATER=$(mktemp -d "${TMPDIR:-/tmp}/mlenv-tests-done.XXXXXX")
  export MLENV_TEST_LATER
  local ended
  local -A scenarios=() # that run, by process
  while IFS= read -r script; do
    if has_company; then most=3; else most=4; fi
    while [ ${#scenarios[@]} -ge "${MLENV_TEST_TOGETHER:-$most}" ]; do
      wait -n -p ended "${!scenarios[@]}" || true
      unset "scenarios[$ended]"
    done
    run_script "$script" &
    scenarios[$!]=1
  done < <({
    grep -l '^# first$' "${scripts[@]}" || true
    grep -L '^# first$' "${scripts[@]}" || true
  })
  wait "${!scenarios[@]}" || true
  once_more
  remove_later &
}

# What scenarios left for the end (tests/lib.sh).
remove_later() {
  local sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo -n --)
  if [ -n "${MLENV_TEST_LATER:-}" ]; then "${sudo[@]}" rm -rf --one-file-system "$MLENV_TEST_LATER"; fi
}

fuzz_names() {
  local target
  for target in tests/fuzz/*_fuzz.cpp; do
    target=${target##*/}
    echo "${target%.cpp}"
  done
}

# fuzz_targets SECONDS: each target from its corpus, in a scratch copy of it.
fuzz_targets() {
  local name target corpus
  for name in $(fuzz_names); do
    target=build/asan/tests/$name
    corpus=$work/corpus/$name
    mkdir -p "$corpus"
    if [ -d "tests/fuzz/corpus/${name%_fuzz}" ]; then cp -r "tests/fuzz/corpus/${name%_fuzz}/." "$corpus"; fi
    step_if "fuzz/${name%_fuzz}" "$target" -max_total_time="$1" -timeout=10 -rss_limit_mb=2048 \
      -artifact_prefix="$work/logs/fuzz/" -print_final_stats=1 "$corpus"
  done
}
