#!/usr/bin/env bash
# Packages by address: folders, repositories and wheels of the recipe's own are locked, built in the sandbox
# and installed as uv installs them; a moved branch moves nothing, a changed folder is noticed.
# shellcheck disable=SC2016  # backticks in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3 git

base_tree
cd "$work"
export GIT_CONFIG_GLOBAL=$work/gitconfig GIT_CONFIG_NOSYSTEM=1 NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
git config --global user.name tester
git config --global user.email tester@mlenv.example
git config --global init.defaultBranch main

project() { # project FOLDER NAME BACKEND REQUIREMENT
  mkdir -p "$1/$2"
  printf 'VALUE = 1\n' >"$1/$2/__init__.py"
  cat >"$1/pyproject.toml" <<TOML
[build-system]
requires = ["$4"]
build-backend = "$3"
[project]
name = "$2"
version = "0.1"
description = "of a test"
dependencies = ["six"]
[project.scripts]
$2-tell = "$2:tell"
TOML
}
project app/libs/mylib mylib flit_core.buildapi flit_core
project served/tool/python tool setuptools.build_meta 'setuptools", "setuptools-scm'
sed -i 's/^version = .*/dynamic = ["version"]/' served/tool/python/pyproject.toml
printf '[tool.setuptools_scm]\nroot = ".."\n' >>served/tool/python/pyproject.toml
project served/far far flit_core.buildapi flit_core
repository=$work/served/tool
for one in "$work/served/far" "$repository"; do
  git -C "$one" init -q
  git -C "$one" add -A
  git -C "$one" commit -qm first
done
git -C "$repository" tag v1.4
first=$(git -C "$repository" rev-parse HEAD)
port=$(free_port)
start "$work/daemon.log" git daemon --export-all --base-path="$work/served" --listen=127.0.0.1 --port="$port" --reuseaddr
wait_until 20 git ls-remote "git://127.0.0.1:$port/tool"
url=git://127.0.0.1:$port/tool

mkdir -p app/dist
# By a server that only has files, which is asked for all of a repository.
git -C served/far update-server-info
files_port=$(free_port)
start "$work/files.log" python3 -m http.server "$files_port" --bind 127.0.0.1 --directory "$work/served"
python3 - "http://127.0.0.1:$files_port/far/.git" "http://127.0.0.1:$files_port/spare-1-py3-none-any.whl" <<'PY'
import sys, zipfile
info = "made-1.dist-info/"
files = {"made.py": "VALUE = 1\n", info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         info + "METADATA": "Metadata-Version: 2.1\nName: made\nVersion: 1\n"
         f"Requires-Dist: far @ git+{sys.argv[1]}\n"
         f"Provides-Extra: more\nRequires-Dist: spare @ {sys.argv[2]} ; extra == 'more'\n"
         "Provides-Extra: author\nRequires-Dist: x @ file:///nonexistent/x ; extra == 'author'\n"}
files[info + "RECORD"] = "".join(f"{one},,\n" for one in [*files, info + "RECORD"])
def write(path, name):
    with zipfile.ZipFile(path, "w") as wheel:
        for one in files:
            wheel.writestr(one.replace("made", name), files[one].replace("made", name))
write("app/dist/made-1-py3-none-any.whl", "made")
files[info + "METADATA"] = "Metadata-Version: 2.1\nName: made\nVersion: 1\n"
write("served/spare-1-py3-none-any.whl", "spare")
PY
cat >app/requirements.txt <<'TXT'
-e ./libs/mylib
made[more] @ ./dist/made-1-py3-none-any.whl
made @ ./dist/for-another-machine-1-py3-none-any.whl ; platform_machine == 'riscv64'
-c constraints.txt
TXT
# Nothing needs it, and nobody answers there.
echo 'unwanted @ git+git://127.0.0.1:1/unwanted' >app/constraints.txt
cd app
recipe_of() { printf 'name: %s\nbase: debian:bookworm\npython: "3.11"\n%s\n' "$1" "$2" >"$1.yaml"; }

note "a folder, a repository and a wheel"
recipe_of own "packages: [\"tool @ git+$url@main#subdirectory=python\"]
requirements: requirements.txt"
"$MLENV" lock own.yaml
grep -q "name = \"tool\", version = \"1.4\", git = \"$url\", reference = \"main\", commit = \"$first\", subdirectory = \"python\", describe = \"v1.4-0-g" own.lock || fail "lock: $(cat own.lock)"
grep -q 'name = "mylib", version = "0.1", path = "./libs/mylib", sha256.*built-with = \["flit_core-' own.lock || fail "lock: $(cat own.lock)"
grep -q 'name = "made", version = "1", path = "./dist/made-1-py3-none-any.whl", file' own.lock || fail "lock: $(cat own.lock)"
grep -q 'name = "far", version = "0.1", git = "http://' own.lock || fail "what the wheel names by address is not locked"
grep -q 'name = "spare", version = "1", url = "http://' own.lock || fail "what its extra names by address is not locked"
grep -q '{ name = "six"' own.lock || fail "what they need is not locked"
if grep -qF "$work" own.lock; then fail "a folder of this machine is in the lock"; fi
image=$(build_digest own.yaml)
"$MLENV" run own -- python -c 'import mylib, tool, made, far, six; assert mylib.VALUE == tool.VALUE == made.VALUE == far.VALUE == 1'

note "installed as uv does it, which leaves its traces in the folder"
uv=$(uv_program)
"$uv" pip install -q --no-deps --target "$work/by-uv" --python "$(command -v python3)" ./libs/mylib \
  "tool @ git+file://$repository@main#subdirectory=python" ./dist/made-1-py3-none-any.whl
files='find . -type f -path "./m*" -o -type f -path "./tool*" | grep -vE "\.pyc$|/(RECORD|INSTALLER|REQUESTED|direct_url.json|uv_cache.json|uv_build.json)$" | LC_ALL=C sort | xargs sha256sum'
equal "files" "$(cd "$work/by-uv" && sh -c "$files")" "$("$MLENV" run own -- sh -c "cd /opt/venv/lib/python3.11/site-packages && $files")"
mkdir -p libs/mylib/build/lib/mylib libs/mylib/mylib.egg-info
echo 'VALUE = 3' >libs/mylib/build/lib/mylib/__init__.py
"$MLENV" lock --locked own.yaml

note "a branch that moves"
cp own.lock before.lock
sed -i 's/1/2/' "$repository/python/tool/__init__.py"
git -C "$repository" commit -qam second
second=$(git -C "$repository" rev-parse HEAD)
"$MLENV" lock own.yaml
cmp before.lock own.lock || fail "the lock moved"
sed -i 's/^python: .*/&\nenv: {A: b}/; s/subdirectory=python"/&, idna/' own.yaml
"$MLENV" lock own.yaml
grep -q "commit = \"$first\"" own.lock || fail "another package moved the branch"
equal "wheel" "$(grep '{ name = "tool".*requested' before.lock)" "$(grep '{ name = "tool".*requested' own.lock)"
"$MLENV" lock --upgrade tool own.yaml
grep -q "commit = \"$second\"" own.lock || fail "not upgraded: $(cat own.lock)"

note "a folder that changes"
sed -i 's/1/2/' libs/mylib/mylib/__init__.py
failing_with lock-outdated "$MLENV" --json build --locked own.yaml
grep -qF '`./libs/mylib` differs: `mylib` was built of' "$work/err" || fail "says: $(cat "$work/err")"
"$MLENV" lock own.yaml
[ "$image" != "$(build_digest own.yaml)" ] || fail "the same image"
"$MLENV" run own -- python -c 'import mylib, tool; assert mylib.VALUE == tool.VALUE == 2'

note "built again on another machine, by the commit alone"
base_store "$work/other"
rm -r "${XDG_CACHE_HOME:?}/mlenv/git"
equal "image" "$(build_digest own.yaml)" "$(MLENV_STORE=$work/other build_digest --locked own.yaml)"

note "for another platform too: wheels for every machine, of one commit"
two() { printf 'platforms: [linux/amd64, linux/arm64]\n' >>"$1.yaml"; }
cp own.lock one.lock
cp own.yaml one.yaml
two own
"$MLENV" lock own.yaml
python3 - own.lock one.lock <<'PYTHON'
import sys, tomllib
lock, one = (tomllib.load(open(name, "rb")) for name in sys.argv[1:])
other = lock["others"]["linux/arm64"]["packages"]
assert other["sources"] == lock["packages"]["sources"] == one["packages"]["sources"], other["sources"]
assert other["build-wheels"] == lock["packages"]["build-wheels"]
built = {source["name"] for source in other["sources"]}
wheels = lambda packages: [wheel for wheel in packages["wheels"] if wheel["name"] in built]
assert wheels(other) == wheels(lock["packages"]) == wheels(one["packages"]), wheels(other)
PYTHON
cp own.lock both.lock
"$MLENV" lock --upgrade own.yaml
cmp both.lock own.lock || fail "another lock, made anew"
printf '%s\n' 'name: elsewhere' 'base: debian:bookworm' 'platforms: [linux/arm64]' 'packages: ["mylib @ ./libs/mylib"]' >elsewhere.yaml
"$MLENV" lock elsewhere.yaml
[ "$(uname -m)" != x86_64 ] || ! grep -q '_amd64.deb"' elsewhere.lock || fail "packages of this machine in another's lock"
equal "the wheel of a lock for another machine alone" "$(grep -o 'file = "mylib-.*whl.*sha256[^,]*' one.lock)" "$(grep -o 'file = "mylib-.*whl.*sha256[^,]*' elsewhere.lock)"
mkdir libs/tied
cat >libs/tied/setup.py <<'PY'
from setuptools import setup
from setuptools.dist import Distribution
Distribution.has_ext_modules = lambda self: True
setup(name="tied", version="1")
PY
recipe_of tied 'packages: ["tied @ ./libs/tied"]'
two tied
failing_with unsatisfiable "$MLENV" --json lock tied.yaml
grep -q 'linux/arm64: `./libs/tied` has to be built on a linux/arm64 machine' "$work/err" || fail "says: $(cat "$work/err")"
mv one.lock own.lock
mv one.yaml own.yaml

note "the repository is gone, and the wheel at hand"
tar -C libs -czf "$work/served/mylib-0.1.tar.gz" --transform 's,^mylib,mylib-0.1,' mylib
recipe_of archive "packages: [\"mylib @ http://127.0.0.1:$files_port/mylib-0.1.tar.gz\"]"
"$MLENV" lock archive.yaml
"$MLENV" -q vendor archive.yaml >/dev/null
mv vendor "$work/disk"
ln -s "$work/disk" vendor
"$MLENV" -q vendor archive.yaml >/dev/null
ln -sfn "$PWD/libs" vendor
before=$(ls -A libs)
failing_with bad-output "$MLENV" --json vendor archive.yaml
equal "what others have there" "$before" "$(ls -A libs)"
rm vendor
mv "$work/disk" vendor
mv "$work/served" "$work/gone"
sed -i 's/^packages: \[/&"attrs", /' own.yaml
"$MLENV" lock own.yaml
grep -q "commit = \"$second\"" own.lock || fail "the commit: $(cat own.lock)"
"$MLENV" -q vendor own.yaml >/dev/null
mv "$MLENV_STORE" "$work/full"
base_store
sed -i 's/"attrs", //' own.yaml
"$MLENV" lock own.yaml

note "so is a server, whose archive was vendored"
cp archive.lock before.lock
# Of the cache, which other tests share, what this lock names alone.
grep -oE '[0-9a-f]{64}' before.lock | while read -r hex; do rm -f "$XDG_CACHE_HOME/mlenv/sources/$hex"; done
rm vendor/mylib-*.whl
sed -i 's/^packages: \[/&"attrs", /' archive.yaml
"$MLENV" lock archive.yaml
equal "its wheel" "$(grep 'name = "mylib".*whl' before.lock)" "$(grep 'name = "mylib".*whl' archive.lock)"
rm -r "${MLENV_STORE:?}" vendor
mv "$work/full" "$MLENV_STORE"
mv "$work/gone" "$work/served"

note "what wheels name by address, and versions that others want of it"
python3 - "http://127.0.0.1:$files_port" <<'PY'
import sys, zipfile
def write(folder, name, version, *lines):
    info = f"{name}-{version}.dist-info/"
    files = {name + ".py": "", info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             info + "METADATA": "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""])}
    files[info + "RECORD"] = "".join(f"{one},,\n" for one in [*files, info + "RECORD"])
    with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
        for one in files:
            wheel.writestr(one, files[one])
needed = f"mlenv-needed @ {sys.argv[1]}/mlenv_needed-1-py3-none-any.whl"
write("../served", "mlenv_needed", 1)
write("dist", "mlenv_needed", 2)
write("dist", "mlenv_asking", 1, "Requires-Dist: " + needed)
write("dist", "mlenv_choosing", 1, "Provides-Extra: fast", f"Requires-Dist: {needed} ; extra == 'fast'")
write("dist", "mlenv_indexed", 1, "Requires-Dist: mlenv-choosing[fast]")
write("dist", "mlenv_wanting", 1, "Requires-Dist: mlenv-needed>=2")
write("dist", "mlenv_other", 1, f"Requires-Dist: {needed.replace('/mlenv', '/other/mlenv')}")
write("dist", "mlenv_author", 1, "Requires-Dist: mlenv-needed @ git+file:///nonexistent/needed")
PY
listed() { # listed NAME LINE…: a recipe of these requirements, with the wheels of dist as an index
  recipe_of "$1" "requirements: $1.txt"
  printf '%s\n' --no-index '--find-links dist' "${@:2}" >"$1.txt"
}
says() { grep -qF "$1" "$work/err" || fail "says: $(cat "$work/err")"; }
asking='mlenv-asking @ ./dist/mlenv_asking-1-py3-none-any.whl'
listed extra mlenv-indexed 'mlenv-choosing @ ./dist/mlenv_choosing-1-py3-none-any.whl'
"$MLENV" lock extra.yaml
grep -q 'name = "mlenv-needed", version = "1", url = "http://' extra.lock || fail "the extra that an index's package asks for: $(cat extra.lock)"
echo 'mlenv-needed>=2' >two.txt
for other in mlenv-needed==2 '-c two.txt' mlenv-wanting; do
  listed clash "$asking" "$other"
  failing_with unsatisfiable "$MLENV" --json lock clash.yaml
  says "mlenv-needed\` is 1, from \`http://127.0.0.1:$files_port/mlenv_needed-1-py3-none-any.whl\`, where \`mlenv-asking\` asks for it"
  [ "$other" = mlenv-wanting ] || says "it asks for \`mlenv-needed"
done
listed clash "$asking" 'mlenv-other @ ./dist/mlenv_other-1-py3-none-any.whl'
failing_with unsatisfiable "$MLENV" --json lock clash.yaml
says '`mlenv-needed` is asked for at two addresses'
listed clash 'mlenv-author @ ./dist/mlenv_author-1-py3-none-any.whl'
failing_with unsatisfiable "$MLENV" --json lock clash.yaml
says "that repository is on its author's machine"

note "what cannot be had"
recipe_of absent "packages: [\"tool @ git+$url@mian#subdirectory=python\"]"
failing_with no-commit "$MLENV" --json lock absent.yaml
grep -qF 'did you mean `main`?' "$work/err" || fail "says: $(cat "$work/err")"
recipe_of nowhere "packages: [\"tool @ git+git://127.0.0.1:$(free_port)/tool\"]"
failing_with git-failed "$MLENV" --json lock nowhere.yaml
recipe_of top "packages: [\"tool @ git+$url\"]"
failing_with bad-source "$MLENV" --json lock top.yaml
recipe_of other "packages: [\"other @ ./dist/made-1-py3-none-any.whl\"]"
failing_with recipe-invalid "$MLENV" --json lock other.yaml
failing_with no-git env PATH="$work/none" "$MLENV" --json lock nowhere.yaml
verify_store
