#!/usr/bin/env bash
# `mlenv inspect --facts`: what is missing is what ldd misses in a container, the device code that
# which cuobjdump lists; the same from trees as from layers that stream by; remembered.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq runc
need_root
cd "$work"

fact() { jq -r ".$1.value | if type == \"array\" then join(\" \") else . end" "$2"; }

# as_ldd NAME FACTS: ldd in a container of the image misses what the facts say.
as_ldd() {
  "$MLENV" run --no-project "$1" -- python3 -c "$(cat "$root/tests/support/ldd_all.py")" >ldd.txt
  note "$1: $(tail -n 1 ldd.txt) asked of ldd, $(($(wc -l <ldd.txt) - 1)) things missing"
  jq -r '(.missing_libraries.value[] | "library \(.library)"),
         (.missing_versions.value[] | "version \(.library) \(.version)")' "$2" | LC_ALL=C sort >known.txt
  sed '$d; /^$/d' ldd.txt | LC_ALL=C sort | diff - known.txt || fail "$1: < ldd, > facts"
}

# as_cuobjdump FACTS FOLDER…: for each library with device code, which lies in one of the folders.
as_cuobjdump() {
  local facts=$1 path folder file code
  shift
  while read -r path code; do
    for folder in "$@"; do
      if [ -e "$folder$path" ]; then file=$folder$path; fi
    done
    if [[ $path == */libcufile.so.* ]] && ! "$cuobjdump" -all --list-elf "$file" >/dev/null 2>&1; then
      continue # `Invalid ELF`, it says
    fi
    # It lists family code (sm_100f) by its architecture alone.
    {
      "$cuobjdump" -all --list-elf "$file" 2>/dev/null | sed -nE 's/.*\.(sm_[0-9]+a?)f?\.cubin$/\1/p'
      "$cuobjdump" -all --list-ptx "$file" 2>/dev/null | sed -nE 's/.*\.sm_([0-9]+[af]?)\.ptx$/compute_\1/p'
    } | LC_ALL=C sort -u >listed
    tr , '\n' <<<"$code" | sed -E 's/^(sm_[0-9]+)f$/\1/' | LC_ALL=C sort -u | diff listed - ||
      fail "$path: < cuobjdump, > facts"
  done < <(jq -r '.device_code.value[] | "\(.path) \(.code | join(","))"' "$facts")
  note "cuobjdump agrees about $(jq '.device_code.value | length' "$facts") libraries"
}
tree_folders() { # of an image that was run: its unpacked layers
  "$MLENV" --json inspect "$1" | jq -r '.layers[].diff_id' | sed "s,^sha256:\(.*\),$MLENV_STORE/trees/\1/fs,"
}

note "cuobjdump and a wheel with device code"
python3 -m pip --version >/dev/null 2>&1 || skip "no pip"
python3 -m pip download -q --no-deps --disable-pip-version-check --only-binary :all: -d "$XDG_CACHE_HOME/facts-wheels" \
  nvidia-cuda-cuobjdump==13.5.37 jax-cuda13-plugin==0.10.2
mkdir cuobjdump plugin
python3 -m zipfile -e "$XDG_CACHE_HOME"/facts-wheels/nvidia_cuda_cuobjdump-13.5.37-*.whl cuobjdump
python3 -m zipfile -e "$XDG_CACHE_HOME"/facts-wheels/jax_cuda13_plugin-0.10.2-*.whl plugin
cuobjdump=$work/cuobjdump/nvidia/cu13/bin/cuobjdump
chmod +x "$cuobjdump"

note "an image with files that lack something"
base_tree
mkdir -p project/lib
cp "$root/tests/fuzz/corpus/elf/good-top.so" "$root/tests/fuzz/corpus/elf/good-32.so" project/lib/
cp -r plugin/jax_cuda13_plugin project/plugin
cat >project/lacking.yaml <<RECIPE
name: lacking
base: debian:bookworm
python: "3.11"
files: {lib: /opt/lib, plugin: /opt/plugin}
RECIPE
"$MLENV" build project/lacking.yaml >out 2>&1 || fail "$(cat out)"
"$MLENV" inspect lacking --facts --json >streamed.json
equal "missing for a file that says where to look" /opt/lib/good-top.so \
  "$(jq -r '.missing_libraries.value[] | select(.library == "libdep.so.1").needed_by' streamed.json)"
equal "drivers that a libcuda is for" 535 "$(jq -r '.forward_compatibility.value[0].drivers[0]' streamed.json)"
equal "its code" "sm_75 sm_90a compute_120" \
  "$(jq -r '.device_code.value[] | select(.path == "/opt/lib/good-top.so").code | join(" ")' streamed.json)"
equal "kernel" 3.2.0 "$(fact least_kernel streamed.json)"
equal "users" "$(fact user_ids streamed.json)" \
  "$("$MLENV" run --no-project lacking -- python3 -c 'import pwd
print(*sorted({str(user.pw_uid) for user in pwd.getpwall()}))')"
note "in the record of the build"
MLENV_STORE=$work/elsewhere "$MLENV" check project/lacking.yaml --json >lock-alone.json || true
grep -q '"schema":"mlenv.verdict/1"' lock-alone.json || fail "no answer: $(cat lock-alone.json)"
if grep -q 'libdep.so.1' lock-alone.json; then fail "the lock alone knows of the missing library"; fi
"$MLENV" check project/lacking.yaml --json >with-image.json || true
grep -q 'libdep.so.1' with-image.json || fail "the built image is here, and not looked at: $(cat with-image.json)"
"$MLENV" -q build project/lacking.yaml --facts >/dev/null
python3 - project/lacking.built streamed.json <<'PYTHON'
import json, sys, tomllib
with open(sys.argv[1], "rb") as file:
    recorded = json.loads(tomllib.load(file)["facts"])
with open(sys.argv[2], encoding="utf-8") as file:
    asked = json.load(file)
assert recorded.pop("name") == "" and asked.pop("name") == "lacking"
assert asked.pop("failed_imports")["value"] is None, "nobody tried"  # and no record says so
assert recorded == asked, "the record's facts are others"
PYTHON
cp project/lacking.built recorded.built
"$MLENV" -q build project/lacking.yaml >/dev/null
cmp project/lacking.built recorded.built || fail "a build without --facts changed the record"
MLENV_STORE=$work/elsewhere "$MLENV" check project/lacking.yaml --json >built.json || true
grep -q 'libdep.so.1' built.json || fail "check does not heed the record: $(cat built.json)"
MLENV_STORE=$work/elsewhere "$MLENV" check project/lacking.lock --json >built-lock.json || true
grep -q 'libdep.so.1' built-lock.json || fail "check of the lock does not heed the record"

jq '.device_code.value |= map(select(.path | startswith("/opt/plugin/"))) | .device_code.value[].path |= ltrimstr("/opt")' \
  streamed.json >plugin.json
mkdir unpacked
mv project/plugin unpacked/plugin
as_cuobjdump plugin.json "$work/unpacked"

note "remembered, from trees, and as ldd has it"
began=$(date +%s%N)
"$MLENV" inspect lacking --facts --json | diff streamed.json - || fail "remembered it differs"
note "asked again: $((($(date +%s%N) - began) / 1000000)) ms"
as_ldd lacking streamed.json
rm -r "$MLENV_STORE/keys"
"$MLENV" inspect lacking --facts --json | diff streamed.json - || fail "< from layers, > from trees"
"$MLENV" inspect lacking --facts >text
grep -q '^  libraries  *libdep.so.1 for plugin /opt/lib/good-top.so$' text || fail "not in the text: $(cat text)"
verify_store
[ "$MLENV_TEST_LONG" = 1 ] || exit 0

for name in scikit-learn jax-cpu pytorch-cuda tensorflow-cuda; do
  shared_image "$name"
  "$MLENV" inspect "$name" --facts --json >"$name.json"
  as_ldd "$name" "$name.json"
  mapfile -t folders < <(tree_folders "$name")
  as_cuobjdump "$name.json" "${folders[@]}"
done
equal "what torch says it was built for" \
  "$("$MLENV" run --no-project pytorch-cuda -- python -c 'import torch
print(*[flag for flag in torch._C._cuda_getArchFlags().split() if flag.startswith("sm_")])')" \
  "$(jq -r '.device_code.value[] | select(.path | endswith("/libtorch_cuda_linalg.so")).code | join(" ")' pytorch-cuda.json)"
