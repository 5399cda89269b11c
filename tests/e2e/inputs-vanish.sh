#!/usr/bin/env bash
# What a lock names goes away: files leave the index and the Debian archive, or change there; the
# cache is wiped. Each place that may still have them serves: the finished layers (store, registry),
# the cache, a vendor folder, the indexes, an archive of snapshots. What is nowhere is named, all of it.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/archive.sh
. "$root/tests/support/archive.sh"
need curl
export XDG_CONFIG_HOME=$work/config
shared_cache=$XDG_CACHE_HOME
export XDG_CACHE_HOME=$work/cache
mkdir -p "$XDG_CONFIG_HOME/mlenv"
wipe_cache() {
  drop "$XDG_CACHE_HOME"
  mkdir -p "$XDG_CACHE_HOME/mlenv"
  if [ -d "$shared_cache/mlenv/uv" ]; then cp -r "$shared_cache/mlenv/uv" "$XDG_CACHE_HOME/mlenv/"; fi
}
names() { # names FILE…: the last failure names these, and nothing else
  equal "named" "$(printf '%s\n' "$@" | LC_ALL=C sort | paste -sd' ')" \
    "$(jq -r '.frames[1:][]' "$work/err" | grep -oE '`[^`/ ]+\.(whl|deb)`' | tr -d '`' | LC_ALL=C sort -u | paste -sd' ')"
}
wipe_cache

note "Debian packages: gone from the mirror, changed there"
make_key ours
for package in base-files apt kept lost changed; do
  case $package in
  base-files) make_deb "$work/debs" "$package" 12 'Essential: yes' 'Priority: required' ;;
  *) make_deb "$work/debs" "$package" 1.0 ;;
  esac
done
write_archive ours "$work/www/debian" bookworm "main:$work/debs"
serve "$work/www"
mkdir "$work/debian"
write_debian() { # write_debian [SNAPSHOTS]
  cat >"$work/debian/recipe.yaml" <<RECIPE
name: debian
base: debian:bookworm
system: [kept, lost, changed]
sources:
  debian: [{uri: "$served/debian", signed-by: $work/ours.asc}]
${1:-}
RECIPE
}
write_debian
"$MLENV" lock "$work/debian/recipe.yaml"
cp -r "$work/www/debian" "$work/www/old"
rm "$work/www/debian/pool/main/lost_1.0_all.deb"
dpkg-deb --root-owner-group -Zgzip --build "$work/deb" "$work/www/debian/pool/main/apt_1.0_all.deb" >/dev/null
printf 'x' | dd of="$work/www/debian/pool/main/changed_1.0_all.deb" bs=1 seek=100 conv=notrunc status=none
failing_with input-gone "$MLENV" --json build --locked "$work/debian/recipe.yaml"
names apt_1.0_all.deb changed_1.0_all.deb lost_1.0_all.deb
failing_with input-gone "$MLENV" --json vendor "$work/debian/recipe.yaml"
names apt_1.0_all.deb changed_1.0_all.deb lost_1.0_all.deb
[ -z "$(find "$work/debian/vendor" -name '.*' ! -name .mlenv-vendored -type f)" ] || fail "half files are left"

note "an archive of snapshots: the recipe's by path, this machine's by digest"
write_debian "  snapshots: $served/old"
"$MLENV" --json vendor --locked "$work/debian/recipe.yaml" >"$work/out" || fail "not from the snapshot"
equal "files" 5 "$(jq '.files | length' "$work/out")"
debs_of "$work/debian/recipe.lock" | while read -r _ path digest; do
  echo "$digest  $work/debian/vendor/${path##*/}"
done | sha256sum -c --quiet
write_debian
mkdir "$work/www/by-digest"
for file in "$work"/www/old/pool/main/*.deb; do
  cp "$file" "$work/www/by-digest/$(sha256sum "$file" | cut -c1-64)"
done
printf 'snapshots: ["%s/by-digest/{sha256}"]\n' "$served" >"$XDG_CONFIG_HOME/mlenv/config.yaml"
wipe_cache
"$MLENV" --json vendor --locked "$work/debian/recipe.yaml" "$work/other" >"$work/out"
equal "fetched" 5 "$(jq '[.files[] | select(.fetched)] | length' "$work/out")"
diff -r "$work/debian/vendor" "$work/other"
rm "$XDG_CONFIG_HOME/mlenv/config.yaml"
mv "$work/www/debian" "$work/www/nowhere"
wipe_cache
"$MLENV" --json vendor --locked "$work/debian/recipe.yaml" >"$work/out"
equal "fetched again" 0 "$(jq '[.files[] | select(.fetched)] | length' "$work/out")"

note "a base that is an image"
need skopeo
head -c 100000 /dev/urandom >"$work/data"
tar -C "$work" -cf "$work/data.tar" data
skopeo copy -q "tarball:$work/data.tar" "oci:$work/image:v1"
mkdir "$work/based"
printf 'name: based\nbase: oci:../image:v1\n' >"$work/based/recipe.yaml"
based=$(build_digest "$work/based/recipe.yaml")
"$MLENV" vendor --locked "$work/based/recipe.yaml"
mv "$work/image" "$work/image.gone"
drop "$MLENV_STORE"
rm "$work/based/recipe.built"
equal "from vendor/" "$based" "$(build_digest --locked "$work/based/recipe.yaml")"
rm -r "$work/based/vendor" "$work/based/recipe.built"
drop "$MLENV_STORE"
failing_with base-gone "$MLENV" --json build --locked "$work/based/recipe.yaml"

note "wheels: from the index; the cache wiped"
python3 - "$work" "$root/tests/bench" <<'PYTHON'
import pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
sys.path.insert(0, sys.argv[2])
from index import write_index

def wheel(folder, name, text):
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    files = {f"{name}.py": text, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for file, content in files.items():
            archive.writestr(zipfile.ZipInfo(file, (2020, 1, 1, 0, 0, 0)), content)
for name in ("alpha", "beta", "gamma"):
    wheel(work / "wheels", name, "value = 1\n")
    wheel(work / "later", name, "value = 1\n" if name != "beta" else "value = 2\n")
write_index(sorted((work / "wheels").glob("*.whl")), work / "www/index")
write_index([work / "later/beta-1.0-py3-none-any.whl", work / "later/gamma-1.0-py3-none-any.whl"], work / "www/later")
PYTHON
mkdir "$work/train"
small_recipe "$work/train/recipe.yaml" alpha beta gamma
echo 'bytecode: false' >>"$work/train/recipe.yaml"
base_store "$work/begin"
fresh() { # an empty cache, and a store that holds the base alone
  drop "$MLENV_STORE"
  mkdir -p "$MLENV_STORE"
  cp -a --reflink=auto "$work/begin/." "$MLENV_STORE/"
  wipe_cache
}
unset UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS PIP_FIND_LINKS
nowhere=http://127.0.0.1:1/simple
asked() { grep -c 'GET /\(index\|later\)/.*whl ' "$work/server.log" || true; }
build() { build_digest --no-unpack --locked "$work/train/recipe.yaml" "$@"; }
fresh
export UV_DEFAULT_INDEX=$served/index/simple
image=$(build_digest --no-unpack "$work/train/recipe.yaml")
before=$(asked)
fresh
equal "from the index" "$image" "$(build)"
[ "$(asked)" -gt "$before" ] || fail "the index was not asked"

note "the finished layers: of the store, of the registry that is pushed to"
wipe_cache
export UV_DEFAULT_INDEX=$nowhere
equal "from the store" "$image" "$(build)"
start_registry
build --push "$registry/team/train:v1" >/dev/null
drop "$MLENV_STORE"
wipe_cache
export XDG_CACHE_HOME=$work/empty-cache
equal "from the registry" "$image" "$(build --push "$registry/team/train:v1")"
verify_store
equal "Debian packages fetched" 0 "$(find "$work/empty-cache" -path '*/debs/*' -type f | wc -l)"
export XDG_CACHE_HOME=$work/cache

note "a vendor folder: the usual one, another one, damaged"
fresh
failing_with network "$MLENV" --json build --no-unpack --locked "$work/train/recipe.yaml"
mkdir "$work/train/vendor"
cp "$work"/wheels/*.whl "$work/train/vendor/"
equal "from vendor/" "$image" "$(build)"
fresh
mv "$work/train/vendor" "$work/elsewhere"
equal "from MLENV_VENDOR" "$image" "$(MLENV_VENDOR=$work/elsewhere build)"
verify_store
fresh
printf x | dd of="$work/elsewhere/beta-1.0-py3-none-any.whl" bs=1 seek=60 conv=notrunc status=none
export UV_DEFAULT_INDEX=$served/index/simple
equal "from vendor and index" "$image" "$(MLENV_VENDOR=$work/elsewhere build)"
verify_store

note "the index has other bytes; and one is gone"
fresh
export UV_DEFAULT_INDEX=$served/later/simple
cp -r "$work/train" "$work/other-train"
failing_with input-gone "$MLENV" --json build --no-unpack --locked "$work/train/recipe.yaml"
names alpha-1.0-py3-none-any.whl beta-1.0-py3-none-any.whl
for folder in wheels later; do
  grep -q "$(sha256sum "$work/$folder/beta-1.0-py3-none-any.whl" | cut -c1-64)" "$work/err" || fail "$(cat "$work/err")"
done
mkdir "$work/train/vendor"
cp "$work/wheels/alpha-1.0-py3-none-any.whl" "$work/train/vendor/"
failing_with input-changed "$MLENV" --json build --no-unpack --locked "$work/train/recipe.yaml"
names beta-1.0-py3-none-any.whl

note "snapshots have wheels too, by digest"
for file in "$work"/wheels/*.whl; do
  cp "$file" "$work/www/by-digest/$(sha256sum "$file" | cut -c1-64)"
done
printf 'snapshots: ["%s/by-digest/{sha256}"]\n' "$served" >"$XDG_CONFIG_HOME/mlenv/config.yaml"
fresh
equal "from the snapshot" "$image" "$(build)"
verify_store
