#!/usr/bin/env bash
# `--deterministic` of jobs: each rank has the variables and the layer over Python's start that a run
# on one machine has, on nodes of this machine, by ssh, and in a script of `mlenv export`; the same
# twice, and another without. What a job cannot have of it is refused. With MLENV_TEST_LONG=1 all of it by each engine.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc ip jq python3 git
need_node_agent

small_tree
nodes_up 2
nodes_have_small
with_ssh
mkdir "$work/project"
cd "$work/project"
# What variables fix (the hash of a text), and what the layer does (random, which nobody seeds here).
cat >rank.py <<'PYTHON'
import os, random, sys
names = ("PYTHONHASHSEED NCCL_ALGO NCCL_PROTO CUBLAS_WORKSPACE_CONFIG MLENV_SEED OMP_NUM_THREADS "
         "OPENBLAS_NUM_THREADS MKL_NUM_THREADS NPROC XLA_FLAGS PYTHONPATH").split()
print(*(f"{name}={os.environ.get(name, '-')}" for name in names))
print("drawn", hash("a text"), random.random(), "numpy" in sys.modules)
PYTHON
cat >job.yaml <<'YAML'
image: small
command: [python, rank.py]
nodes: 2
deterministic: true
seed: 7
YAML

job() { # job ENGINE OPTION… IMAGE [-- COMMAND…]
  local engine=$1
  shift
  case $engine in
    local) as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" run "$@" ;;
    ssh) on_head "$MLENV" run --engine ssh --hosts node1,node2 "$@" ;;
  esac
}
record() { # record RUN EXPRESSION
  as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" --json runs show "$1" >"$work/record"
  jq -r "$2" "$work/record"
}
# ranks: what each of them said, in their order.
ranks() { LC_ALL=C sort "$work/out"; }
same_in_all() { sed 's/^[0-9]*: //' "$work/out" | LC_ALL=C sort -u; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
variables='PYTHONHASHSEED=0 NCCL_ALGO=Ring NCCL_PROTO=Simple CUBLAS_WORKSPACE_CONFIG=:4096:8 MLENV_SEED=7 OMP_NUM_THREADS=4'
variables+=' OPENBLAS_NUM_THREADS=4 MKL_NUM_THREADS=4 NPROC=4 XLA_FLAGS=--xla_gpu_deterministic_ops=true PYTHONPATH=/run/mlenv-python'

note "what a run on one machine has"
"$MLENV" run --deterministic --seed 7 small -- python rank.py >"$work/single"
drawn=$(sed -n 's/^drawn //p' "$work/single")
equal "its variables" "$variables" "$(head -n 1 "$work/single")"
equal "the first number of random with that seed" "$(python3 -c 'import random; print(random.Random(7).random())')" "$(cut -d' ' -f2 <<<"$drawn")"

for engine in local ssh; do
  note "$engine: each rank has the same, twice"
  times=(first)
  [ "$MLENV_TEST_LONG" != 1 ] && [ "$engine" = ssh ] || times+=(second)
  for time in "${times[@]}"; do
    ends_with 0 job "$engine" --nodes 2 --ranks-per-node 2 --deterministic --seed 7 small -- python rank.py
    ranks >"$work/$engine.$time"
    equal "$engine, $time: lines" 8 "$(wc -l <"$work/out")"
    equal "$engine, $time: all ranks" "$(LC_ALL=C sort "$work/single")" "$(same_in_all)"
  done
  [ ${#times[@]} = 1 ] || cmp "$work/$engine.first" "$work/$engine.second" || fail "$engine: another job"
  [ "$MLENV_TEST_LONG" = 1 ] || [ "$engine" = local ] || continue

  note "$engine: without it each draws its own, and another seed draws others"
  ends_with 0 job "$engine" --nodes 2 --ranks-per-node 2 small -- python rank.py
  equal "$engine: numbers that are drawn" 4 "$(grep -c . <<<"$(grep -o 'drawn .*' "$work/out" | sort -u)")"
  shown '^3: PYTHONHASHSEED=- NCCL_ALGO=- '
  ends_with 0 job "$engine" --nodes 2 --deterministic small -- python rank.py
  equal "$engine: seed 0" "drawn $(python3 -c 'import random; print(random.Random(0).random())')" \
    "$(same_in_all | sed -nE 's/^(drawn) [-0-9]+ ([^ ]+) .*/\1 \2/p')"
  shown ' MLENV_SEED=0 '
done

note "the person's own words come over it, and theirs stays beside it"
mkdir lib
echo 'print("theirs")' >lib/sitecustomize.py
ends_with 0 job local --nodes 2 --deterministic --seed 7 -e OMP_NUM_THREADS=2 -e NCCL_ALGO=Tree -e PYTHONPATH=/workspace/lib -e XLA_FLAGS=--x \
  small -- python rank.py
shown '^1: .* NCCL_ALGO=Tree .* OMP_NUM_THREADS=2 .* XLA_FLAGS=--x --xla_gpu_deterministic_ops=true PYTHONPATH=/run/mlenv-python:/workspace/lib$'
equal "in all ranks" 2 "$(grep -cE '^[01]: theirs$' "$work/out")"
equal "what is drawn" "$drawn" "$(same_in_all | sed -n 's/^drawn //p')"

note "the records say it: the job's and each rank's"
switches='.start.deterministic | "\(.seed) \(.variables | map(select(.name == "NCCL_ALGO").value) | join(",")) \(.python_layer | startswith("sha256:"))"'
equal "the job" "7 Ring true" "$(record last "$switches")"
python3 "$root/tests/schema/check.py" <"$work/record" >/dev/null
id=$(jq -r .start.id "$work/record")
"$MLENV" runs show "$id" >"$work/out"
shown '^seed +7, of .--deterministic.$'
rank=$(jq -r '.ranks.attempts[0].ranks[1].run' "$work/record")
equal "a rank" "7 Ring true" "$(record "$rank" "$switches")"

note "in a job.yaml; options come over it"
ends_with 0 job local job.yaml
equal "by job.yaml" "$(LC_ALL=C sort "$work/single")" "$(same_in_all)"
ends_with 0 job local --seed 8 job.yaml
shown '^1: .* MLENV_SEED=8 '
sed -i '/^deterministic/d' job.yaml
failing_with bad-job "$MLENV" --json run job.yaml
grep -qF 'has a `seed`, and is not deterministic' "$work/err" || fail "not told: $(cat "$work/err")"
if [ "$MLENV_TEST_LONG" = 1 ]; then
  ends_with 0 job local --deterministic job.yaml
  shown '^1: .* MLENV_SEED=7 '
fi
ends_with 0 job local --dry-run --nodes 2 --deterministic --seed 7 small -- true
shown '^deterministic, seed 7: '
"$MLENV" --json run --dry-run --nodes 2 --deterministic --seed 7 small -- true >"$work/plan"
python3 "$root/tests/schema/check.py" <"$work/plan" >/dev/null
equal "the plan" 7 "$(jq .deterministic.seed "$work/plan")"

note "variations of a matrix; what was begun so goes on so"
words=(--nodes 2 --matrix 'n=1,2' --name drawn small -- python rank.py)
ends_with 0 "$MLENV" run --deterministic --seed 7 "${words[@]}"
"$MLENV" logs drawn-2 >"$work/out"
equal "a variation" "$(LC_ALL=C sort "$work/single")" "$(same_in_all)"
failing_with matrix-differs "$MLENV" --json run --resume "${words[@]}"
grep -q 'outputs and seeds' "$work/err" || fail "not told in what: $(cat "$work/err")"

note "a script of \`mlenv export\`"
"$MLENV" export ssh --hosts node1,node2 --nodes 2 --deterministic --seed 7 small -o "$work/job.sh" -- python rank.py >/dev/null
ends_with 0 on head bash "$work/job.sh"
equal "by the script" "$(LC_ALL=C sort "$work/single")" "$(same_in_all)"
for with in pyxis apptainer; do
  failing_with bad-job "$MLENV" --json export slurm --with "$with" --deterministic small -- true
done

note "what a job has not"
failing_with usage "$MLENV" --json run --nodes 2 --deterministic --outputs out small -- true
grep -qF -e '`--outputs` does not go with `--nodes`' "$work/err" || fail "not told: $(cat "$work/err")"
failing_with usage "$MLENV" --json run --nodes 2 --seed 7 small -- true
failing_with cannot-reproduce "$MLENV" --json reproduce "$id"
grep -q 'a job on nodes' "$work/err" || fail "not told why: $(cat "$work/err")"
failing_with cannot-reproduce "$MLENV" --json reproduce "$rank"
grep -q "rank 1 of the job" "$work/err" || fail "not told why: $(cat "$work/err")"
