#!/usr/bin/env bash
# `mlenv run --matrix`: variations with their values, folders, devices and records; side by side; what
# stops them, kills them, and goes on with them.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc python3 jq git
need_root

small_tree
mkdir -p "$work/project"
cd "$work/project"
git init -q .
cat >train.py <<'PYTHON'
import json, os, sys
lr, seed = os.environ["lr"], int(os.environ["seed"])
print("lr", lr, "seed", seed, *sys.argv[1:])
with open(os.environ["MLENV_OUTPUT"] + "/metrics.json", "w") as file:
    json.dump({"loss": float(lr) * seed, "worst": float("nan"), "variation": os.environ["MLENV_VARIATION"]}, file)
open(os.environ["MLENV_OUTPUT"] + "/model", "w").write(lr)
sys.exit(3 if (lr, seed) == ("0.1", 2) and not os.path.exists("mended") else 0)
PYTHON
git add train.py
git -c user.name=t -c user.email=t@t commit -qm code

m() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"; }
matrix() { m run "$@" </dev/null; }
status_of() { # status_of COMMAND…: its status; what it says is in $work/out and $work/err
  local status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}
said() { grep -qF -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out")"; }
record() { m --json runs show "$1" | jq -r "$2"; } # record RUN EXPRESSION
running() { # running COUNT: so many runs go on
  m ps --names >"$work/ps" && [ "$(wc -l <"$work/ps")" -eq "$1" ]
}

note "values, folders, records, table"
command=(--matrix 'lr=0.1,0.01' --matrix seed=1..2 --parallel 2 --name sweep --outputs model
  small -- python train.py '--lr={lr}' '{"a": {x}}' '{{seed}}')
equal "status" 1 "$(status_of matrix "${command[@]}")"
shown '^#  lr    seed  STATE       TOOK +RUN +loss +worst  variation$'
shown '^1  0.1   1     done +[0-9.]+ s +[0-9a-f-]+  0.1 +NaN +1$'
shown '^2  0.1   2     failed \(3\)'
shown '^4  0.01  2     done .* 0.02 +NaN +4$'
equal "rows" 5 "$(wc -l <"$work/out")"
said '4 variations, 2 at a time'
said 'with `--resume` goes on with it'
equal "its own file" 0.01 "$(cat matrix/sweep/lr=0.01,seed=2/model)"
equal "what it was told" 'lr 0.1 seed 1 --lr=0.1 {"a": {x}} {seed}' "$(m logs sweep-1)"
id=$(jq -r .id matrix/sweep/matrix.json)
m runs --matrix "$id" >"$work/out"
equal "listed" 5 "$(wc -l <"$work/out")"
shown 'sweep-3 .*lr=0.01 seed=1$'
equal "recorded" "$id 3 4 lr=0.01,seed=1 /output/model $(printf 0.01 | sha256sum | cut -d' ' -f1)" \
  "$(record sweep-3 '"\(.start.variation.matrix) \(.start.variation.number) \(.start.variation.of) \(.start.variation.folder | split("/") | last) \(.start.outputs[0].target) \(.end.outputs[0].digest | ltrimstr("sha256:"))"')"
equal "threads" "OMP_NUM_THREADS" "$(record sweep-3 '.start.env[] | select(.name == "OMP_NUM_THREADS") | .name')"
equal "git sees none of it" "" "$(git status --porcelain)"
m runs show sweep-3 >"$work/out"
shown "^matrix    $id, variation 3 of 4\$"

note "two of them differ by a parameter"
equal "diff" 3 "$(status_of m --json diff sweep-1 sweep-3)"
equal "the first cause" "parameters parameter lr 0.1 0.01" \
  "$(jq -r '.findings[0] | "\(.rule) \(.what) \(.from) \(.to)"' "$work/out")"

note "mistakes"
failing_with bad-matrix matrix --json --matrix lr=0.1,,2 small -- true
failing_with bad-matrix matrix --json --matrix lr=1,2 small -- train '{LR}'
failing_with usage matrix --json --matrix lr=1,2 -e lr=3 small -- true
failing_with usage matrix --json --matrix lr=1,2 -d small -- true
failing_with usage matrix --json --matrix lr=1,2 -p 8888:8888 small -- true
failing_with usage matrix --json --resume small -- true
failing_with matrix-exists matrix --json "${command[@]}"
failing_with matrix-differs matrix --json --resume --matrix lr=0.1 --name sweep small -- python train.py
failing_with no-matrix matrix --json --resume --matrix lr=0.1 --name other small -- python train.py
failing_with no-runtime matrix --json --runtime no-such-runtime --matrix lr=0.1,0.2 --name none small -- true
[ ! -e matrix/none ] || fail "a matrix of which nothing ran was left: $(ls -A matrix/none)"

note "it goes on with what failed"
touch mended
m --json runs --matrix "$id" | jq '.runs | length' >"$work/before"
equal "status" 0 "$(status_of m --json run --resume "${command[@]}")"
said_json() { jq -r "$1" "$work/out"; }
equal "answer" "done $id 4 4" "$(said_json '"\(.state) \(.id) \(.variations | length) \([.variations[] | select(.state == "done")] | length)"')"
m --json runs show sweep-2 >"$work/shown"
cat "$work/out" matrix/sweep/matrix.json "$work/shown" | "$root/tests/schema/check.py" >/dev/null
equal "runs more" 1 "$(($(m --json runs --matrix "$id" | jq '.runs | length') - $(cat "$work/before")))"
equal "code" 0 "$(status_of matrix --resume "${command[@]}")"
said 'all is done'
rm mended

note "they really run side by side: each waits for the other's file"
cat >meet.sh <<'SHELL'
touch "met-$n"
until [ -e met-1 ] && [ -e met-2 ]; do sleep 0.05; done
SHELL
equal "met" 0 "$(status_of matrix --timeout 30s --parallel 2 --matrix n=1,2 small -- sh meet.sh)"
rm met-*

note "a file of variations; columns as asked for"
printf 'lr,seed\n0.5,7\n0.25,"8"\n' >"$work/runs.csv"
equal "status" 0 "$(status_of m --json run --results "$work/results" --matrix "@$work/runs.csv" small -- python train.py)"
equal "loss" "3.5 2" "$(said_json '[.variations[].metrics[] | select(.name == "loss") | .number] | join(" ")')"
equal "alone" "1 null" "$(said_json '"\(.at_once) \(.threads)"')"
[ -e "$work/results/lr=0.25,seed=8/model" ] || fail "no results in their folder"

note "Ctrl-C: what runs is told, the rest is not started"
cat >train2.sh <<'SHELL'
[ ! -e quick ] || exit 0
trap 'echo saved; exit 0' INT TERM
echo begun; sleep 300 & wait
SHELL
long_one() { # long_one: a matrix of four, two at once, which all go on, as $pid
  env --default-signal=INT "${sudo[@]}" env MLENV_STORE="$MLENV_STORE" "$MLENV" run --name slow "${resume[@]}" \
    --matrix n=1..4 --parallel 2 small -- sh train2.sh >"$work/out" 2>"$work/err" </dev/null &
  pid=$!
  wait_until 20 running 2
  wait_until 20 begun
  mlenv_pid=$(pgrep -o -f "^$MLENV run --name slow ") # below sudo, or our child
}
begun() { m logs slow-1 >"$work/log1" && grep -q begun "$work/log1" && m logs slow-2 >"$work/log2" && grep -q begun "$work/log2"; }
resume=()
long_one
as_root kill -INT "$mlenv_pid"
status=0
wait "$pid" || status=$?
equal "status" 130 "$status"
equal "states" "stopped stopped waiting waiting" "$(jq -r '[.variations[].state] | join(" ")' matrix/slow/matrix.json)"
equal "it was heard" "begun saved" "$(m logs slow-1 | xargs)"
running 0 || fail "still running: $(cat "$work/ps")"

note "Ctrl-C while results are read: the record is whole"
cat >train3.sh <<'SHELL'
trap '' INT TERM
truncate -s 4G "$MLENV_OUTPUT/large"
echo written
SHELL
env --default-signal=INT "${sudo[@]}" env MLENV_STORE="$MLENV_STORE" "$MLENV" run --name large --outputs large \
  --matrix n=1 small -- sh train3.sh >"$work/out" 2>"$work/err" </dev/null &
pid=$!
is_read() { m logs large-1 >"$work/log1" && grep -q written "$work/log1" && ! pgrep -f '^sh train3.sh$' >/dev/null; }
wait_until 20 is_read
as_root kill -INT "$(pgrep -o -f "^$MLENV run --name large ")"
wait "$pid" || true
equal "the record" "done 4294967296" "$(record large-1 '"\(.state) \(.end.outputs[0].size_bytes)"')"

note "kill -9: none of them outlives it; two at once; it goes on"
resume=(--resume)
long_one
failing_with matrix-busy matrix --json --resume --name slow --matrix n=1..4 small -- sh train2.sh
lost=$(m --json ps | jq -r '.runs[0].start.id')
as_root kill -KILL "$mlenv_pid"
wait "$pid" 2>"$work/err" || true
wait_until 20 running 0
equal "recorded" lost "$(record "$lost" .state)"
touch quick
equal "resumed" 0 "$(status_of matrix --resume --name slow --matrix n=1..4 --parallel 2 small -- sh train2.sh)"
equal "all done" 4 "$(grep -c ' done ' "$work/out")"
rm quick

note "mlenv stop: what was saved, and ended with 0, is not done"
env "${sudo[@]}" env MLENV_STORE="$MLENV_STORE" "$MLENV" run --name told --matrix n=1 small -- sh train2.sh \
  >"$work/out" 2>"$work/err" </dev/null &
pid=$!
told() { m logs told-1 >"$work/log1" 2>/dev/null && grep -q begun "$work/log1"; }
wait_until 20 told
m stop told-1 >/dev/null
status=0
wait "$pid" || status=$?
equal "status" 1 "$status"
equal "state" "stopped 0" "$(jq -r '.variations[] | "\(.state) \(.exit_code)"' matrix/told/matrix.json)"
touch quick
equal "resumed" 0 "$(status_of matrix --resume --name told --matrix n=1 small -- sh train2.sh)"
rm quick

note "one that cannot be run before any other is started: the rest is asked to end, and stays on record"
mkdir "$work/blocked" "$work/blocked2"
touch "$work/blocked/n=2" "$work/blocked2/n=1"
equal "status" 1 "$(status_of timeout 120 "${sudo[@]}" env MLENV_STORE="$MLENV_STORE" "$MLENV" run --results "$work/blocked" --parallel 2 \
  --matrix n=1..3 small -- sh train2.sh </dev/null)"
equal "states" "stopped refused waiting" "$(jq -r '[.variations[].state] | join(" ")' "$work/blocked/matrix.json")"
said "$work/blocked/n=2"
running 0 || fail "still running: $(cat "$work/ps")"
equal "status of mlenv's own" 125 "$(status_of matrix --results "$work/blocked2" --matrix n=1..3 small -- sh train2.sh)"
[ ! -e "$work/blocked2/matrix.json" ] || fail "a matrix of which nothing ran was left"

note "one that fails ends the others"
equal "status" 1 "$(status_of matrix --fail-fast --parallel 2 --name fast --matrix n=1..3 small -- \
  sh -c 'if [ $n = 1 ]; then until [ -e go ]; do sleep 0.05; done; exit 5; fi; touch go; exec sleep 300')"
equal "states" "failed stopped waiting" "$(jq -r '[.variations[].state] | join(" ")' matrix/fast/matrix.json)"

note "GPUs: each has its own, by a specification that only these runs see"
mkdir "$work/cdi"
for n in 0 1 2 3; do
  jq -nc --arg n "$n" '{name: $n, containerEdits: {env: ["GPU=" + $n]}}'
done | jq -s '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: .}' >"$work/cdi/gpus.json"
mkdir -p "$work/empty"
with_gpus() { # with_gpus ARGUMENT…: `mlenv run --json` where /etc/cdi is that folder
  as_root env MLENV_STORE="$MLENV_STORE" unshare --mount sh -c '
    mkdir -p /etc/cdi && mount --bind "$1" /etc/cdi && shift && exec "$@"' sh "$work/cdi" "$MLENV" --json run --no-check "$@" </dev/null
}
seen() { jq -r '[.variations[].metrics[] | select(.name == "gpu") | .text] | sort | join(" ")' "$work/out"; }
sees='echo "{\"gpu\": \"$GPU\"}" >$MLENV_OUTPUT/metrics.json'
with_gpus --gpus 1 --matrix n=1..4 small -- sh -c "$sees" >"$work/out"
equal "at once" 4 "$(jq .at_once "$work/out")"
equal "each once" "0 1 2 3" "$(seen)"
with_gpus --gpus 2 --matrix n=1..2 small -- sh -c "$sees" >"$work/out"
equal "two each" "2 1 3" "$(jq .at_once "$work/out") $(seen)"
equal "recorded" "nvidia.com/gpu=2 nvidia.com/gpu=3" "$(record "$(jq -r '.variations[1].run' "$work/out")" '.start.devices | join(" ")')"
failing_with usage with_gpus --gpus 2 --parallel 3 --matrix n=1..4 small -- true
failing_with no-device with_gpus --gpus 5 --matrix n=1..4 small -- true

note "an ordinary user"
user_store
mkdir "$work/theirs"
chmod a+rwx "$work/theirs"
(cd "$work/theirs" && as_user MLENV_STORE="$user_home/store" mlenv run --parallel 2 --matrix n=1,2 small -- \
  sh -c 'echo "{\"n\": $n}" >$MLENV_OUTPUT/metrics.json' >"$work/out" 2>"$work/err") || fail "$(cat "$work/err")"
shown '^2  2  done .* 2$'
equal "owner" "$user_id" "$(stat -c %u "$(find "$work/theirs" -name metrics.json | head -n 1)")"

note "nothing is left"
equal "scratch folders" "" "$(as_root find "$MLENV_STORE/tmp" -mindepth 1 -maxdepth 1 -not -newer "$work/cdi" 2>/dev/null)"
! grep -q " $MLENV_STORE" /proc/self/mountinfo || fail "a mount is left"
