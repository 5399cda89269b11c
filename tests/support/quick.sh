# shellcheck shell=bash
# tests/run.sh --quick: the unit tests of what changed, the goldens, and three scenarios of the main
# job. For work in between; what it leaves out is told by nothing but a whole run.

# shellcheck disable=SC2034  # for tests/run.sh
quick_scenarios=(e2e/run-basics e2e/layers e2e/registry-roundtrip)

# changed_since COMMIT: files of it and of the working tree that are others now.
changed_since() {
  git diff --name-only "$1" --
  git ls-files --others --exclude-standard
}

# The commit before the last, if there is one.
commit_before() { git rev-parse --quiet --verify HEAD~1 || git rev-parse HEAD; }
# The commit that a branch began at, or the one before the last.
usual_since() { git merge-base HEAD '@{upstream}' 2>/dev/null || commit_before; }

# unit_filter COMMIT: GoogleTest's pattern for the suites of changed tests, and of the tests of changed
# sources; empty without any.
unit_filter() {
  local file test
  changed_since "$1" | LC_ALL=C sort -u | while IFS= read -r file; do
    case $file in
      tests/unit/*_test.cpp) test=$file ;;
      *.cpp | *.hpp) test=tests/unit/${file%.?pp}_test.cpp ;;
      *) continue ;;
    esac
    if [ ! -e "$test" ]; then # tests of a folder's files may lie in the folder above
      test=tests/unit/$(dirname "$(dirname "$file")")/$(basename "${file%.?pp}")_test.cpp
    fi
    if [ -e "$test" ]; then
      sed -nE -e 's/^TEST(_F)?\((\w+),.*/\2.*/p' -e 's/^TEST_P\((\w+),.*/*\/\1.*/p' "$test"
    fi
  done | LC_ALL=C sort -u | paste -sd:
}
