#!/usr/bin/env bash
# What `mlenv check --suggest` changes in a recipe is locked with the real index and passes the same rules; nothing is
# overwritten, and where nothing helps it says what would. Nothing is downloaded but metadata.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq
cd "$work"
hosts=$root/tests/verdicts/hosts

recipe() { # recipe NAME LINE…: a recipe with comments and an order of its own
  printf '# ours\nname: %s\nbase: debian:bookworm\n' "$1" >"$1.yaml"
  printf '%s\n' "${@:2}" >>"$1.yaml"
}
# suggested NAME HOST [OPTION…]: exit status 3, an answer in the schema, a recipe that passes; the answer is in `answer`
suggested() {
  local status=0
  "$MLENV" -q --json check "$1.yaml" --host "$hosts/$2.json" --suggest "${@:3}" >answer || status=$?
  equal "status" 3 "$status"
  cat answer >>answers
  [ "$(jq -r .suggestion.recipe answer)" = "$1.suggested.yaml" ] || fail "no recipe: $(jq -c .suggestion answer)"
  "$MLENV" -q check "$1.suggested.yaml" --host "$hosts/$2.json" >out || fail "it does not pass: $(cat out)"
  "$MLENV" lock --locked "$1.suggested.yaml" || fail "its lock is not current"
}
wheel() { sed -n "s/^  { name = \"$2\", version = \"\([^\"]*\)\".*/\1/p" "$1.suggested.lock"; }

note "a driver that is too old: another CUDA release alone"
recipe train 'framework: pytorch   # the newest' '' 'packages:' '  - einops  # for rearrange'
suggested train h100-535
diff <(grep -v '^cuda: "12' train.suggested.yaml) train.yaml || fail "more than one line was changed"
equal "lines" 1 "$(grep -c '^cuda: "12' train.suggested.yaml)"
[ "$(jq -r '.suggestion.verdicts[0].verdict' answer)" != blocks ] || fail "says: $(cat answer)"
[[ $(wheel train torch) == 2.10.* ]] || fail "torch is $(wheel train torch)"

note "nothing is overwritten"
failing_with recipe-exists "$MLENV" --json check train.yaml --host "$hosts/h100-535.json" --suggest
failing_with bad-output "$MLENV" --json check train.yaml --host "$hosts/h100-535.json" --suggest "$work/../other.yaml"
suggested train h100-535 --force

note "Pascal: the nearest version that has code for it"
recipe pascal 'framework: "pytorch==2.15.0"  # pinned'
suggested pascal p100-580
grep -qxE 'framework: "pytorch==2\.[0-9]+\.\*"  # pinned' pascal.suggested.yaml || fail "says: $(cat pascal.suggested.yaml)"
[[ $(wheel pascal torch) == 2.7.* ]] || fail "torch is $(wheel pascal torch)"

note "Blackwell: the nearest newer version"
recipe blackwell 'packages:' '  - torch==2.6.0  # as in the paper'
suggested blackwell b200-590
[[ $(wheel blackwell torch) == 2.8.* ]] || fail "torch is $(wheel blackwell torch)"
grep -qxF '  - torch==2.8.*  # as in the paper' blackwell.suggested.yaml || fail "says: $(cat blackwell.suggested.yaml)"

note "JAX: the plugin of the other major"
recipe plugin 'framework: jax' 'cuda: "13"'
suggested plugin h100-535
[ -n "$(wheel plugin jax-cuda12-plugin)" ] || fail "no plugin for CUDA 12"

note "an old driver: a build that needs NumPy 1, which the recipe then says"
recipe numpy 'framework: pytorch' 'packages: [numpy]'
suggested numpy v100-470
[[ $(wheel numpy torch) == 2.0.* ]] || fail "torch is $(wheel numpy torch)"
[[ $(wheel numpy numpy) == 1.* ]] || fail "numpy is $(wheel numpy numpy)"
grep -qxF 'constraints: [numpy<2]' numpy.suggested.yaml || fail "says: $(cat numpy.suggested.yaml)"

note "where the recipe insists on NumPy 2, no build that needs NumPy 1"
recipe insists 'framework: pytorch' 'packages: [numpy==2.2.6]'
status=0
"$MLENV" -q --json check insists.yaml --host "$hosts/v100-470.json" --suggest >answer || status=$?
equal "status" 3 "$status"
cat answer >>answers
equal "recipe" null "$(jq -r .suggestion.recipe answer)"
jq -e '.suggestion.tried[0].why | contains("does not work with numpy 2.2.6")' answer >/dev/null || fail "says: $(cat answer)"

note "a lock takes a version that works; the line that mends one that cannot"
recipe held 'framework: pytorch==2.0.1' 'packages: [numpy, pandas==2.0.3]'
"$MLENV" lock held.yaml >out 2>err || fail "no lock: $(cat err)"
grep -q '`numpy<2` is held to, 1\.' err || fail "says: $(cat err)"
cp held.lock held.suggested.lock
[[ $(wheel held numpy) == 1.* ]] || fail "numpy is $(wheel held numpy)"
"$MLENV" lock --locked held.yaml || fail "its lock is not current"
recipe both 'framework: pytorch==2.0.1' 'packages: [numpy==2.2.6]'
"$MLENV" lock both.yaml >out 2>err || fail "no lock: $(cat err)"
grep -q 'write `numpy<2` in place of `numpy==2.2.6` (both.yaml:5)' err || fail "says: $(cat err)"

note "a fleet: as many hosts as one recipe can serve, and what the others need"
mkdir fleet
cp "$hosts"/{h100-535,p100-580,b200-590,report-not-loaded}.json fleet
recipe fleet 'framework: pytorch'
status=0
"$MLENV" -q --json check fleet.yaml --fleet fleet --suggest >answer || status=$?
equal "status" 3 "$status"
cat answer >>answers
equal "hosts that are served" "b200-590 h100-535" \
  "$(jq -r '[.suggestion.verdicts[] | select(.verdict != "blocks") | .host] | join(" ")' answer)"
equal "hosts that are not" "p100-580 report-not-loaded" "$(jq -r '[.suggestion.remedies[].host] | join(" ")' answer)"
jq -e '.suggestion.remedies[0].change | contains("torch 2.7")' answer >/dev/null || fail "says: $(cat answer)"

note "where nothing helps"
recipe none 'framework: pytorch==2.15.0'
status=0
"$MLENV" -q --json check none.yaml --host "$hosts/t4-450.json" --suggest >answer || status=$?
equal "status" 3 "$status"
cat answer >>answers
equal "remedy" "t4-450 580" "$(jq -r '.suggestion.remedies[] | "\(.host) \(.driver)"' answer)"
[ ! -e none.suggested.yaml ] || fail "wrote a recipe"

note "where nothing has to be changed"
"$MLENV" -q check none.yaml --host "$hosts/h100-595.json" --suggest | grep -qx 'nothing has to be changed' || fail "says otherwise"
[ ! -e none.suggested.yaml ] || fail "wrote a recipe"

note "what is no recipe"
status=0
"$MLENV" --json check "$root/tests/verdicts/images/torch-2.15.json" --host "$hosts/h100-535.json" --suggest >answer 2>err || status=$?
equal "status" 3 "$status"
cat answer >>answers
equal "remedy" 580 "$(jq -r '.suggestion.remedies[0].driver' answer)"

python3 "$root/tests/schema/check.py" <answers >/dev/null || fail "an answer is not as its schema says"
