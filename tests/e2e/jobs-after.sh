#!/usr/bin/env bash
# `mlenv run --after`: runs and jobs that start once others have ended well, in the foreground and in the
# background, on one machine, on several nodes and by a real Slurm's own dependencies; what fails, is
# stopped or is lost ends what waits for it, and nothing of that is started.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq git
need_node_agent

small_tree
mkdir -p "$work/project" "$work/shared"
cd "$work/project"

said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err" "$work/out")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
# begin NAME STATUS: in the background, until $work/shared/NAME is there; its id is in $work/NAME.id.
begin() {
  "$MLENV" run -d --name "$1" -v "$work/shared:/shared" -e WHEN="$1" -e STATUS="$2" small -- \
    sh -c 'until [ -e "/shared/$WHEN" ]; do sleep 0.1; done; exit $STATUS' >"$work/$1.id"
}
state_of() { "$MLENV" --json runs show "$1" | jq -r .state; }
is_in_state() { [ "$(state_of "$1")" = "$2" ]; }

note "in the background: queued, then it runs; what follows it follows then"
begin first 0
ends_with 0 "$MLENV" run -d --name second --after first -v "$work/shared:/shared" small -- \
  sh -c 'touch /shared/second-ran; echo "second speaks"'
second=$(cat "$work/out")
ends_with 0 "$MLENV" run -d --name third --nodes 2 --after second -v "$work/shared:/shared" small -- \
  sh -c 'touch /shared/third-ran-$RANK; echo "third speaks"'
third=$(cat "$work/out")
equal "state" queued "$(state_of "$second")"
equal "state of a job" queued "$(state_of third)"
ends_with 0 "$MLENV" ps
shown "$second +second .* queued "
shown "$third +third .* queued "
[ ! -e "$work/shared/second-ran" ] || fail "it did not wait"
failing_with run-queued "$MLENV" --json exec second true
failing_with run-queued "$MLENV" --json watch second
failing_with usage "$MLENV" --json run --after first --from first small -- true
ends_with 0 "$MLENV" run -d --name no-such --after first small -- no-such-program
echo "print('as it lies there')" >later.py
ends_with 0 "$MLENV" run -d --name now --after first small -- python later.py
echo "print('as it lies there now')" >later.py
"$MLENV" logs -f second >"$work/followed" 2>&1 &
follower=$!
"$MLENV" logs -f third >"$work/followed-job" 2>&1 &
job_follower=$!
touch "$work/shared/first"
ends_with 0 "$MLENV" wait third
[ -e "$work/shared/second-ran" ] || fail "the third before the second"
ends_with 127 "$MLENV" wait no-such
"$MLENV" logs no-such >"$work/out" 2>"$work/err"
said 'no-such-program'
ends_with 0 "$MLENV" wait now
"$MLENV" logs now >"$work/out"
shown '^as it lies there now$'
[ -e "$work/shared/third-ran-1" ] || fail "the third did not run"
wait "$follower"
wait "$job_follower"
equal "followed" "second speaks" "$(cat "$work/followed")"
grep -q '^1: third speaks$' "$work/followed-job" || fail "the job is not followed: $(cat "$work/followed-job")"
equal "recorded" "$(cat "$work/first.id")" "$("$MLENV" --json runs show "$second" | jq -r '.start.after|join(",")')"
ends_with 0 "$MLENV" runs show third
shown "^after +run $second$"

note "in the foreground it says for whom it waits, by a job.yaml as well"
begin gate 0
cat >job.yaml <<YAML
image: small
command: [sh, -c, 'echo "up \$RANK"']
nodes: 2
after: [gate]
YAML
nothing_said
"$MLENV" run job.yaml </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 60 grep -q "^mlenv: waits for the end of run \`$(cat "$work/gate.id")\`$" "$work/err"
ends_with 0 "$MLENV" run --dry-run job.yaml
shown "^after run $(cat "$work/gate.id"), once it has ended well$"
"$MLENV" --json run --dry-run job.yaml >"$work/plan.json"
equal "planned" "$(cat "$work/gate.id")" "$(jq -r '.after|join(",")' "$work/plan.json")"
"$MLENV" run --after gate --after first small -- echo alone </dev/null >"$work/alone" 2>"$work/alone.err" &
alone=$!
wait_until 60 grep -q '^mlenv: waits for' "$work/alone.err"
touch "$work/shared/gate"
wait "$running" || fail "the job: $(cat "$work/err")"
wait "$alone" || fail "the run: $(cat "$work/alone.err")"
equal "alone" alone "$(cat "$work/alone")"

note "what fails ends what waits for it, and so on; afterwards it is told at once"
begin bad 3
ends_with 0 "$MLENV" run -d --name next --after bad small -- touch /never
ends_with 0 "$MLENV" run -d --name after-next --nodes 2 --after next small -- touch /never
touch "$work/shared/bad"
ends_with 125 "$MLENV" wait after-next
ends_with 125 "$MLENV" wait next
"$MLENV" --json runs show next >"$work/show.json"
equal "record" "refused after-failed" "$(jq -r '"\(.state) \(.end.failure.code)"' "$work/show.json")"
grep -q 'ended with status 3' "$work/show.json" || fail "why is not recorded: $(cat "$work/show.json")"
count=$("$MLENV" --json runs | jq '.runs|length')
failing_with after-failed "$MLENV" --json run --after bad small -- true
said 'ended with status 3'
failing_with after-failed "$MLENV" --json run --nodes 2 --after next small -- true
ends_with 125 "$MLENV" run -d --nodes 2 --after bad small -- true
failing_with no-run "$MLENV" --json run --after nobody small -- true
ends_with 125 "$MLENV" run --after nobody small -- true
equal "no record of what was not started" "$count" "$("$MLENV" --json runs | jq '.runs|length')"

note "a run that is stopped, or whose keeper is killed, never ends well"
begin long 0
ends_with 0 "$MLENV" run -d --name waits --after long small -- true
ends_with 0 "$MLENV" stop long
ends_with 125 "$MLENV" wait waits
failing_with after-failed "$MLENV" --json run --after long small -- true
said 'was ended by `mlenv stop`'
begin doomed 0
ends_with 0 "$MLENV" run -d --name bereft --after doomed small -- true
# Its supervisor, and the copy of that which made its namespaces.
keepers=()
for pid in $(pgrep -f -- "^[^ ]*/mlenv __supervise$"); do
  case "$(readlink "/proc/$pid"/fd/* 2>/dev/null || true)" in *"/runs/$(cat "$work/doomed.id")/"*) keepers+=("$pid") ;; esac
done
[ "${#keepers[@]}" -gt 0 ] || fail "who keeps the run is not found"
kill -9 "${keepers[@]}"
ends_with 125 "$MLENV" wait bereft
"$MLENV" --json runs show bereft >"$work/show.json"
grep -q 'was lost' "$work/show.json" || fail "why is not recorded: $(jq -c .end "$work/show.json")"

note "what waits can be stopped, and a signal ends the wait"
begin other 0
ends_with 0 "$MLENV" run -d --name one --after other small -- true
ends_with 0 "$MLENV" run -d --name two --nodes 2 --after other small -- true
ends_with 0 "$MLENV" stop one two
ends_with 143 "$MLENV" wait one
ends_with 143 "$MLENV" wait two
equal "ended by" "stop stop" "$("$MLENV" --json runs show one | jq -r .end.ended_by) $("$MLENV" --json runs show two | jq -r .end.ended_by)"
for form in "" "--nodes 2"; do
  nothing_said
  # shellcheck disable=SC2086 # two words
  "$MLENV" run $form --after other small -- true </dev/null >"$work/out" 2>"$work/err" &
  running=$!
  wait_until 60 grep -q '^mlenv: waits for' "$work/err"
  kill -HUP "$running"
  status=0
  wait "$running" || status=$?
  equal "after SIGHUP" 129 "$status"
done
touch "$work/shared/other"
ends_with 0 "$MLENV" wait other

note "a script waits for nobody, and says so"
ends_with 0 "$MLENV" export slurm job.yaml
shown '^# It is to start once gate has ended well'
ends_with 0 "$MLENV" export mpi --after a --after b small -- true
shown '^# It is to start once a, b have ended well'

nodes_up 2
with_slurm
slurm() { on_head "$MLENV" run --engine slurm "$@"; }
slurm_id() { head -n 1 "$MLENV_STORE/jobs/$1/slurm"; }
reason_of() { on head squeue -h -j "$1" -o %r; }
has_reason() { [ "$(reason_of "$1")" = "$2" ]; }

note "slurm: its own dependency, of a job that it has"
rm -f "$work/shared"/*
ends_with 0 slurm -d --nodes 1 --name prepare -v "$work/shared:/shared" small -- \
  sh -c 'until [ -e /shared/go ]; do sleep 0.1; done; touch /shared/prepared'
prepare=$(cat "$work/out")
ends_with 0 slurm -d --nodes 1 --name train --after "$prepare" -v "$work/shared:/shared" small -- \
  sh -c '[ -e /shared/prepared ] && touch /shared/trained'
train=$(cat "$work/out")
grep -qx "#SBATCH --dependency=afterok:$(slurm_id "$prepare")" "$MLENV_STORE/jobs/$train/job.sh" || fail "no dependency: $(cat "$MLENV_STORE/jobs/$train/job.sh")"
grep -qx "#SBATCH --kill-on-invalid-dep=yes" "$MLENV_STORE/jobs/$train/job.sh" || fail "it would wait forever"
failing_with usage on_head "$MLENV" --json run --engine slurm --dry-run --nodes 1 --after "$prepare" --slurm-option=--dependency=singleton small -- true
wait_until 60 has_reason "$(slurm_id "$train")" Dependency
ends_with 0 on_head "$MLENV" run -d --name local --after "$train" -v "$work/shared:/shared" small -- touch /shared/local-ran
touch "$work/shared/go"
ends_with 0 on_head "$MLENV" wait "$train"
[ -e "$work/shared/trained" ] || fail "it was not after the other"
ends_with 0 on_head "$MLENV" --json runs show "$(cat "$MLENV_STORE/jobs/$train/record")"
equal "recorded" "$prepare" "$(jq -r '.start.after|join(",")' "$work/out")"
ends_with 0 on_head "$MLENV" wait local

note "slurm: one that fails cancels it, and that is told"
rm -f "$work/shared"/*
ends_with 0 slurm -d --nodes 1 --name prepare -v "$work/shared:/shared" small -- \
  sh -c 'until [ -e /shared/go ]; do sleep 0.1; done; exit 4'
prepare=$(cat "$work/out")
nothing_said
slurm --nodes 1 --after "$prepare" small -- true </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 60 grep -q Dependency "$work/err"
touch "$work/shared/go"
status=0
wait "$running" || status=$?
equal "status" 125 "$status"
said 'ended with status 4'
failing_with after-failed on_head "$MLENV" --json run --engine slurm --nodes 1 --after "$prepare" small -- true

note "slurm: after a run that it does not know: held, released, or cancelled"
rm -f "$work/shared"/*
releasers() { on head pgrep -f -- '[_]_release'; }
no_releaser() { ! releasers >/dev/null; }
for status in 0 5; do
  ends_with 0 on_head "$MLENV" run -d --name outside -v "$work/shared:/shared" -e STATUS="$status" small -- \
    sh -c 'until [ -e /shared/out ]; do sleep 0.1; done; exit $STATUS'
  ends_with 0 slurm -d --nodes 1 --name inside --after outside -v "$work/shared:/shared" small -- touch /shared/inside
  inside=$(cat "$work/out")
  equal "held" JobHeldUser "$(reason_of "$(slurm_id "$inside")")"
  ends_with 0 on_head "$MLENV" ps
  shown "$inside +inside .* queued "
  touch "$work/shared/out"
  if [ "$status" = 0 ]; then
    ends_with 0 on_head "$MLENV" wait "$inside"
    [ -e "$work/shared/inside" ] || fail "it did not run"
  else
    failing_with run-lost on_head "$MLENV" --json wait "$inside"
    grep -q 'ended with status 5' "$MLENV_STORE/jobs/$inside/out" || fail "why is not told"
    [ ! -e "$work/shared/inside" ] || fail "it ran"
  fi
  wait_until 60 no_releaser
  rm -f "$work/shared"/*
done
ends_with 0 on_head "$MLENV" run -d --name outside -v "$work/shared:/shared" small -- \
  sh -c 'until [ -e /shared/out ]; do sleep 0.1; done'
nothing_said
slurm --nodes 1 --after outside small -- echo inside </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 60 grep -q '^mlenv: waits for' "$work/err"
equal "not yet submitted" "" "$(on head squeue -h)"
touch "$work/shared/out"
wait "$running" || fail "in the foreground: $(cat "$work/err")"
shown '^inside$'
