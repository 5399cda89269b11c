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
printf 'name: x\nbase: debian:bookworm\npython: "3.9"\n' >"$work/recipe.yaml"
refuses 3 'bring a Python along with `sources: {python: {url: …, sha256: …}}`'
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
