#!/usr/bin/env bash
# Every `--json` answer, failure and progress line fits its schema, and every schema is met here.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
lines=$work/lines

note "init, lock, build, add, remove, images, inspect, tag, save, load, vendor, rm, rollback, copy, push, pull, store, facts, check, explain, data, probe, compare, runs, watch, logs, stop, wait, reproduce"
base_tree
small_recipe "$work/small.yaml" idna
start_registry
image=$registry/team/small:v1
{
  printf 'idna\n-e .\n' >"$work/requirements.txt"
  "$MLENV" --json init --from "$work/requirements.txt" --recipe "$work/first.yaml" 2>"$work/err"
  "$MLENV" --json --progress json lock "$work/small.yaml" 2>"$work/err"
  cat "$work/err"
  "$MLENV" --json --progress json build "$work/small.yaml" 2>"$work/err"
  cat "$work/err"
  "$MLENV" --json build "$work/small.yaml" 2>"$work/err" | tee "$work/again"
  "$MLENV" --json build --platform all "$work/small.yaml" 2>"$work/err"
  "$MLENV" --json images
  "$MLENV" --json inspect small
  "$MLENV" --json build "$work/small.yaml" 2>"$work/err" >"$work/again"
  "$MLENV" --json add --recipe "$work/small.yaml" idna
  "$MLENV" --json add --recipe "$work/small.yaml" six 2>"$work/err"
  "$MLENV" --json remove --recipe "$work/small.yaml" six 2>"$work/err"
  "$MLENV" --json images
  "$MLENV" --json inspect small
  "$MLENV" --json inspect small --facts
  "$MLENV" --json push small "$image" 2>"$work/err"
  "$MLENV" --json push small "$image" 2>"$work/err"
  "$MLENV" --json diff small "$work/small.yaml"
  "$MLENV" --json tag small small:v2
  "$MLENV" --json save small:v2 "oci:$work/layout" "docker-archive:$work/small.tar"
  "$MLENV" --json load "$work/layout" 2>"$work/err"
  printf 'name: based\nbase: oci:layout\n' >"$work/based.yaml"
  "$MLENV" -q lock "$work/based.yaml" >"$work/out" 2>&1
  "$MLENV" --json vendor "$work/based.yaml" 2>"$work/err"
  "$MLENV" --json rm small:v2
  (cat "$work/small.yaml" && echo 'env: {MOVED: the name}') >"$work/moved.yaml"
  "$MLENV" -q build "$work/moved.yaml" >"$work/out" 2>&1
  "$MLENV" --json images --history small
  "$MLENV" --json rollback small
  "$MLENV" --json copy small --hosts nobody.invalid 2>"$work/refused" || [ $? = 1 ]
  cat "$work/refused"
  "$MLENV" --json export devcontainer small --output "$work/exported"
  "$MLENV" --json store verify
  "$MLENV" --json gc --dry-run
  "$MLENV" --json store path
  "$MLENV" --json store sync
  "$MLENV" --json facts
  mkdir "$work/index"
  echo '{"nvidia_driver": {"version": "620.80.01", "linux-x86_64": {}}}' >"$work/index/redistrib_13.5.1.json"
  "$MLENV" --json data update --from "$work/index"
  "$MLENV" --json data show
  "$MLENV" --json probe --size 1 || [ $? -eq 3 ]
  "$MLENV" --json compare small --sides builtin --rows start.user --budget 3s
  "$MLENV" --json check small "$work/small.yaml" || [ $? = 3 ]
  "$MLENV" --json explain no-gpu
  "$MLENV" run small true
  "$MLENV" --json runs show last
  "$MLENV" --json runs
  "$MLENV" --json run -d --name named small -- sh -c 'echo x; exec sleep 600'
  "$MLENV" --json ps
  "$MLENV" --json watch named --interval 0.2s --for 0.5s
  "$MLENV" --json stop named
  "$MLENV" --json logs named
  [ "$("$MLENV" --json wait named | tee "$work/ended" >/dev/null; echo "${PIPESTATUS[0]}")" = 143 ]
  cat "$work/ended"
  mkdir "$work/result"
  "$MLENV" run --no-project -v "$work/result:/result" --outputs /result small -- touch /result/file
  "$MLENV" --json reproduce last
  "$MLENV" --json runs rm last
  "$MLENV" --json -q run --nodes 2 --no-project small -- echo x
  "$MLENV" --json logs last
  "$MLENV" --json runs show last
  "$MLENV" --json preflight --nodes 2 || [ $? = 3 ]
  "$MLENV" --json run --nodes 2 --dry-run small -- true
  "$MLENV" --json run --nodes 2 --engine slurm --dry-run small -- true
  "$MLENV" --json -q run --no-project --results "$work/results" --matrix a=1,2 small -- true
} >>"$lines"
[ ! -s "$work/err" ] || fail "without --progress nothing but failures goes to stderr: $(cat "$work/err")"
jq -e '.steps | length > 2 and all(.reused)' "$work/again" >/dev/null || fail "not all reused: $(cat "$work/again")"
MLENV_STORE=$work/other "$MLENV" --json pull "$image" >>"$lines" 2>"$work/err"
equal "pulled" "$("$MLENV" --json inspect small | jq -r .digest)" \
  "$(MLENV_STORE=$work/other "$MLENV" --json inspect "$image" | jq -r .digest)"

note "failures of each kind"
failing() { # failing STATUS ARGUMENT…
  local status=0 expected=$1
  shift
  "$MLENV" --json -q "$@" >"$work/out" 2>"$work/err" || status=$?
  equal "status of $*" "$expected" "$status"
  [ ! -s "$work/out" ] || fail "an answer beside the failure of $*"
  equal "exit_status in $*" "$expected" "$(jq .exit_status "$work/err")"
  cat "$work/err" >>"$lines"
}
failing 1 build "$work/nothing.yaml"
failing 2 build --no-such-option
sed -i 's/idna/idna, six/' "$work/small.yaml"
failing 3 build --locked "$work/small.yaml"
printf 'nmae: x\nbase: debian:bokworm\n' >"$work/bad.yaml"
failing 2 lock "$work/bad.yaml"
failing 125 run no-such-image true
failing 2 buld
failing 2 inspect sha256:zz
failing 1 rm small:latest no-such-name
"$MLENV" --json images | jq -e 'any(.images[]; .name == "small:latest")' >/dev/null || fail "a failed rm took a name away"

python3 "$root/tests/schema/check.py" <"$lines" >"$work/met" || fail "see above"
# Nodes of one machine do not differ: that answer is looked at in jobs-detach.sh.
python3 "$root/tests/schema/check.py" --list </dev/null | grep -vxF mlenv.agreement/1 | diff "$work/met" - ||
  fail "schemas that nothing here met"
note "$(wc -l <"$lines") lines fit $(wc -l <"$work/met") schemas"
