#!/usr/bin/env bash
# Packages without a wheel: built in the sandbox from their source, locked with what built them, built
# again elsewhere to the same bytes, or one error.
# shellcheck disable=SC2016  # backticks in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3

base_tree
cd "$work"
recipe_of() { printf 'name: %s\nbase: debian:bookworm\npython: "3.11"\npackages: [%s]\n' "$1" "$2" >"$1.yaml"; }
refused() { # refused STATUS TEXT COMMAND…
  local status=0
  "${@:3}" 2>"$work/err" || status=$?
  equal "exit status of ${*:3}" "$1" "$status"
  grep -qF "$2" "$work/err" || fail "says: $(cat "$work/err")"
}
# sdist NAME BACKEND: version 1 of NAME on an index of this test, built by a backend that is part of it.
sdist() {
  mkdir -p "src/$1-1" "index/$1"
  printf '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n' >"src/$1-1/pyproject.toml"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: 1\n' "$1" >"src/$1-1/PKG-INFO"
  { printf 'NAME = "%s"\n' "$1"; cat; } >"src/$1-1/own.py"
  tar -C src -czf "index/$1/$1-1.tar.gz" "$1-1"
  link_to_source "$1"
}
link_to_source() {
  printf '<a href="%s-1.tar.gz#sha256=%s">%s-1.tar.gz</a>\n' "$1" \
    "$(sha256sum "index/$1/$1-1.tar.gz" | cut -d' ' -f1)" "$1" >"index/$1/index.html"
}
backend='
import os, socket, sys, zipfile
def build_wheel(out, config_settings=None, metadata_directory=None):
    name = f"{NAME}-1-py3-none-any.whl"
    info = f"{NAME}-1.dist-info/"
    files = {f"{NAME}.py": module(), info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             info + "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1\nRequires-Dist: six\n"}
    files[info + "RECORD"] = "".join(f"{one},,\n" for one in [*files, info + "RECORD"])
    with zipfile.ZipFile(os.path.join(out, name), "w") as wheel:
        for one in sorted(files):
            wheel.writestr(zipfile.ZipInfo(one), files[one])
    return name
'
sdist good <<<"$backend"'
def module():
    try:
        socket.create_connection(("192.0.2.1", 80), 2)
    except OSError as error:
        return f"about = {(sys.version_info[:2], os.getcwd(), dict(os.environ), error.errno)!r}\n"
    sys.exit("there is a network")
'
sdist random <<<"$backend"'
def module():
    return f"value = {os.urandom(8)!r}\n"
'
sdist linked <<<'"never run"'
sdist broken <<<'import sys; sys.exit("the compiler is on strike")'
export UV_INDEX=file://$work/index

note "a source of this test's own"
recipe_of good 'good'
"$MLENV" lock good.yaml
grep -q '^  { name = "good", version = "1", file = "good-1.tar.gz".*, built-with = \[\] },$' good.lock || fail "lock: $(cat good.lock)"
grep -q 'name = "six"' good.lock || fail "what the built wheel needs is not locked"
image=$(build_digest good.yaml)
"$MLENV" run good -- python -c 'import good; assert good.about[0] == (3, 11) and good.about[1] == "/srv/src", good.about'

note "built again where there is neither wheel nor layer"
mkdir other
base_store "$work/other/store"
(umask 077 && cd / && MLENV_STORE=$work/other/store TZ=Asia/Tokyo "$MLENV" build --locked "$work/good.yaml") >other/digest
equal "image" "$image" "$(tail -n 1 other/digest)"

note "a build that is not reproducible"
recipe_of random 'random'
"$MLENV" lock random.yaml
refused 1 'is not the one of the lock' env MLENV_STORE="$work/other/store" "$MLENV" build random.yaml
failing_with wheel-differs env MLENV_STORE="$work/other/store" "$MLENV" --json build random.yaml

note "a build that fails"
recipe_of broken 'broken'
refused 1 'the compiler is on strike' "$MLENV" lock broken.yaml
failing_with build-failed "$MLENV" --json lock broken.yaml
ln -s /etc/passwd src/linked-1/link
tar -C src -czf index/linked/linked-1.tar.gz linked-1
link_to_source linked
recipe_of linked 'linked'
failing_with bad-source "$MLENV" --json lock linked.yaml

note "a source with build requirements, of the machine's index"
recipe_of docopt 'docopt==0.6.2'
"$MLENV" lock docopt.yaml
grep -q 'file = "docopt-0.6.2.tar.gz".*built-with = \["setuptools-' docopt.lock || fail "lock: $(cat docopt.lock)"
build_digest docopt.yaml >/dev/null
"$MLENV" run docopt -- python -c 'import docopt, importlib.util; assert not importlib.util.find_spec("setuptools")'
verify_store
[ "$MLENV_TEST_LONG" = 1 ] || exit 0
equal "image again" "$(build_digest docopt.yaml)" "$(MLENV_STORE=$work/other/store build_digest --locked docopt.yaml)"
