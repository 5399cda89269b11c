# shellcheck shell=bash
# tests/run.sh --resume: what passed, or was skipped, in a run of the same sources is not done again.
# shellcheck disable=SC2154  # work, results, long: set by tests/run.sh

# What a result is about: the commit, what was changed since, and whether tests are the long ones.
state_of_sources() {
  {
    git rev-parse HEAD
    git diff HEAD --binary
    git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum --
    echo "long: $long"
  } | sha256sum
}

# begin_results RESUME: an empty folder, or that of a run to go on with.
begin_results() {
  local state
  state=$(state_of_sources 2>/dev/null) || state=
  if [ "$1" = 1 ]; then
    if [ -n "$state" ] && [ "$(cat "$work/state" 2>/dev/null)" = "$state" ]; then
      # Units' results come all together.
      [ -e "$work/unit.done" ] || sed -i -E '/^\S+\t(unit|tsan)\//d' "$results"
      sed -i -E '/^fail\t/d' "$results"
      rm -f "$work/again" "$work/unexpected"
      echo "resumed: $(grep -c . "$results" || true) results of before"
      return
    fi
    echo "not resumed: the sources are not those of the last run, or there was none"
  fi
  rm -rf "$work"
  mkdir -p "$work"
  : >"$results"
  echo "$state" >"$work/state"
}

# Whether a result of before stands for the test.
has_result() { grep -qE "^(pass|skip)"$'\t'"$1"$'\t' "$results"; }
