#!/usr/bin/env bash
# A wheel from a folder on this machine that holds all that a wheel may hold: it is installed as
# `uv pip install` does it. Sources that no interpreter compiles stay without bytecode, as pip leaves
# them. Wheels that lie are refused with one message.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/normalise_venv.sh
. "$root/tests/support/normalise_venv.sh"
mkdir "$work/wheels" "$work/lies"
python3 "$root/tests/support/odd_wheels.py" "$work/wheels" "$work/lies"
export UV_FIND_LINKS=$work/wheels
base_tree
small_recipe "$work/odd.yaml" mlenv-odd mlenv-streamed idna
image=$(build_digest "$work/odd.yaml")
note "$image"
"$MLENV" run --no-project small -- sh -c '
  set -e
  cd /opt/venv/lib/python3.11/site-packages
  python -c "import odd, streamed, idna; assert odd.value == 42"
  ls odd/__pycache__ >/tmp/compiled
  printf "%s.cpython-311.pyc\n" __init__ inside | diff - /tmp/compiled
  cat /opt/venv/lib/odd.txt
  for script in plain arguments windows gui; do odd-$script | grep -x "it is 42"; done
  odd-shell | grep -x shell' || fail "see above"
verify_store

note "as uv installs it"
mkdir "$work/ours"
"$MLENV" run --no-project small -- tar -C /opt/venv -cf - . | tar -C "$work/ours" -xf -
uv=$(uv_program)
"$uv" venv --quiet --no-config --python /usr/bin/python3 "$work/theirs"
idna=$(sed -n 's/.*name = "idna", version = "\([^"]*\)".*/\1/p' "$work/odd.lock")
VIRTUAL_ENV=$work/theirs "$uv" pip install --quiet --link-mode copy --only-binary :all: mlenv-odd mlenv-streamed "idna==${idna:?}"
normalise_venv "$work/ours"
normalise_venv "$work/theirs"
# Where our environment is another by design (docs/layers.md), and the line that uv adds for a file that RECORD
# forgot.
mv "$work/theirs/include/site/python3.11" "$work/theirs/include/site/python3"
find "$work/theirs" -path '*.dist-info/RECORD' -exec sed -i -e 's,include/site/python3\.11/,include/site/python3/,' \
  -e 's,^\.\./\.\./\.\./lib64/,../../../lib/,' -e '/^odd\/not-in-record\.txt,/d' {} \; -exec sort -o {} {} \;
sed -i -e 's,include/site/python3\.11/,include/site/python3/,' "$work/theirs.modes"
diff -r "$work/theirs" "$work/ours" >"$work/diff" || fail "the trees differ: $(head -n 40 "$work/diff")"
diff "$work/theirs.modes" "$work/ours.modes" || fail "modes differ"
note "$(wc -l <"$work/ours.modes") files"

note "cached bytecode that is damaged"
bytecode=$(grep -rhF mlenv.bytecode/1 "$MLENV_STORE/keys" | jq -r 'select(any(.folders[]; contains("/idna/"))) | .blob[7:]')
blob=$(find "$MLENV_STORE/blobs" -name "${bytecode:?}")
chmod u+w "$blob"
printf damaged | dd of="$blob" bs=1 seek=5000 conv=notrunc status=none
small_recipe "$work/fewer.yaml" mlenv-odd idna
failing_with damaged "$MLENV" --json build "$work/fewer.yaml"
grep -qF 'store verify --repair' "$work/err" || fail "$(cat "$work/err")"
"$MLENV" store verify --repair >/dev/null
"$MLENV" build -q "$work/fewer.yaml" >/dev/null
verify_store

note "wheels that lie"
while IFS=$'\t' read -r name words; do
  status=0
  small_recipe "$work/lie.yaml" "$name"
  UV_FIND_LINKS=$work/lies "$MLENV" -q build "$work/lie.yaml" --no-unpack >"$work/out" 2>"$work/err" || status=$?
  case $status in 1 | 3) ;; *) fail "$name: status $status: $(cat "$work/err")" ;; esac
  equal "errors about $name" 1 "$(grep -c '^error:' "$work/err")"
  grep -qF -- "$words" "$work/err" || fail "$name: says: $(cat "$work/err")"
  rm -f "$work/lie.lock"
done <"$work/lies/words"
verify_store

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "a file of more than 4 GiB"
python3 "$root/tests/support/odd_wheels.py" --huge "$work/wheels"
small_recipe "$work/huge.yaml" mlenv-huge
sed -i 's/^name: .*/name: huge/; $a bytecode: false' "$work/huge.yaml"
"$MLENV" build "$work/huge.yaml" --no-unpack --output "oci:$work/huge" >/dev/null
layer=$(jq -r '.layers[-1].digest[7:]' "$work/huge/blobs/sha256/$(jq -r '.manifests[0].digest[7:]' "$work/huge/index.json")")
equal "size in the layer" $((4 * 1024 * 1024 * 1024 + 5)) \
  "$(tar -tvzf "$work/huge/blobs/sha256/$layer" | awk '/huge\.bin$/ {print $3}')"
