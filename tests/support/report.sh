# shellcheck shell=bash
# How a run of tests/run.sh ends: minutes, the slowest, what failed, and the line of figures.
# shellcheck disable=SC2154  # root, work, results, area_name, beside: set by tests/run.sh and areas.sh

# The end of the run, however it comes: `finish STATUS`.
finish() {
  local status=$1 children passed failed skipped
  children=$(jobs -p)
  if [ -n "$beside" ]; then kill -- "-$beside" 2>/dev/null || true; fi
  # shellcheck disable=SC2086  # one process id a word
  if [ -n "$children" ]; then kill $children 2>/dev/null || true; fi
  wait
  remove_later || true
  unmount_memory || true
  if [ "$status" -ne 0 ] && ! grep -q ^fail "$results"; then
    record fail "$area_name/run" 0 "the test program itself ended with status $status"
  fi
  report
  passed=$(grep -c ^pass "$results" || true)
  failed=$(grep -c ^fail "$results" || true)
  skipped=$(grep -c ^skip "$results" || true)
  echo "$passed passed, $failed failed, $skipped skipped"
  if [ "$failed" -ne 0 ] || [ -e "$work/unexpected" ] || [ "$passed" -eq 0 ]; then exit 1; fi
  exit 0
}

# Skips must be expected: `AREA/TEST  reason` in tests/allowed-skips, shell patterns allowed.
unexpected_skips() {
  local name pattern allowed
  while IFS= read -r name; do
    allowed=0
    while read -r pattern _; do
      # shellcheck disable=SC2053  # a pattern on purpose
      if [[ -n $pattern && $pattern != '#'* && $name == $pattern ]]; then allowed=1; fi
    done <tests/allowed-skips
    if [ "$allowed" = 0 ]; then echo "$name"; fi
  done < <(grep ^skip "$results" | cut -f2)
}

# Minutes of each area, beside what tests/README.md says that it may take; processor time of all that
# was waited for (what a scenario leaves in the background is not in it).
report_minutes() {
  echo "== minutes by area"
  awk -F'\t' '
    FNR == NR {
      if (/^\| install \|/) { n = split($0, name, / *\| */); next }
      if (n && /^\| [0-9]/) { split($0, most, / *\| */); for (i = 2; i < n; i++) may[name[i]] = most[i]; n = 0 }
      next
    }
    !($1 in took) { order[++count] = $1 }
    { took[$1] += $2; all += $2 }
    END {
      for (i = 1; i <= count; i++) {
        area = order[i]
        minutes = took[area] / 60
        over = (area in may) && minutes > 1.5 * may[area] ? sprintf("  warning: %s may take %s (tests/README.md)", area, may[area]) : ""
        printf "%-10s %5.1f%s\n", area, minutes, over
      }
      printf "%-10s %5.1f\n", "all", all / 60
    }' FS='|' tests/README.md FS='\t' "$work/areas"
  local processor
  processor_seconds
  awk -v seconds="$processor" 'BEGIN { printf "%-10s %5.1f\n", "processor", seconds / 60 }'
}

report() {
  local unexpected unsteady
  end_area
  report_minutes
  echo "== the slowest, in seconds, and those of the processor"
  touch "$work/processors"
  sort -t $'\t' -k3,3nr "$results" | awk -F'\t' '
    FILENAME != "-" { processor[$1] = $2; next }
    $2 !~ /^build\// && ++n <= 10 { printf "%6.1f %6s  %s\n", $3, processor[$2], $2 }' "$work/processors" -
  unexpected=$(unexpected_skips)
  unsteady=$(comm -23 <(sed -E 's,.*/(.*)\.sh$,e2e/\1,' "$work/again" 2>/dev/null | sort) <(grep ^fail "$results" | cut -f2 | sort))
  if [ -n "$unsteady" ]; then
    echo "== passed alone, but not beside another: to be mended"
    echo "$unsteady"
  fi
  if grep -q ^fail "$results"; then
    echo "== failed"
    grep ^fail "$results" | cut -f2,4
  fi
  if [ -n "$unexpected" ]; then
    echo "== skipped, and not on the list tests/allowed-skips"
    echo "$unexpected"
    : >"$work/unexpected"
  fi
}
