#!/usr/bin/env bash
# What a recipe says of builds: constraints, undeclared packages, variables, settings, network; what is packed as
# a zip; the one hint of a build that fails; and each source built once.
# shellcheck disable=SC2016  # backticks in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3

base_tree
cd "$work"
recipe_of() { # recipe_of NAME PACKAGES [LINE…]
  printf 'name: %s\nbase: debian:bookworm\npython: "3.11"\npackages: [%s]\n' "$1" "$2" >"$1.yaml"
  [ $# -lt 3 ] || printf '%s\n' "${@:3}" >>"$1.yaml"
}
hint() { # hint TEXT RECIPE: the build fails, and the hint says so
  local status=0
  "$MLENV" lock "$2" 2>"$work/err" || status=$?
  equal "exit status of locking $2" 1 "$status"
  grep -qF "$1" "$work/err" || fail "says: $(cat "$work/err")"
}
build_count() { grep -c "build $1-1" "$work/progress" || true; }

# Sources and wheels of this test's own: sdist NAME REQUIRES ENDING <CODE; tool VERSION.
cat >pack.py <<'PYTHON'
import hashlib, io, os, sys, tarfile, zipfile
kind, name, version = sys.argv[1:4]
files, folder = {}, f"{name}-{version}"
if kind == "wheel":
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": f"version = {version!r}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    files[f"{info}/RECORD"] = "".join(f"{one},,\n" for one in [*files, f"{info}/RECORD"])
    file = f"{folder}-py3-none-any.whl"
else:
    requires, file = sys.argv[4], f"{folder}.{sys.argv[5]}"
    files = {f"{folder}/pyproject.toml": f'[build-system]\nrequires = [{requires}]\nbuild-backend = "own"\nbackend-path = ["."]\n',
             f"{folder}/PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{folder}/own.py": f"NAME = {name!r}\n" + sys.stdin.read()}
os.makedirs(f"index/{name}", exist_ok=True)
path = f"index/{name}/{file}"
if file.endswith((".whl", ".zip")):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for one, text in files.items():
            out.writestr(zipfile.ZipInfo(one), text)
else:
    with tarfile.open(path, "w:" + file.rsplit(".", 1)[1]) as out:
        for one, text in files.items():
            entry = tarfile.TarInfo(one)
            entry.size = len(text)
            out.addfile(entry, io.BytesIO(text.encode()))
digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
with open(f"index/{name}/index.html", "a") as page:
    page.write(f'<a href="{file}#sha256={digest}">{file}</a>\n')
PYTHON
backend='
import os, sys, zipfile
def build_wheel(out, config_settings=None, metadata_directory=None):
    name = f"{NAME}-1-py3-none-any.whl"
    info = f"{NAME}-1.dist-info/"
    files = {f"{NAME}.py": f"about = {about(config_settings)!r}\n",
             info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             info + "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1\n"}
    files[info + "RECORD"] = "".join(f"{one},,\n" for one in [*files, info + "RECORD"])
    with zipfile.ZipFile(os.path.join(out, name), "w") as wheel:
        for one in sorted(files):
            wheel.writestr(zipfile.ZipInfo(one), files[one])
    return name
'
sdist() { python3 pack.py sdist "$1" 1 "$2" "$3"; }
python3 pack.py wheel tool 1
python3 pack.py wheel tool 2
python3 pack.py wheel other 1
sdist steered '"tool"' zip <<<"$backend"'
def about(settings):
    import tool
    return [tool.version, os.environ.get("LEVEL"), os.environ.get("MODE"), settings]
'
sdist undeclared '' tar.gz <<<"$backend"'
def about(settings):
    import six
    return six.__version__
'
sdist online '' tar.xz <<<"$backend"'
def about(settings):
    import urllib.request
    return urllib.request.urlopen("http://127.0.0.1:'"$(free_port | tee port)"'/").read().decode()
'
sdist installs '"pip"' tar.gz <<<"$backend"'
def about(settings):
    import subprocess
    return subprocess.check_output([sys.executable, "-m", "pip", "install", "--target", "/tmp/x", "nothing-of-the-kind"]).decode()
'
sdist compiles '' tar.gz <<<"$backend"'
def about(settings):
    import subprocess
    return subprocess.check_output(["gcc", "--version"]).decode()
'
sdist old '"tool"' tar.gz <<<"$backend"'
def about(settings):
    import pkg_resources
'
export UV_INDEX=file://$work/index

note "a zip, built as the recipe says"
recipe_of steered 'steered' 'build:' '  constraints: ["tool<2"]' '  env: {LEVEL: "1", MODE: all, steered: {MODE: own}}' \
  '  config-settings: {steered: {a: b, c: [d, e]}}'
"$MLENV" lock steered.yaml 2>progress
grep -q 'file = "steered-1.zip".*built-with = \["tool-1-py3-none-any.whl"\]' steered.lock || fail "lock: $(cat steered.lock)"
build_digest steered.yaml >/dev/null
"$MLENV" run steered -- python -c 'import steered; assert steered.about == ["1", "1", "own", {"a": "b", "c": ["d", "e"]}], steered.about'

note "built once: for another recipe's lock, after one that failed, but not with other settings"
recipe_of more 'steered, other' 'build:' '  constraints: ["tool<2"]' '  env: {LEVEL: "1", MODE: all, steered: {MODE: own}}' \
  '  config-settings: {steered: {a: b, c: [d, e]}}'
"$MLENV" lock more.yaml 2>progress
equal "builds" 0 "$(build_count steered)"
recipe_of fails 'steered, no-such-package-of-this-test' 'build: {env: {LEVEL: "2"}}'
status=0
"$MLENV" lock fails.yaml 2>progress || status=$?
equal "exit status" 3 "$status"
recipe_of works 'steered' 'build: {env: {LEVEL: "3"}}'
"$MLENV" lock works.yaml 2>progress
equal "builds with another variable" 1 "$(build_count steered)"
recipe_of works 'steered, other' 'build: {env: {LEVEL: "3"}}'
"$MLENV" lock works.yaml 2>progress
equal "builds with the same" 0 "$(build_count steered)"

note "a package that a build does not declare, in the image's version"
recipe_of undeclared 'undeclared, six==1.16.0'
hint 'build: {requires: {undeclared: [six]}}' undeclared.yaml
recipe_of undeclared 'undeclared, six==1.16.0' 'build: {requires: {undeclared: [six]}}'
"$MLENV" lock undeclared.yaml
grep -q 'file = "undeclared-1.tar.gz".*built-with = \["six-1.16.0-' undeclared.lock || fail "lock: $(cat undeclared.lock)"
recipe_of undeclared 'undeclared, six==1.17.0' 'build: {requires: {undeclared: [six]}}'
"$MLENV" lock undeclared.yaml
grep -q 'built-with = \["six-1.17.0-' undeclared.lock || fail "another version of the image: $(cat undeclared.lock)"

note "the network, when the recipe says so"
port=$(cat port)
mkdir site
echo answer >site/index.html
start "$work/site.log" python3 -m http.server --bind 127.0.0.1 --directory site "$port"
wait_until 10 curl -s -o page "http://127.0.0.1:$port/"
recipe_of online '"online @ ./index/online/online-1.tar.xz"'
hint 'build: {network: true}' online.yaml
recipe_of online '"online @ ./index/online/online-1.tar.xz"' 'build: {network: true}'
"$MLENV" lock online.yaml

note "what uv takes from no index"
sdist packed '' tar.bz2 <<<"$backend"'
def about(settings):
    return 1
'
recipe_of packed 'packed'
status=0
"$MLENV" lock packed.yaml 2>err || status=$?
if [ "$status" != 0 ]; then
  equal "exit status" 3 "$status"
  grep -qF 'packed @ ' err || fail "says: $(cat err)"
fi
recipe_of packed '"packed @ ./index/packed/packed-1.tar.bz2"'
"$MLENV" lock packed.yaml

note "hints"
recipe_of installs 'installs'
hint 'build: {network: true}' installs.yaml
recipe_of compiles 'compiles'
hint 'system: [build-essential' compiles.yaml
recipe_of old 'old'
hint 'setuptools<81' old.yaml
verify_store
