#!/usr/bin/env bash
# A reader of the layer format that shares no code with ours (tests/support/read_layers.py, Python's
# standard library) agrees with every digest, diff-id, gzip member and tar header of a project with
# files, NumPy and Debian below; with MLENV_TEST_LONG=1 of a framework and a bare Debian too. (recipe-sources.sh: one
# with package sources.)
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq

disagrees() { # disagrees WORDS OCI_FOLDER [ARGUMENT…]
  local words=$1
  shift
  if python3 "$root/tests/support/read_layers.py" "$@" >/dev/null 2>"$work/err"; then fail "nothing is wrong with $*"; fi
  grep -qF -- "$words" "$work/err" || fail "not a word of \`$words\`: $(head -n 5 "$work/err")"
}

base_tree
small_recipe "$work/project.yaml" idna six numpy
mkdir -p "$work/src/deep/empty"
echo 'print(1)' >"$work/src/main.py"
ln -s main.py "$work/src/link.py"
head -c 3000000 /dev/urandom >"$work/src/deep/data.bin"
echo 'files: {src: /workspace}' >>"$work/project.yaml"
"$MLENV" build "$work/project.yaml" --output "oci:$work/project" >/dev/null
reader_agrees small "$work/project" --wheels "$MLENV_STORE/blobs"

note "and it does complain"
disagrees 'created at 0, not 1' "$work/project" --epoch 1
mkdir "$work/no-wheels"
disagrees 'is in no wheel' "$work/project" --wheels "$work/no-wheels"
layer=$(jq -r '.layers[-1].digest[7:]' "$work/project/blobs/sha256/$(jq -r '.manifests[0].digest[7:]' "$work/project/index.json")")
printf 'x' | dd of="$work/project/blobs/sha256/$layer" bs=1 seek=5 conv=notrunc status=none
disagrees 'another digest' "$work/project"

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
shared_image jax-cpu
"$MLENV" build "$recipe_path" --locked --output "oci:$work/jax" >/dev/null
reader_agrees jax-cpu "$work/jax" --wheels "$MLENV_STORE/blobs"
rm -r "$work/jax"

shared_bare
"$MLENV" build "$recipe_path" --locked --output "oci:$work/bare.oci" >/dev/null
reader_agrees bare "$work/bare.oci"
