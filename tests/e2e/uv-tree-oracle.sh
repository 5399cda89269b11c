#!/usr/bin/env bash
# The environment in the image is what `uv pip install` makes of the same wheels, file by file: bytecode,
# who installed it, RECORD's lines about these, and the interpreter named in scripts aside. uv marks every
# package as REQUESTED; here only those are that the recipe names.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/normalise_venv.sh
. "$root/tests/support/normalise_venv.sh"
need jq

shared_image jax-cpu
version=$("$MLENV" run jax-cpu -- python -c 'import platform; print(platform.python_version())')
python=/usr/bin/python3
[ "$("$python" -c 'import platform; print(platform.python_version())' 2>/dev/null)" = "$version" ] ||
  skip "$python is not Python $version, as in the image"

mkdir "$work/ours"
"$MLENV" run jax-cpu -- tar -C /opt/venv -cf - . | tar -C "$work/ours" -xf -

# The recipe's own packages in the lock's versions; what they need is found anew, moments after the lock.
lock=${recipe_path%.yaml}.lock
"$python" - "$lock" >"$work/requested" <<'READ'
import sys, tomllib
for wheel in tomllib.load(open(sys.argv[1], "rb"))["packages"]["wheels"]:
    if wheel.get("requested"):
        print(f"{wheel['name']}=={wheel['version']}")
READ
uv=$(uv_program)
"$uv" venv --quiet --no-config --python "$python" "$work/venv"
VIRTUAL_ENV=$work/venv "$uv" pip install --quiet --link-mode copy --only-binary :all: -r "$work/requested"
mv "$work/venv" "$work/theirs"

asked=$(sed 's/==.*//; s/-/_/g' "$work/requested" | sort)
marked=$(find "$work/ours/lib/python3/site-packages" -path '*.dist-info/REQUESTED' -printf '%h\n' |
  sed -E 's,.*/([^-]*)-.*,\1,' | sort)
equal "packages marked as requested" "$asked" "$marked"

normalise_venv "$work/ours"
normalise_venv "$work/theirs"
diff -r "$work/theirs" "$work/ours" >"$work/diff" || {
  head -n 60 "$work/diff"
  fail "the trees differ"
}
diff "$work/theirs.modes" "$work/ours.modes" >"$work/diff" || {
  head -n 40 "$work/diff"
  fail "modes differ"
}
note "$(wc -l <"$work/ours.modes") files, all the same"
