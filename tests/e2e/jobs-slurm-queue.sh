#!/usr/bin/env bash
# Jobs in Slurm's queue that are known by nothing else: mlenv was killed (SIGKILL) after sbatch had taken
# them and before it could note their number; or Slurm put them back. ps lists them, logs, wait and
# stop take them by their id, watch says what they wait for.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3
need_node_agent

small_tree
nodes_up 2
with_slurm
mkdir -p "$work/project" "$work/shared" "$work/slow"
cd "$work/project"
# An sbatch that takes its time once it has submitted the job.
cat >"$work/slow/sbatch" <<PROGRAM
#!/bin/sh
$(command -v sbatch) "\$@" || exit
echo \$\$ >$work/slow/pid
exec sleep 600
PROGRAM
chmod 755 "$work/slow/sbatch"
m() { on_head "$MLENV" "$@"; }
# killed OPTION…: submitted by an mlenv that is killed before it knows; $id is the job's.
killed() {
  rm -f "$work/slow/pid"
  on_head env PATH="$work/slow:$PATH" "$MLENV" run --no-project --engine slurm "$@" >"$work/out" 2>&1 </dev/null &
  started+=($!)
  wait_until 30 test -s "$work/slow/pid"
  on head pkill -9 -x mlenv
  on head kill "$(cat "$work/slow/pid")"
  id=$(find "$MLENV_STORE/jobs" -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort | tail -n 1)
}
# states: of all that `ps` lists, by name, or by id where there is none.
states() { m --json ps | jq -r '[.runs[] | "\(.start.name // .start.id) \(.state)"] | sort | join(", ")'; }
is_listed() { [ "$(states)" = "$1" ]; }

note "killed before the note, and the job waits in the queue: found by its script"
killed --nodes 1 --name held --slurm-option=--hold small -- true
[ ! -e "$MLENV_STORE/jobs/$id/slurm" ] || fail "its number was noted"
equal "ps" "held queued" "$(states)"
equal "its id" "$id" "$(m --json ps | jq -r '.runs[0].start.id')"
failing_with run-queued m --json logs "$id"
ends_with 0 m stop "$id"
equal "queue" "" "$(on head squeue -h)"
equal "ps" "" "$(states)"

note "killed before the note, and the job begins: it notes its number by itself"
killed --nodes 1 -v "$work/shared:/shared" small -- \
  sh -c 'touch /shared/up; while [ ! -e /shared/go ]; do sleep 0.2; done; echo through; exit 3'
wait_until 60 test -e "$work/shared/up"
equal "its number" "$(on head squeue -h -o %i)" "$(sed 1q "$MLENV_STORE/jobs/$id/slurm")"
m logs -f "$id" >"$work/followed" 2>&1 </dev/null &
follower=$!
touch "$work/shared/go"
ends_with 3 m wait "$id"
wait "$follower" || fail "$(cat "$work/followed")"
grep -q '^through$' "$work/followed" || fail "not followed: $(cat "$work/followed")"

note "all jobs of an array are found likewise"
killed --nodes 1 --matrix 'n=1,2' --results "$work/results" --slurm-option=--hold small -- echo '{n}'
wait_until 10 is_listed "${id%.*}.1 queued, ${id%.*}.2 queued"
ends_with 0 m stop "${id%.*}.1" "${id%.*}.2"
equal "queue" "" "$(on head squeue -h)"

note "what Slurm put back is queued again, with its record"
rm -f "$work/shared"/*
m run -d --no-project --engine slurm --nodes 1 --name again -v "$work/shared:/shared" small -- \
  sh -c 'touch /shared/up; [ -e /shared/again ] || exec sleep 600' >"$work/out" 2>"$work/err"
wait_until 60 test -e "$work/shared/up"
wait_until 20 is_listed "again running"
record=$(m --json runs show again | jq -r .start.id)
number=$(on head squeue -h -o %i)
on head scontrol requeuehold "$number"
wait_until 30 is_listed "again queued"
equal "its record" "$record" "$(m --json ps | jq -r '.runs[0].start.id')"
m --json ps >"$work/out"
python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
failing_with run-queued m --json watch again
grep -q "job .$record. waits in Slurm's queue to go on" "$work/err" || fail "$(cat "$work/err")"
touch "$work/shared/again"
on head scontrol release "$number"
ends_with 0 m wait again
equal "ps" "" "$(states)"
