#!/usr/bin/env bash
# A Python that the base has not got, from an archive that the recipe names: here bullseye's 3.9 in the
# layout of python-build-standalone, on bookworm. Environment, wheels' tags and bytecode follow it.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/archive.sh
. "$(dirname "$0")/../support/archive.sh"
need apt-get curl dpkg-deb runc zstd
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"

note "an archive of Python 3.9"
printf 'name: old\nbase: debian:bullseye\nsystem: [python3.9-minimal, libpython3.9-dev]\n' >"$work/old.yaml"
"$MLENV" lock "$work/old.yaml" 2>/dev/null
mkdir "$work/debs" "$work/tree" "$work/python"
while read -r name path digest; do
  case $name in
    python3.9-minimal | libpython3.9-minimal | libpython3.9-stdlib | libpython3.9-dev)
      fetch_deb "$path" "$digest" "$work/debs/$name.deb"
      dpkg-deb -x "$work/debs/$name.deb" "$work/tree"
      ;;
  esac
done < <(debs_of "$work/old.lock")
mkdir -p "$work/python/bin" "$work/python/lib" "$work/python/include/python3.9" "$work/www"
cp "$work/tree/usr/bin/python3.9" "$work/python/bin/"
ln -s python3.9 "$work/python/bin/python3"
cp -r "$work/tree/usr/lib/python3.9" "$work/python/lib/"
cp "$work/tree/usr/include/python3.9/patchlevel.h" "$work/python/include/python3.9/"
# Settings that Debian keeps elsewhere, a machine's own file and stale bytecode: none of it may matter.
find "$work/python" -xtype l -delete
mkdir "$work/python/lib/python3.9/__pycache__"
echo stale >"$work/python/lib/python3.9/__pycache__/os.cpython-39.pyc"
chmod -R u=rwX,go= "$work/python"
tar -C "$work" --owner=1234 -cf - python | zstd -q -o "$work/www/cpython-3.9.tar.zst"
digest=$(sha256sum "$work/www/cpython-3.9.tar.zst" | cut -d' ' -f1)
serve "$work/www"

recipe() { # recipe PYTHON [DIGEST [FILE]]
  cat >"$work/recipe.yaml" <<RECIPE
name: own-python
base: debian:bookworm
python: "$1"
packages: [six, pyyaml]
system: [python3]
sources: {python: {url: "$served/${3:-cpython-3.9.tar.zst}", sha256: ${2:-$digest}}}
RECIPE
}
refuses() { # refuses STATUS WORDS
  local status=0
  "$MLENV" lock "$work/recipe.yaml" >"$work/out" 2>"$work/err" || status=$?
  equal "status" "$1" "$status"
  grep -qF "$2" "$work/err" || fail "says: $(cat "$work/err")"
}

note "refusals"
printf 'name: x\nbase: debian:bookworm\npython: "3.4"\n' >"$work/recipe.yaml"
refuses 3 'an archive with `sources: {python: {url: …, sha256: …}}`'
grep -qF 'uv has no build of Python 3.4' "$work/err" || fail "says: $(cat "$work/err")"
recipe 3.12
refuses 3 'the archive holds Python 3.9.2, the recipe wants 3.12'
recipe 3.9 "$(sha256sum "$work/old.yaml" | cut -d' ' -f1)"
refuses 1 'cpython-3.9.tar.zst'
tar -C "$work" -czf "$work/www/other.tar.gz" debs
recipe 3.9 "$(sha256sum "$work/www/other.tar.gz" | cut -d' ' -f1)" other.tar.gz
refuses 1 'it holds no folder `python`'
failing_with bad-python "$MLENV" --json lock "$work/recipe.yaml"

note "lock"
recipe 3.9
"$MLENV" lock "$work/recipe.yaml" 2>"$work/err" || fail "lock: $(cat "$work/err")"
grep -qx 'revision = 2' "$work/recipe.lock" || fail "another revision"
grep -qx 'python = "3.9.2"' "$work/recipe.lock" || fail "another Python"
grep -q '^interpreter = { version = "3.9.2", file = "cpython-3.9.tar.zst", size = ' "$work/recipe.lock" || fail "no interpreter"
grep -q 'file = "pyyaml-.*-cp39-cp39-' "$work/recipe.lock" || fail "a wheel for another Python: $(grep pyyaml "$work/recipe.lock")"
if grep -qF 127.0.0.1 "$work/recipe.lock"; then fail "the lock names a host"; fi

note "build"
base_tree
first=$(build_digest "$work/recipe.yaml")
cat >"$work/look.py" <<'PYTHON'
import os, sys, sysconfig, yaml
print(sys.version_info[:2], sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"])
print(os.path.realpath(sys.executable), yaml.__with_libyaml__)
for module in (os, yaml):
    data = open(module.__cached__, "rb").read()
    print(module.__cached__, data[4] == 1 and len(data) > 1000)
status = os.stat("/opt/python/lib/python3.9/os.py")
print(oct(status.st_mode), status.st_uid, status.st_mtime)
PYTHON
"$MLENV" run -v "$work/look.py:/look.py:ro" own-python -- python /look.py >"$work/found"
cat >"$work/expected" <<'FOUND'
(3, 9) /opt/venv /opt/python /opt/python/lib/python3.9
/opt/python/bin/python3.9 True
/opt/python/lib/python3.9/__pycache__/os.cpython-39.pyc True
/opt/venv/lib/python3.9/site-packages/yaml/__pycache__/__init__.cpython-39.pyc True
0o100644 0 0.0
FOUND
diff "$work/expected" "$work/found" || fail "another Python in the image"

note "again, from nothing but lock and archive"
export MLENV_STORE=$work/second
base_store
equal "the image" "$first" "$(umask 077 && TZ=Asia/Tokyo build_digest --locked -j1 "$work/recipe.yaml")"
verify_store

note "a Python that no recipe names: the build that uv would install, from a mirror of its releases"
export UV_PYTHON_INSTALL_MIRROR=$served/mirror
printf 'name: uvs\nbase: debian:bookworm\npython: "3.9"\npackages: [six]\nsystem: [python3]\n' >"$work/recipe.yaml"
rm "$work/recipe.lock"
refuses 3 '`base: debian:bookworm` has Python 3.11, the recipe wants 3.9'
grep -qF 'UV_PYTHON_INSTALL_MIRROR' "$work/err" || fail "no word of the mirror: $(cat "$work/err")"
grep -qF 'base: debian:bullseye' "$work/err" || fail "no base that has it: $(cat "$work/err")"
wanted=$(grep -oE 'mirror/[0-9]+/cpython-3\.9[^` ]*gz' "$work/err" | head -1) || fail "asked for no archive: $(cat "$work/err")"
mkdir -p "$work/www/$(dirname "$wanted")"
file=$(basename "$wanted" | sed 's/%2B/+/')
tar -C "$work" -czf "$work/www/$(dirname "$wanted")/$file" python
"$MLENV" lock "$work/recipe.yaml" 2>"$work/err" || fail "lock: $(cat "$work/err")"
grep -qF "file = \"$file\"" "$work/recipe.lock" || fail "another file: $(grep interpreter "$work/recipe.lock")"
grep -qx 'python = "3.9.2"' "$work/recipe.lock" || fail "another Python"
if grep -qE '127\.0\.0\.1|http' "$work/recipe.lock"; then fail "the lock names a host"; fi
first=$(build_digest "$work/recipe.yaml")
equal "the interpreter" /opt/python/bin/python3.9 "$("$MLENV" run uvs -- python -c 'import os, six, sys; print(os.path.realpath(sys.executable))')"

note "again: the lock keeps it though the mirror is gone, another machine fetches it by its name"
mv "$work/www/mirror" "$work/www/later"
cp "$work/recipe.lock" "$work/before.lock"
"$MLENV" add --recipe "$work/recipe.yaml" 'packaging==24.0' 2>"$work/err" || fail "add: $(cat "$work/err")"
equal "the same Python" "$(grep '^interpreter' "$work/before.lock")" "$(grep '^interpreter' "$work/recipe.lock")"
cp "$work/before.lock" "$work/recipe.lock"
printf 'name: uvs\nbase: debian:bookworm\npython: "3.9"\npackages: [six]\nsystem: [python3]\n' >"$work/recipe.yaml"
mkdir "$work/cache"
(
  export XDG_CACHE_HOME=$work/cache MLENV_STORE=$work/third UV_PYTHON_INSTALL_MIRROR=$served/later
  base_store
  equal "the image" "$first" "$(build_digest --locked "$work/recipe.yaml")"
)
