#!/usr/bin/env bash
# How packages are chosen: each key of a recipe at work in a lock, over small indexes of the test's own; the same
# from pyproject.toml and requirements.txt; and what this machine's variables say counts for nothing.
# shellcheck disable=SC2016  # backticks in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3
base_tree
cd "$work"

python3 - <<'PYTHON'
import hashlib, io, os, tarfile, zipfile

def metadata(name, version, requires=()):
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {one}\n" for one in requires)

def wheel(folder, name, version, requires=()):
    file, info = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info/"
    files = {f"{file}.py": "VALUE = 1\n", info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             info + "METADATA": metadata(name, version, requires)}
    files[info + "RECORD"] = "".join(f"{one},,\n" for one in [*files, info + "RECORD"])
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(f"{folder}/{file}-{version}-py3-none-any.whl", "w") as archive:
        for one in files:
            archive.writestr(zipfile.ZipInfo(one, (2020, 1, 1, 0, 0, 0)), files[one])

# Built by a backend of its own: no tool is needed.
BACKEND = '''
import zipfile
def build_wheel(folder, settings=None, metadata=None):
    name, version = "NAME", "VERSION"
    info = f"{name}-{version}.dist-info/"
    files = {name + ".py": "BUILT = 1\\n", info + "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
             info + "METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"}
    files[info + "RECORD"] = "".join(one + ",,\\n" for one in [*files, info + "RECORD"])
    file = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + file, "w") as wheel:
        for one in files:
            wheel.writestr(zipfile.ZipInfo(one, (2020, 1, 1, 0, 0, 0)), files[one])
    return file
'''

def source(folder, name, version):
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(f"{folder}/{name}-{version}.tar.gz", "w:gz") as archive:
        for file, text in {"PKG-INFO": metadata(name, version),
                           "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
                           "backend.py": BACKEND.replace("NAME", name).replace("VERSION", version)}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{file}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))

def in_main(make, name, *rest):
    make(f"served/main/{name}", name, *rest)

for name, version, *requires in (("app", "1", "lib<2", "heavy"), ("lib", "1"), ("lib", "2"), ("heavy", "1"), ("twin", "1"),
                                 ("fresh", "1"), ("early", "1"), ("early", "2rc1"), ("special", "1"), ("special", "9"),
                                 ("user", "1", "special"), ("boost", "1", "nvidia-nccl-cu12"), ("nvidia-nccl-cu12", "2.1")):
    in_main(wheel, name, version, requires)
for name, version in (("twin", "1"), ("fresh", "2"), ("bare", "1")):
    in_main(source, name, version)
wheel("served/own/special", "special", "5+own", ["lib"])
wheel("served/own/lib", "lib", "7")
wheel("served/next/special", "special", "6+own", ["lib"])
wheel("folder", "paged", "3")
for root in ("main", "own", "next"):
    for name in os.listdir(f"served/{root}"):
        folder = f"served/{root}/{name}"
        links = [f'<a href="{file}#sha256={hashlib.sha256(open(f"{folder}/{file}", "rb").read()).hexdigest()}">{file}</a>'
                 for file in sorted(os.listdir(folder))]
        open(f"{folder}/index.html", "w").write("<!DOCTYPE html>\n" + "\n".join(links))
PYTHON
port=$(free_port)
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
start "$work/index.log" python3 -m http.server "$port" --bind 127.0.0.1 --directory served
url=http://127.0.0.1:$port
wait_until 20 python3 -c "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('$url')"

recipe() { # recipe NAME: with the lines of standard input
  { printf 'name: %s\nbase: debian:bookworm\npython: "3.11"\nsources: {pypi: "%s/main"}\n' "$1" "$url" && cat; } >"$1.yaml"
}
wheels() { # wheels NAME: `name version …` of its lock
  sed -n '/^wheels/,/^]/ s/^  { name = "\([^"]*\)", version = "\([^"]*\)".*/\1 \2/p' "$1.lock" | paste -sd' '
}
locks() { # locks NAME WHEELS: the recipe on standard input
  recipe "$1"
  "$MLENV" -q lock "$1.yaml" || fail "$1: no lock"
  equal "wheels of $1" "$2" "$(wheels "$1")"
}
refused() { # refused STATUS TEXT COMMAND…
  ends_with "$1" "${@:3}"
  grep -qF "$2" "$work/err" || fail "says: $(cat "$work/err")"
}

note "overrides, exclude, constraints"
locks plain 'app 1 heavy 1 lib 1' <<<'packages: [app]'
grep -qx 'revision = 1' plain.lock || fail "$(head -5 plain.lock)"
locks steered 'app 1 lib 2' <<<'packages: [app]
overrides: ["lib>=2"]
exclude: [heavy]'
grep -qx 'revision = 3' steered.lock || fail "$(head -5 steered.lock)"
grep -qx 'overrides = \["lib>=2"\]' steered.lock || fail "$(cat steered.lock)"
cp steered.lock before.lock
"$MLENV" -q lock --upgrade steered.yaml
cmp before.lock steered.lock || fail "another lock"
sed -i 's/heavy/light/' steered.yaml
refused 3 'requested exclude: heavy → light' "$MLENV" lock --locked steered.yaml
echo 'early<2rc0' >limits.txt
locks limited 'early 1 lib 1' <<<'packages: [early, lib]
prerelease: allow
constraints: ["lib<2", limits.txt]'

note "pre-releases"
locks late 'early 1' <<<'packages: [early]'
locks first 'early 2rc1' <<<'packages: [early]
prerelease: allow'

note "sources and wheels"
locks newest 'fresh 2' <<<'packages: [fresh]'
grep -q '^  { name = "fresh", .*file = "fresh-2.tar.gz"' newest.lock || fail "$(cat newest.lock)"
locks preferring 'bare 1 fresh 1' <<<'packages: [fresh, bare]
prefer-binary: ":all:"'
locks wheel 'fresh 1' <<<'packages: [fresh]
only-binary: [fresh]'
locks source 'twin 1' <<<'packages: [twin]
no-binary: [twin]'
grep -q '^  { name = "twin", .*file = "twin-1.tar.gz"' source.lock || fail "$(cat source.lock)"
recipe neither <<<'packages: [bare]
only-binary: [bare]'
ends_with 3 "$MLENV" lock neither.yaml
recipe none <<<'packages: [lib]
no-binary: [lib]'
refused 3 '`no-binary` leaves its wheels out' "$MLENV" lock none.yaml

note "indexes by package, also where others ask for it"
locks own 'lib 2 paged 3 special 5+own user 1' <<<"packages: [user, paged, lib]
index: {special: $url/own, paged: {find-links: folder}}"
if grep -q -e 127.0.0.1 -e "$work" own.lock; then fail "the lock says where: $(cat own.lock)"; fi
cp own.lock before.lock
"$MLENV" -q lock --upgrade own.yaml
cmp before.lock own.lock || fail "another lock"
hex=$(sed -n 's/^  { name = "special", .*sha256 = "\([0-9a-f]*\)".*/\1/p' own.lock)
rm "$XDG_CACHE_HOME/mlenv/locations/$hex"
"$MLENV" -q build own.yaml
sed -i "s,$url/own,$url/next," own.yaml
refused 3 'requested index of special' "$MLENV" lock --locked own.yaml
"$MLENV" -q lock own.yaml
equal "wheels of another index" 'lib 2 paged 3 special 6+own user 1' "$(wheels own)"
sed -i 's/find-links: folder/find-links: none/' own.yaml
refused 2 'own.yaml:6:' "$MLENV" lock own.yaml

note "metadata"
locks stated 'app 1 lib 2' <<<'packages: [app]
dependency-metadata: [{name: app, version: "1", requires-dist: ["lib>=2"]}]'

note "the same in pyproject.toml and requirements.txt"
cat >pyproject.toml <<TOML
[project]
name = "demo"
dependencies = ["app", "special", "fresh", "early"]
[tool.uv]
override-dependencies = ["lib>=2"]
exclude-dependencies = ["heavy"]
no-build-package = ["fresh"]
prerelease = "allow"
conflicts = []
[tool.uv.sources]
special = [{ index = "own", marker = "sys_platform == 'linux'" }, { index = "other", marker = "sys_platform == 'win32'" }]
[[tool.uv.index]]
name = "own"
url = "$url/own"
explicit = true
TOML
recipe project <<<'requirements: pyproject.toml'
"$MLENV" lock project.yaml 2>err
equal "wheels of project" 'app 1 early 2rc1 fresh 1 lib 2 special 5+own' "$(wheels project)"
grep -qF 'pyproject.toml:9: `conflicts` do not count' err || fail "says: $(cat err)"
printf -- '--pre\n--only-binary fresh\nearly\nfresh\ntwin --config-settings a=b\n--no-binary=twin\n' >requirements.txt
locks lines 'early 2rc1 fresh 1 twin 1' <<<'requirements: requirements.txt'
grep -qx '\[request.steering.build.config-settings-package.twin\]' lines.lock || fail "$(cat lines.lock)"

note "what this machine says"
mkdir -p settings/uv
printf 'prerelease = "allow"\nno-build-package = ["fresh"]\n' >settings/uv/uv.toml
echo 'lib<2' >machine.txt
recipe alone <<<'packages: [early, lib, fresh]'
env XDG_CONFIG_HOME="$work/settings" UV_CONSTRAINT="$work/machine.txt" PIP_CONSTRAINT="$work/machine.txt" \
  "$MLENV" lock alone.yaml 2>err
equal "wheels for every machine" 'early 1 fresh 2 lib 2' "$(wheels alone)"
equal "notes" 1 "$(grep -c '^note: ' err)"
grep -q '^note: .*`UV_CONSTRAINT`, `PIP_CONSTRAINT`, .*`constraints`, `only-binary`, `prerelease`$' err || fail "says: $(cat err)"

note "NVIDIA's packages under cuda: cpu"
recipe boost <<<'packages: [boost]
cuda: cpu'
"$MLENV" lock boost.yaml 2>err
grep -qF 'note: `cuda: cpu`, and yet the lock holds nvidia-nccl-cu12 (0 MB), which boost asks for: `exclude: [nvidia-nccl-cu12]` leaves it out' err ||
  fail "says: $(cat err)"
locks light 'boost 1' <<<'packages: [boost]
cuda: cpu
exclude: [nvidia-nccl-cu12]'
