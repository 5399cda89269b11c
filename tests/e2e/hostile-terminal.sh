#!/usr/bin/env bash
# A person's terminal and `mlenv exec`: where the command gets none of its own, it gets pipes, so that what it leaves
# running reads nothing that is typed later; what it writes comes whole, and what it leaves running holds nobody up.
# shellcheck disable=SC2016  # for the shells inside
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/hostile.sh
. "$root/tests/support/hostile.sh"
# shellcheck disable=SC2034  # for both.sh
long_both=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"

hostile_image plain
mkdir "$work/project"
cd "$work/project"
# on_terminal TYPED SCRIPT: what the terminal shows is in $work/out.
on_terminal() {
  timeout 60 python3 "$root/tests/support/on_terminal.py" "$1" bash -c "$2" >"$work/out" 2>"$work/err" </dev/null
}
for runtime in runc crun; do
  note "$runtime"
  "$MLENV" run -d --name "it-$runtime" --runtime "$runtime" --no-check hostile/plain:v1 -- /bin/sleep 600 >/dev/null
  e="$MLENV exec it-$runtime --"
  on_terminal '' "$e /bin/sh -c 'test ! -t 2 && echo no-terminal >&2' | cat" || fail "$(cat "$work/out")"
  grep -q no-terminal "$work/out" || fail "the command has the terminal: $(cat "$work/out")"
  # What it leaves running holds its streams, and waits for a line.
  on_terminal 'typed-later\n' \
    "$e /bin/sh -c 'setsid /bin/sh -c \"head -n 1 <&2 >stolen; exec sleep 30\" >/dev/null & echo gone >&2' | cat; echo READY; read -r line; echo \"read=\$line\""
  grep -q '^read=typed-later' "$work/out" || fail "the person's line: $(cat "$work/out")"
  if grep -q typed stolen; then fail "what was left running read the terminal"; fi
  # All that it wrote, and its status.
  status=0
  on_terminal '' "$e /bin/sh -c 'head -c 300000 /dev/zero | tr \"\\0\" x >&2; exit 7' >/dev/null" || status=$?
  equal "status" 7 "$status"
  equal "bytes" 300000 "$(tr -cd x <"$work/out" | wc -c)"
  # What is left running and writes without end is not waited for.
  on_terminal '' "$e /bin/sh -c 'yes >&2 & sleep 0.2; kill \$!; yes >&2 & true' >/dev/null; echo ended" || true
  grep -q ended "$work/out" || fail "exec did not end"
  # Standard input: typed, and its end.
  on_terminal 'one\n\x04' "echo READY; $MLENV exec -i it-$runtime -- /bin/sh -c 'test ! -t 0 && cat' | sed s/^/got-/"
  grep -q '^got-one' "$work/out" || fail "input: $(cat "$work/out")"
  "$MLENV" stop --time 0s "it-$runtime" >/dev/null 2>&1
  rm -f stolen
done
both_done
