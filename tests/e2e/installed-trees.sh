#!/usr/bin/env bash
# Twenty recipes of many kinds (tests/recipes): each locks and builds; the environment in the image is, file by
# file, what `uv pip install --no-deps` makes there of the same versions; pip and uv list what is locked and find
# nothing wrong; one more package can be installed. Two of them here, all with MLENV_TEST_LONG=1, or those that
# MLENV_TEST_RECIPES names.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/normalise_venv.sh
. "$root/tests/support/normalise_venv.sh"
need runc

read -ra recipes <<<"${MLENV_TEST_RECIPES:-project from-source}"
if [ "$MLENV_TEST_LONG" = 1 ]; then
  recipes=("$root"/tests/recipes/*.yaml)
  recipes=("${recipes[@]##*/}")
  recipes=("${recipes[@]%.yaml}")
fi
cp -r "$root/tests/recipes" "$work/recipes"
mkdir "$work/inside"
cat >"$work/inside/compare" <<'INSIDE'
set -e
pip list --local --format freeze >/out/pip
pip check >/out/check
uv pip list --quiet --format freeze --python /opt/venv/bin/python >/out/uv
python_program=$(python -c 'import sys; print(sys._base_executable)')
uv venv --quiet --no-config --python "$python_program" /out/theirs
VIRTUAL_ENV=/out/theirs uv pip install --quiet --no-deps --link-mode copy -r /out/locked
cp -a /opt/venv /out/ours
pip install --quiet --root-user-action ignore inflection
python -c 'import inflection; assert inflection.pluralize("layer") == "layers"'
INSIDE

locked() { # locked LOCK: `name==version`, of the environment
  python3 - "$1" <<'READ'
import sys, tomllib
for wheel in tomllib.load(open(sys.argv[1], "rb"))["packages"]["wheels"]:
    print(f"{wheel['name']}=={wheel['version']}")
READ
}
normal() { sed -E 's/^([^=]*)/\L\1/; s/^([^=]*)_/\1-/g; :a; s/^([^=]*)[._]/\1-/; ta' "$1" | LC_ALL=C sort; }

compare() { # compare NAME
  local out=$work/$1
  mkdir "$out"
  build_digest "$work/recipes/$1.yaml" >/dev/null 2>"$work/err" || fail "$1: $(cat "$work/err")"
  locked "$work/recipes/$1.lock" | LC_ALL=C sort >"$out/locked"
  # As root: the tree's own modes are copied.
  "$MLENV" run -v "$(uv_program):/usr/local/bin/uv:ro" -v "$out:/out" -v "$work/inside:/tools:ro" "$1" -- \
    sh /tools/compare >"$work/log" 2>&1 || fail "$1: $(tail -n 20 "$work/log")"
  normal "$out/pip" | diff "$out/locked" - || fail "$1: \`pip list\` has others than the lock"
  normal "$out/uv" | diff "$out/locked" - || fail "$1: \`uv pip list\` has others than the lock"
  normalise_venv "$out/ours"
  normalise_venv "$out/theirs"
  diff -r "$out/theirs" "$out/ours" >"$work/diff" || fail "$1: the trees differ: $(head -n 40 "$work/diff")"
  diff "$out/theirs.modes" "$out/ours.modes" >"$work/diff" || fail "$1: modes differ: $(head -n 40 "$work/diff")"
  note "$1: $(wc -l <"$out/locked") packages, $(wc -l <"$out/ours.modes") files, all the same"
  as_root rm -rf "$out"
}

base_tree
for name in "${recipes[@]}"; do compare "$name"; done
verify_store
