#!/usr/bin/env bash
# `mlenv diff` of real runs: code, variables, arguments and images that changed are named; a run that is
# handed over is compared where its image is not; what is not known is said to be so.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc jq git
need_root

base_tree
small_recipe "$work/small.yaml" six==1.16.0
build_digest "$work/small.yaml" >/dev/null
mkdir "$work/project" "$work/one" "$work/two"
cd "$work/project"
commit() { git add -A && git -c user.name=a -c user.email=a@b commit -q -m "$1"; }
git init -q -b main
cat >train.py <<'SCRIPT'
import os, select, sys, time
if os.environ.get("FAIL"):
    sys.exit(3)
end = time.process_time() + 0.1
while time.process_time() < end:
    pass
# As long on a busy machine: another second would be a finding of its own.
select.select([], [], [], 1.2)
SCRIPT
commit one

is_read() { "$MLENV" --json runs show last | jq -e '.host != null and .code != null'; }
run() { # run ARGUMENT…: to its end, whatever that is, and until its record is whole
  "$MLENV" run "$@" >"$work/out" 2>"$work/err" || true
  wait_until 30 is_read
}
found() { # found ARGUMENT…: rules that `diff` names, but for what cannot matter, and that a busy machine was slower
  local status=0
  "$MLENV" --json diff "$@" >"$work/diff.json" 2>"$work/err" || status=$?
  [ "$status" = 0 ] || [ "$status" = 3 ] || fail "diff $*: $(cat "$work/err")"
  jq -r '(.symptom // {} | tostring | contains("slower")) as $slower |
    [.findings[] | select(.weight != "incidental").rule | select($slower and . == "outcome" | not)] | join(" ")' "$work/diff.json"
}
first() { found "$@" | cut -d' ' -f1; }

note "nothing changed"
run small -- python train.py --seed 1
run small -- python train.py --seed 1
equal "twice the same" "" "$(found last~1 last)"
equal "all but of the host is known" "" "$(jq -r '.not_compared[].what | select(startswith("host ") | not)' "$work/diff.json")"
"$MLENV" runs show last >"$work/shown"
grep -qE '^busy +[0-9.]+ of [0-9.]+ processors on average \([0-9]+ %\)$' "$work/shown" || fail "not how busy: $(cat "$work/shown")"

note "code, variable, argument, mount"
echo '# more' >>train.py
run small -- python train.py --seed 1
equal "uncommitted" code "$(found last~1 last)"
equal "which file" "train.py" "$(jq -r '.findings[0].to' "$work/diff.json" | grep -o 'train\.py')"
commit two
run small -- python train.py --seed 1
equal "committed since" code "$(found last~1 last)"
jq -r '.findings[0].effect' "$work/diff.json" >"$work/effect"
grep -qF 'between the commits 1 file changed: train.py' "$work/effect" || fail "which file: $(cat "$work/effect")"
run small -e OMP_NUM_THREADS=1 -e HF_TOKEN=secret -- python train.py --seed 1
equal "a variable" "threads variables" "$(found last~1 last)"
run small -v "$work/one:/data:ro" -- python train.py --seed 2
equal "an argument, a mount" "mounts arguments threads variables" "$(found last~1 last)"
run small -v "$work/two:/data:ro" -- python train.py --seed 2
equal "other data" "data-mount" "$(found last~1 last)"

note "a run that fails"
run small -v "$work/two:/data:ro" -e FAIL=1 -- python train.py --seed 2
equal "what it is" "variables" "$(found last~1 last)"
equal "how it shows" "the second failed with status 3" "$(jq -r .symptom.text "$work/diff.json")"

note "another image"
small_recipe "$work/small.yaml" six==1.17.0
build_digest "$work/small.yaml" >/dev/null
run small -v "$work/two:/data:ro" -- python train.py --seed 2
equal "another package" "python-packages" "$(found last~2 last)"
equal "which" "six 1.16.0 six 1.17.0" "$(jq -r '.findings[0] | .from + " " + .to' "$work/diff.json")"
equal "the same by its image" "$(jq -c .wheels "$work/diff.json")" "$("$MLENV" --json diff last~2 small | jq -c .wheels)"
equal "a run and its image" "no difference" "$("$MLENV" diff last small)"
equal "a run and its lock" "no difference" "$("$MLENV" diff "$work/small.yaml" last)"

note "this host"
equal "since just now" "" "$(found last host)"
"$MLENV" facts --json >"$work/here.json"
equal "its facts" "" "$(found "$work/here.json" host)"
jq '.system.kernel.value = "5.4.0" | .time.clock_source.value = "hpet"' "$work/here.json" >"$work/then.json"
equal "another clock source" clock-source "$(first "$work/then.json" host)"
failing_with diff-pair "$MLENV" --json diff host small
failing_with no-run "$MLENV" --json diff last~99 host

note "handed over: compared where the image is not"
"$MLENV" --json runs show last~2 >"$work/theirs.json"
"$MLENV" --json runs show last >"$work/mine.json"
expected=$(jq -c '[.findings, .wheels, .debs]' <("$MLENV" --json diff last~2 last || true))
if grep -q secret "$work"/*.json; then fail "a secret is handed over"; fi
(
  export MLENV_STORE=$work/elsewhere
  equal "by the records alone" "$expected" "$("$MLENV" --json diff "$work/theirs.json" "$work/mine.json" | jq -c '[.findings, .wheels, .debs]')"
  jq '.environment = null' "$work/mine.json" >"$work/bare.json"
  equal "without packages" image "$(found "$work/theirs.json" "$work/bare.json")"
  # Whether a host's own name is told may differ from one second to the next: a resolver answers late.
  equal "said to be unknown" "packages of the image" "$(jq -r '.not_compared[] | select(.to).what | select(startswith("host ") | not)' "$work/diff.json")"
  failing_with not-found "$MLENV" --json diff "$work/bare.json" "$work/small.yaml"
)
