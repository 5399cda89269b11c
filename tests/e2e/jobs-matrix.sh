#!/usr/bin/env bash
# `mlenv run --matrix` with jobs, on a real Slurm: one array, of which each task is the job of a
# variation on nodes of its own; what fails, is cancelled or left alone, and goes on. With MLENV_TEST_LONG=1 a node's
# power is cut, as in nodes-slurm.sh.
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
import json, os, sys
lr, seed, rank = os.environ["lr"], int(os.environ["seed"]), int(os.environ["RANK"])
print("lr", lr, "seed", seed, "of", os.environ["WORLD_SIZE"], *sys.argv[1:], flush=True)
if rank == 0:
    with open(os.environ["MLENV_OUTPUT"] + "/metrics.json", "w") as file:
        json.dump({"loss": float(lr) * seed}, file)
open(f"{os.environ['MLENV_OUTPUT']}/model-{rank}", "w").write(lr)
sys.exit(3 if (lr, seed) == ("0.1", 2) and not os.path.exists("/shared/mended") else 0)
PYTHON
cat >wait.sh <<'SHELL'
trap 'echo saved; exit 0' TERM
trap 'touch "/shared/usr-$n-$RANK"' USR1
touch "/shared/up-$n-$RANK"
until [ -e /shared/quick ]; do sleep 0.1; done
SHELL

matrix() { on_head "$MLENV" run --engine slurm -v "$work/shared:/shared" "$@"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err" "$work/out")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
record() { on_head "$MLENV" --json runs show "$1" | jq -r "$2"; } # record RUN EXPRESSION
nothing_left() {
  [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[r]unc|[t]rain.py|[w]ait.sh" || true')" ] &&
    [ -z "$(on "$1" sh -c "grep \" $MLENV_STORE\" /proc/self/mounts || true")" ]
}
nothing_left_anywhere() { nothing_left node1 && nothing_left node2 && nothing_left node3; }
all_idle() { slurm_idle 3; }
submissions() { find "$MLENV_STORE/jobs" -mindepth 2 -maxdepth 2 -name job.sh | wc -l; }
newest_script() { find "$MLENV_STORE/jobs" -mindepth 2 -maxdepth 2 -name job.sh | sort | tail -n 1; }

note "the script of all of them, and nothing else"
command=(--nodes 2 --parallel 2 --matrix 'lr=0.1,0.01' --matrix seed=1..2 --name sweep
  small -- python train.py '--lr={lr}')
ends_with 0 matrix --dry-run "${command[@]}"
shown '^#SBATCH --array=1-4%2$'
shown '^#SBATCH --nodes=2$'
shown '^#SBATCH --output=.*\.%a/out$'
sed -e '/^# What the controller is given/,$d' -e 's/[0-9]*-[0-9]*-[0-9a-f]*\(\.%a\|$\)/ID\1/' "$work/out" >"$work/dry"
[ -z "$(on head squeue -h)" ] || fail "a dry run submitted something"
[ ! -e matrix ] || fail "a dry run made results"

note "values, folders, records, table"
ends_with 1 matrix "${command[@]}"
shown '^#  lr    seed  STATE       TOOK +RUN +loss$'
shown '^1  0.1   1     done +[0-9.]+ s +[0-9a-f-]+  0.1$'
shown '^2  0.1   2     failed \(3\)'
shown '^4  0.01  2     done .* 0.02$'
equal "rows" 5 "$(wc -l <"$work/out")"
said 'matrix .*: 4 variations, each on 2 nodes, 2 at a time; array [0-9]+ of Slurm; results in '
said 'lr=0.1 seed=2, .*failed \(3\): `mlenv logs [0-9a-f-]+`: lr 0.1 seed 2 of 2'
said 'with `--resume` goes on with it'
equal "one array" 1 "$(submissions)"
equal "the script" "$(cat "$work/dry")" "$(sed 's/[0-9]*-[0-9]*-[0-9a-f]*\(\.%a\|$\)/ID\1/' "$(newest_script)")"
equal "its own files" 0.010.01 "$(cat matrix/sweep/lr=0.01,seed=2/model-0 matrix/sweep/lr=0.01,seed=2/model-1)"
equal "what its ranks wrote" "0: lr 0.1 seed 1 of 2 --lr=0.1|1: lr 0.1 seed 1 of 2 --lr=0.1" \
  "$(on_head "$MLENV" logs sweep-1 | sort | paste -sd '|')"
id=$(jq -r .id matrix/sweep/matrix.json)
on_head "$MLENV" runs --matrix "$id" >"$work/out"
equal "listed" 5 "$(wc -l <"$work/out")"
shown 'sweep-3 .*lr=0.01 seed=1$'
equal "recorded" "$id 3 4 lr=0.01,seed=1 slurm 2 python train.py --lr=0.01" \
  "$(record sweep-3 '"\(.start.variation.matrix) \(.start.variation.number) \(.start.variation.of) \(.start.variation.folder | split("/") | last) \(.start.launch.engine) \(.start.launch.most_nodes) \(.start.argv | join(" "))"')"
on_head "$MLENV" --json runs show sweep-3 >"$work/shown"
cat "$work/shown" matrix/sweep/matrix.json | "$root/tests/schema/check.py" >/dev/null
wait_until 30 nothing_left_anywhere

note "only what is not done is submitted again"
touch "$work/shared/mended"
ends_with 0 on_head "$MLENV" --json run --engine slurm -v "$work/shared:/shared" --resume "${command[@]}"
equal "answer" "done $id 4" "$(jq -r '"\(.state) \(.id) \([.variations[] | select(.state == "done")] | length)"' "$work/out")"
"$root/tests/schema/check.py" <"$work/out" >/dev/null
grep -q '^#SBATCH --array=2%2$' "$(newest_script)" || fail "not the one: $(cat "$(newest_script)")"
equal "the same code" 1 "$(for n in 1 2 3; do record "sweep-$n" .start.launch.code_digest; done | sort -u | wc -l)"
ends_with 0 matrix --resume "${command[@]}"
said 'all is done'
equal "arrays" 2 "$(submissions)"

note "mistakes"
failing_with matrix-differs on_head "$MLENV" --json run --engine slurm --resume --nodes 3 "${command[@]:2}"
failing_with matrix-exists on_head "$MLENV" --json run --engine slurm "${command[@]}"
failing_with no-slurm on_head "$MLENV" --json run --engine slurm --matrix n=1..1500 --name many small -- true
[ ! -e matrix/many ] || fail "a matrix that Slurm does not take was left: $(ls -A matrix/many)"
equal "its folders" 2 "$(submissions)"
mkdir -p matrix/noted/.slurm # which array it is cannot be noted there
ends_with 125 matrix --matrix n=1..2 --name noted small -- sh wait.sh
said 'array [0-9]+ of Slurm was cancelled'
queue_is_empty() { [ -z "$(on head squeue -h)" ]; }
wait_until 30 queue_is_empty
equal "it is known that there was one" running "$(jq -r .state matrix/noted/matrix.json)"
rm -rf matrix/noted "$work/shared"/up-*

note "what it was to follow fails: none begins, and that is told"
ends_with 0 on_head "$MLENV" run --engine slurm -d --nodes 1 -v "$work/shared:/shared" small -- \
  sh -c 'until [ -e /shared/fail ]; do sleep 0.1; done; exit 4'
before=$(cat "$work/out")
nothing_said
matrix --after "$before" --matrix n=1,2 --name after small -- true </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 30 grep -q 'array [0-9]* of Slurm; results' "$work/err"
touch "$work/shared/fail"
status=0
wait "$running" || status=$?
equal "status" 125 "$status"
said 'after which this was to start, ended with status 4'
[ ! -e matrix/after ] || fail "a matrix of which nothing began was left"

note "--fail-fast: what runs is stopped, what was done stays"
cat >fast.sh <<'SHELL'
case $n in
  1) until [ -e /shared/two ] && [ -e /shared/up-3-0 ]; do sleep 0.1; done; sleep 2; exit 5 ;;
  2) touch /shared/two ;;
  3) exec sh wait.sh ;;
esac
SHELL
ends_with 1 matrix --matrix n=1..3 --fail-fast --slurm-option=--exclusive --name fast small -- sh fast.sh
equal "states" "failed done stopped" "$(jq -r '[.variations[].state] | join(" ")' matrix/fast/matrix.json)"

note "left alone: it goes on, can be looked at, and followed again"
ends_with 0 matrix -d --matrix n=1..3 --parallel 2 --name left small -- sh wait.sh
equal "answered" "$(jq -r .id matrix/left/matrix.json)" "$(cat "$work/out")"
wait_until 60 test -e "$work/shared/up-2-0"
on_head "$MLENV" --json ps >"$work/out"
equal "what waits" "queued left-3 3" \
  "$(jq -r '.runs[] | select(.state == "queued") | "\(.state) \(.start.name) \(.start.variation.values[0].value)"' "$work/out")"
"$root/tests/schema/check.py" <"$work/out" >/dev/null
# Whoever asks squeue by default for what waits alone still gets to know of what runs.
nothing_said
on_head env SQUEUE_STATES=PENDING "$MLENV" run --engine slurm -v "$work/shared:/shared" \
  --resume --matrix n=1..3 --parallel 2 --name left small -- sh wait.sh </dev/null >"$work/out" 2>"$work/err" &
running=$!
# followers: mlenv itself, as `head` numbers processes.
followers() { on head pgrep -f -- '^[^ ]*/mlenv run --engine slurm'; }
follows() { grep -q '3 of 3 variations are in Slurm' "$work/err"; }
wait_until 30 follows
wait_until 30 followers >/dev/null
both_run() { [ "$(jq -r '[.variations[].run | select(.)] | length' matrix/left/matrix.json)" = 2 ]; }
wait_until 30 both_run
on head kill -USR1 "$(followers)"
wait_until 30 test -e "$work/shared/usr-1-0"
wait_until 30 test -e "$work/shared/usr-2-0"
on head kill -HUP "$(followers)"
status=0
wait "$running" || status=$?
equal "after SIGHUP" 129 "$status"
said 'goes on without this terminal: the same command with `--resume` follows it, `scancel [0-9]+` ends it'
[ -n "$(on head squeue -h)" ] || fail "the array did not go on"

note "Ctrl-C cancels the array: what ran was stopped, what waited waits"
nothing_said
matrix --resume --matrix n=1..3 --parallel 2 --name left small -- sh wait.sh </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 30 follows
wait_until 30 followers >/dev/null
wait_until 30 both_run
on head kill -INT "$(followers)"
status=0
wait "$running" || status=$?
equal "after Ctrl-C" 130 "$status"
said 'interrupted: array [0-9]+ of Slurm is cancelled'
equal "states" "stopped stopped waiting" "$(jq -r '[.variations[].state] | join(" ")' matrix/left/matrix.json)"
equal "what they did" "saved" "$(on_head "$MLENV" logs left-1)"
[ -z "$(on head squeue -h)" ] || fail "something is in the queue: $(on head squeue)"
wait_until 30 nothing_left_anywhere
touch "$work/shared/quick"
ends_with 0 matrix --resume --matrix n=1..3 --parallel 3 --name left small -- sh wait.sh
said '3 of 3 variations are left, each on 1 node; array'

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "a node's power is cut: the job on it alone goes back into the queue"
rm -f "$work/shared"/*
nothing_said
matrix --matrix n=1..3 --nodes 1 --slurm-option=--exclusive --name cut small -- sh wait.sh </dev/null >"$work/out" 2>"$work/err" &
running=$!
for n in 1 2 3; do wait_until 60 test -e "$work/shared/up-$n-0"; done
array=$(sed -n 's/.*; array \([0-9]*\) of Slurm.*/\1/p' "$work/err")
lost=$(on head squeue -h -r -j "$array" -o '%K %N' | sed -n 's/ node2$//p')
power_cut node2
on head scontrol update nodename=node2 state=down reason=power
waits_again() { [ "$(on head squeue -h -r -j "$array" -t PENDING -o %K)" = "$lost" ]; }
wait_until 60 waits_again
equal "the others run" 2 "$(on head squeue -h -r -j "$array" -t RUNNING -o %K | wc -l)"
touch "$work/shared/quick"
power_on node2
# Refused where it has come back by itself.
on head scontrol update nodename=node2 state=resume 2>"$work/resume" || true
status=0
wait "$running" || status=$?
equal "status" 0 "$status"
equal "states" "done done done" "$(jq -r '[.variations[].state] | join(" ")' matrix/cut/matrix.json)"
wait_until 30 all_idle
nothing_left_anywhere || fail "something was left"
