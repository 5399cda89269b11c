#!/usr/bin/env bash
# `mlenv run --nodes --engine slurm`: a real Slurm on nodes of their own. The batch script, ranks that
# meet, bytes through srun, scancel, the time limit, a node whose power is cut and the requeued job;
# nothing is left.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3 git
need_node_agent

small_tree
nodes_up 3
with_slurm
mkdir -p "$work/project" "$work/shared"
cd "$work/project"
cat >train.py <<'PYTHON'
import os, signal, sys, time
rank = int(os.environ["RANK"])
path = f"/shared/state-{rank}"
step, weight = [int(word) for word in open(path).read().split()] if os.path.exists(path) else (0, 1)
signal.signal(signal.SIGTERM, lambda *_: (open(f"/shared/term-{rank}", "w").close(), sys.exit(9)))
print("from step", step, "on", os.uname().nodename, flush=True)
while step < int(os.environ["STEPS"]):
    step, weight = step + 1, weight * 31 % 1000003 + rank
    with open(path + ".new", "w") as file:
        file.write(f"{step} {weight}")
    os.replace(path + ".new", path)
    time.sleep(float(os.environ.get("PAUSE", "0.01")))
print("weights", weight, flush=True)
PYTHON

job() { on_head "$MLENV" run --engine slurm "$@"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err" "$work/out")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
nothing_left() {
  [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[r]unc|[t]rain.py" || true')" ] &&
    [ -z "$(on "$1" sh -c "grep \" $MLENV_STORE\" /proc/self/mounts || true")" ]
}
nothing_left_anywhere() { nothing_left node1 && nothing_left node2 && nothing_left node3; }
all_idle() { slurm_idle 3; }

note "names of nodes: Slurm itself expands them as the unit test of expand_hostlist() has it"
for list in 'n[1-3]' 'a[08-11,3],b' 'r[1-2]n[1-2]'; do
  echo "$list" && on head scontrol show hostnames "$list" | xargs
done >"$work/names"
equal "slurm's own" "n1 n2 n3|a08 a09 a10 a11 a3 b|r1n1 r1n2 r2n1 r2n2" \
  "$(sed -n 'n;p' "$work/names" | paste -sd '|')"

note "bytes pass through steps as they are"
head -c 20000000 /dev/urandom >"$work/random"
on head sh -c 'srun --unbuffered --nodes=1 --ntasks=1 --nodelist=node2 cat <"$work/random" >"$work/back"'
cmp "$work/random" "$work/back"

note "the script is readable"
ends_with 0 job --nodes 2 --timeout 2h -e STEPS=7 -e API_TOKEN=hidden -v "$work/shared:/shared:ro" --dry-run small -- echo two words
shown '^#SBATCH --nodes=2$'
shown '^#SBATCH --time=0-02:03:10$'
shown '^exec .*/mlenv-node lead '
shown '^#   command   echo two words$'
shown '^#   env       STEPS=7$'
shown '^#   env       API_TOKEN=\*\*\*$'
shown "^#   mount     $work/shared at /shared, read-only$"
shown '^#   code      sha256:[0-9a-f]{64}$'
if grep -q hidden "$work/out"; then fail "a secret is shown"; fi
[ -z "$(on head squeue -h)" ] || fail "a dry run submitted something"
[ ! -e "$MLENV_STORE/node" ] || fail "a dry run put mlenv-node into the store"
[ ! -e "$MLENV_STORE/jobs" ] || fail "a dry run wrote a job"

note "ranks run, one on each node"
ends_with 0 job --nodes 3 -v "$work/shared:/shared" -e STEPS=20 small -- python train.py
shown '^0: from step 0 on node1'
shown '^2: weights'
weights=$(grep -o '[0-9]: weights.*' "$work/out" | sort)
equal "three" 3 "$(wc -l <<<"$weights")"
ends_with 0 job --nodes 2 --deterministic --seed 7 small -- python -c \
  'import os, random; print(os.environ["NCCL_ALGO"], os.environ["PYTHONHASHSEED"], random.random())'
drawn=$(python3 -c 'import random; print(random.Random(7).random())')
equal "deterministic ones" "0: Ring 0 $drawn|1: Ring 0 $drawn" "$(sort "$work/out" | paste -sd '|')"
wait_until 20 nothing_left_anywhere

note "the status of the command is that of the job"
ends_with 7 job --nodes 2 small -- sh -c '[ "$RANK" = 1 ] || exec sleep 600; echo "seven is enough" >&2; exit 7'
# Of the rank that failed first, as the controller has it on the other engines.
shown '^mlenv: rank 1 on node2 ended with status 7; the others are ended$'
shown '^mlenv: first, rank 1 on node2 ended with status 7$'
shown '^    seven is enough$'

note "as records, whoever drives it"
ends_with 7 on_head "$MLENV" --json run --engine slurm --nodes 2 small -- sh -c '[ "$RANK" = 0 ] && exec sleep 600; echo "hello $RANK"; exit 7'
equal "lines" "1 hello 1" "$(jq -r 'select(.schema == "mlenv.log-line/1" and .stream == "stdout")|"\(.rank) \(.text)"' "$work/out")"
equal "the last record" "mlenv.job-end/1 7 1" "$(tail -n 1 "$work/out" | jq -r '"\(.schema) \(.exit_code) \(.failure.rank)"')"
equal "its needs" 2 "$(cat "$MLENV_STORE"/jobs/*/needs | sort -u | grep -c '^sha256:')"

note "SIGUSR1 is passed on; a lost login leaves the job to itself"
rm -f "$work/shared"/*
follow() { # follow OPTION…: the job in the background; $follower is its mlenv
  nothing_said
  job "$@" </dev/null >"$work/out" 2>"$work/err" &
  running=$!
}
submitted() { grep -qE '^mlenv: job [0-9]+ of Slurm: submitted' "$work/err"; }
# followers: mlenv itself, as `head` numbers processes.
followers() { on head pgrep -f -- '^[^ ]*/mlenv run --engine slurm'; }
follow --nodes 2 -v "$work/shared:/shared" small -- sh -c 'trap "echo heard >/shared/usr-$RANK" USR1; trap "exit 0" TERM; touch /shared/up-$RANK; while :; do sleep 0.1; done'
wait_until 60 test -e "$work/shared/up-0"
wait_until 60 test -e "$work/shared/up-1"
submitted || fail "its id is not said: $(cat "$work/err")"
on head kill -USR1 "$(followers)"
wait_until 30 test -e "$work/shared/usr-0"
wait_until 30 test -e "$work/shared/usr-1"
on head kill -HUP "$(followers)"
status=0
wait "$running" || status=$?
equal "after SIGHUP" 129 "$status"
said 'goes on without this terminal: `mlenv logs -f .*`scancel [0-9]+`'
[ -n "$(on head squeue -h)" ] || fail "the job did not go on"
on head scancel "$(on head squeue -h -o %i)"
wait_until 30 nothing_left_anywhere
wait_until 30 all_idle

note "scancel reaches the ranks as SIGTERM"
rm -f "$work/shared"/*
nothing_said
job --nodes 3 --name cancelled -v "$work/shared:/shared" -e STEPS=100000 small -- python train.py </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 60 test -e "$work/shared/state-2"
on head scancel --name=cancelled
status=0
wait "$running" || status=$?
[ "$status" -ne 0 ] || fail "cancelled, and all is well"
[ -e "$work/shared/term-2" ] || fail "rank 2 did not hear of it"
wait_until 30 nothing_left_anywhere

note "cancelled by Ctrl-C in the queue; why it waits is told whenever that changes"
follow --nodes 1 --name waits --slurm-option=--begin=now+1hour small -- true
wait_until 60 grep -qE '^mlenv: job [0-9]+ of Slurm: PENDING \(BeginTime\)' "$work/err"
on head scontrol hold "jobname=waits"
wait_until 60 grep -qE '^mlenv: job [0-9]+ of Slurm: PENDING \(JobHeld(User|Admin)\)' "$work/err"
on head kill -INT "$(followers)"
status=0
wait "$running" || status=$?
equal "after SIGINT" 130 "$status"

note "a node's power is cut: the job is put back, and goes on from its checkpoint"
rm -f "$work/shared"/*
job --nodes 2 -v "$work/shared:/shared" -e STEPS=20 small -- python train.py </dev/null >"$work/out" 2>"$work/err"
expected=$(grep -o '[0-9]: weights.*' "$work/out" | sort)
rm -f "$work/shared"/*
job_records() { find "$MLENV_STORE/runs" -mindepth 2 -maxdepth 2 -name ranks.json | wc -l; }
records=$(job_records)
nothing_said
job --nodes 2 --timeout 1h -v "$work/shared:/shared" -e STEPS=20 small -- \
  sh -c 'echo "start $MLENV_RESTARTS"; [ "$MLENV_RESTARTS" != 0 ] || export PAUSE=0.5; exec python train.py' </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 60 test -e "$work/shared/state-1"
# What a node says last before its power goes may be lost on the way.
wait_until 60 grep -q '^1: from step 0' "$work/out"
power_cut node2
on head scontrol update nodename=node2 state=down reason=power
status=0
wait "$running" || status=$?
equal "status" 0 "$status"
equal "the same weights" "$expected" "$(grep -o '[0-9]: weights.*' "$work/out" | sort)"
grep -qE 'from step [1-9]' "$work/out" || fail "it began anew: $(cat "$work/out")"
shown '^0: start 0$'
shown '^0: start 1$'
shown '^mlenv: Slurm starts the job again: attempt 2, and [0-9.]+ s of 3600 s$'
equal "one record" $((records + 1)) "$(job_records)"
folder=$(dirname "$(grep -l . "$MLENV_STORE"/jobs/*/record | sort | tail -n 1)")
id=$(sed 1q "$folder/record")
"$MLENV" --json runs show "$id" >"$work/record"
equal "its attempts" "done 0 1" "$(jq -r '"\(.state) \([.ranks.attempts[].number]|join(" "))"' "$work/record")"
"$MLENV" logs "$id" >"$work/log" 2>"$work/log.err"
equal "both attempts" "0: start 0|0: start 1|1: start 0|1: start 1" "$(grep -E '^[01]: start [01]$' "$work/log" | sort | paste -sd '|')"
# Whoever is the first to notice puts it back, mlenv or Slurm.
for text in '(a node was lost: the job goes back|Slurm told the job to end by)' 'Slurm starts the job again: attempt 2'; do
  grep -qE "^mlenv: $text" "$work/log.err" || fail "not in its log: $text: $(cat "$work/log.err")"
done
[ ! -e "$folder/progress" ] || fail "it has ended, and would go on"
wait_until 30 nothing_left node1
power_on node2
# Refused where it has come back by itself.
on head scontrol update nodename=node2 state=resume 2>"$work/err" || true
wait_until 30 all_idle

note "without Slurm's programs, and without its daemon"
on head pkill slurmctld
jobs=$(find "$MLENV_STORE/jobs" -mindepth 1 -maxdepth 1 | wc -l)
failing_with no-slurm on_head "$MLENV" --json run --engine slurm --nodes 1 small -- true
said 'does not take the job'
equal "nothing stays of it" "$jobs" "$(find "$MLENV_STORE/jobs" -mindepth 1 -maxdepth 1 | wc -l)"
on head mount --bind /dev/null "$(command -v sbatch)"
failing_with no-slurm on_head "$MLENV" --json run --engine slurm --nodes 1 small -- true
said 'there is no `sbatch` here'
