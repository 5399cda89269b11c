#!/usr/bin/env bash
# jobs-faults-ranks.sh by engine slurm, and what Slurm itself does to a job: scancel, the end of its
# time, a preemption that puts it back into the queue.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
# shellcheck source=tests/support/census.sh
. "$root/tests/support/census.sh"
# shellcheck source=tests/support/job_faults.sh
. "$root/tests/support/job_faults.sh"

faults_bed
with_slurm
cd "$work/project"
engine slurm
rank_one() { sh -c 'echo "[ \"\$RANK\" = 1 ] || exec sleep 600; $1"' rank_one "$1"; }

note "all is well"
job small -- true </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/out" "$work/err")"
wait_until 30 slurm_idle 3
note_census

note "a rank exits 1, segfaults, wants too much memory, cannot import"
ends 1 'rank 1 on node2 ended with status 1' small -- sh -c "$(rank_one 'echo given up >&2; exit 1')"
said '^    given up$'
ends 139 'rank 1 on node2 was ended by signal 11 \(SIGSEGV\)' small -- sh -c "$(rank_one 'kill -SEGV $$')"
ends 137 'rank 1 on node2 was killed for want of memory' --memory 64m small -- \
  sh -c "$(rank_one 'exec python -c "bytearray(300 << 20)"')"
ends 1 'rank 1 on node2 ended with status 1' small -- sh -c "$(rank_one 'exec python -c "import nothing_of_that_name"')"
said '^    ModuleNotFoundError: No module named .nothing_of_that_name'
note "ranks hang, and the job has a deadline"
ends 124 'the job.s deadline of 3 s is over' --timeout 3s --stop-timeout 1s small -- sh -c 'trap "" TERM; sleep 600'
note "the agent is killed: back into the queue, and done when it runs again"
begun small -- sh -c "[ ! -e /shared/lost ] || exit 0; $waits"
touch "$work/shared/lost"
on node2 pkill -9 -f 'mlenv-node agen[t]'
has_ended '^mlenv: node node2 is lost: ' 0
said '^mlenv: first, node node2 was lost: '
said '^mlenv: a node was lost: the job goes back into Slurm.s queue'

note "scancel"
begun --name cancelled small -- sh -c "$waits"
on head scancel --name=cancelled
has_ended 'Slurm told the job to end by SIGTERM: it was cancelled' 143
said 'CANCELLED'

# Slurm gives its warning up to a minute early: at once, were there only a minute.
note "the end of its time: ranks hear of it before"
begun --slurm-option=--time=2 small -- sh -c "trap 'echo heard; exit 3' TERM; $waits"
has_ended 'Slurm told the job to end by SIGTERM: its time is nearly over' 3
equal "ranks that heard" 3 "$(grep -c 'heard$' "$work/out")"

note "a preemption: put back, and done when it runs again; whoever follows it or waits for it goes on, too"
begun --name preempted small -- sh -c "[ ! -e /shared/again ] || { echo again; exit 0; }; $waits"
touch "$work/shared/again"
on_head "$MLENV" logs -f preempted >"$work/followed" 2>"$work/follow.err" </dev/null &
follower=$!
on_head "$MLENV" wait preempted >"$work/waited" 2>&1 </dev/null &
waiter=$!
number=$(on head squeue -h -o %i)
on head scontrol requeuehold "$number"
wait_until 30 grep -q 'waits to begin again' "$work/follow.err"
on_head "$MLENV" wait preempted >"$work/waited-again" 2>&1 </dev/null & # begun while it is in the queue
second=$!
on_head "$MLENV" --json wait preempted >"$work/waited-json" 2>&1 </dev/null &
third=$!
for pid in "$follower" "$waiter" "$second" "$third"; do kill -0 "$pid" || fail "the end of the first controller is taken for the job's"; done
on head scontrol release "$number"
has_ended '' 0
for pid in "$follower" "$waiter" "$second" "$third"; do wait "$pid" || fail "another status: $(cat "$work"/waited*)"; done
equal "its status" "0 0 0" "$(xargs <"$work/waited") $(xargs <"$work/waited-again") $(jq -r '.runs[0].exit_code' "$work/waited-json")"
equal "ranks that were heard again" 3 "$(grep -c ': again$' "$work/followed")"
note "stopped while it waits again"
begun --name put-back small -- sh -c "$waits"
on_head "$MLENV" logs -f put-back >"$work/followed" 2>"$work/follow.err" </dev/null &
follower=$!
number=$(on head squeue -h -o %i)
on head scontrol requeuehold "$number"
wait_until 30 grep -q 'waits to begin again' "$work/follow.err"
ends_with 0 on_head "$MLENV" stop put-back
equal "queue" "" "$(on head squeue -h)"
wait "$follower" || fail "$(cat "$work/follow.err")"
wait "$running" || true
ends_with 143 on_head "$MLENV" wait put-back
nothing_left "stopped in the queue"
