#!/usr/bin/env bash
# The record of each run: what ran, with which code, on which host, and how it ended, also when mlenv
# is killed; secrets are not in it.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc
need_root

small_tree
digest=$image
mkdir "$work/project"
cd "$work/project"
git init -q -b main
echo 'print("train")' >train.py
git add train.py
git -c user.name=a -c user.email=a@b commit -q -m x
echo 'print("changed")' >train.py

record() { # record EXPRESSION: of the newest run's record, as jq has it
  "$MLENV" --json runs show last | jq -r "$1"
}
run() { # run ARGUMENT…: its status
  local status=0
  "$MLENV" run small "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}

note "a run that ends well"
equal "status" 0 "$(HF_TOKEN=hf_real run -e A=1 -e HF_TOKEN -e "INDEX=https://me:word@host/" -v "$work:/data:ro" -- python train.py --api-key k123)"
equal "state" "done" "$(record .state)"
equal "image" "small $digest" "$(record '.start.image | .name + " " + .digest')"
equal "command" "python train.py --api-key ***" "$(record '.start.argv | join(" ")')"
equal "variables" '[["A","1"],["HF_TOKEN",null],["INDEX","https://***@host/"]]' "$(record '.start.env | map([.name, .value]) | tojson')"
equal "mount" "$work /data true" "$(record '.start.mounts[0] | "\(.source) \(.target) \(.read_only)"')"
equal "checked" "true []" "$(record '.start | "\(.checked) \(.devices)"')"
equal "project" "$work/project" "$(record .start.project)"
"$MLENV" --json runs show last >"$work/record"
grep -q '"id"' "$work/record" || fail "no record: $(cat "$work/record")"
if grep -E 'hf_real|word@|k123' "$work/record"; then fail "a secret is in the record"; fi
if grep -rE 'hf_real|word@|k123' "$MLENV_STORE/runs"; then fail "a secret is in the store"; fi
# What is read beside the run may end after it.
reads() { [ "$(record '.host != null and .code != null')" = true ]; }
wait_until 30 reads
equal "commit" "$(git rev-parse HEAD) main" "$(record '.code | .commit.value + " " + .branch.value')"
equal "what is changed" '["train.py"]' "$(record '.code.changed.value | tojson')"
equal "host" "$(uname -r)" "$(record .host.system.kernel.value)"
changed=$(record .code.changed_digest.value)

note "--no-check is recorded"
equal "status" 0 "$(run --no-check -- true)"
equal "not checked" false "$(record .start.checked)"

note "the same code has the same digest, other code another"
equal "status" 0 "$(run -- true)"
wait_until 30 reads
equal "same code" "$changed" "$(record .code.changed_digest.value)"
echo 'print("again")' >train.py
equal "status" 0 "$(run -- true)"
wait_until 30 reads
[ "$(record .code.changed_digest.value)" != "$changed" ] || fail "other code, the same digest"

note "other ends"
equal "status" 3 "$(run -- sh -c 'exit 3')"
equal "failed" "failed 3" "$(record '.state + " " + (.end.exit_code | tostring)')"
# shellcheck disable=SC2016  # for the shell inside
equal "status" 143 "$(run -- sh -c 'kill -TERM $$')"
equal "killed" "killed 15" "$(record '.state + " " + (.end.signal | tostring)')"
equal "status" 125 "$(run --runtime no-such-runtime -- true)"
equal "refused" "refused no-runtime" "$(record '.state + " " + .end.failure.code')"
equal "status" 0 "$(run -- python -c 'sum(i * i for i in range(3000000)); b"x" * 300000000')"
equal "what it used" true "$(record '.end.usage | .user_seconds > 0.05 and .largest_process_bytes.value > 250000000')"

note "mlenv is killed: the record says that the end is lost"
mkfifo "$work/started"
"$MLENV" run small -v "$work:/data" -- sh -c 'echo >/data/started; sleep 1000' >"$work/out" 2>&1 &
mlenv=$!
read -r <"$work/started"
equal "while it runs" running "$(record .state)"
id=$(record .start.id)
equal "listed" "$id" "$("$MLENV" --json runs --state running | jq -r '.runs[].start.id')"
if "$MLENV" --json runs rm "$id" 2>"$work/err"; then fail "the record of a run that goes on was taken away"; fi
grep -q '"code":"run-goes-on"' "$work/err" || fail "not said why: $(cat "$work/err")"
kill -KILL "$mlenv"
wait "$mlenv" || true
is_lost() { [ "$(record .state)" = lost ]; }
wait_until 20 is_lost
"$MLENV" runs show last >"$work/record"
grep -q 'mlenv was killed before it ended' "$work/record" || fail "not told: $(cat "$work/record")"

note "a record that cannot be written stops no run"
mv "$MLENV_STORE/runs" "$work/runs"
: >"$MLENV_STORE/runs"
equal "status" 0 "$(run -- true)"
grep -q 'this run is not recorded' "$work/err" || fail "nothing said: $(cat "$work/err")"
rm "$MLENV_STORE/runs"
mv "$work/runs" "$MLENV_STORE/runs"

note "list, filters, taking away"
equal "all" 9 "$("$MLENV" --json runs | jq '.runs | length')"
equal "of a state" 5 "$("$MLENV" --json runs --state "done" | jq '.runs | length')"
equal "of an image" 9 "$("$MLENV" --json runs --image "${digest#sha256:}" | jq '.runs | length')"
equal "of another" "" "$("$MLENV" runs --image other)"
equal "the newest" "$id" "$("$MLENV" --json runs -n 1 | jq -r '.runs[].start.id')"
equal "lines" 10 "$("$MLENV" runs | wc -l)"
"$MLENV" store verify 2>"$work/err" || fail "records are no damage: $(cat "$work/err")"
"$MLENV" runs rm "${id#*-*-}" 2>"$work/err"
"$MLENV" runs prune --keep 2 2>"$work/err"
equal "what is left" 2 "$("$MLENV" --json runs | jq '.runs | length')"
"$MLENV" runs prune --older-than 1h 2>"$work/err"
equal "none is older" 2 "$("$MLENV" --json runs | jq '.runs | length')"
"$MLENV" runs prune --older-than 0s 2>"$work/err"
equal "no run, no line" "" "$("$MLENV" runs)"
