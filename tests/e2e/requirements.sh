#!/usr/bin/env bash
# `requirements`: packages of requirements.txt, pyproject.toml, pylock.toml and uv.lock are locked in the
# versions and with the hashes that those files give; a lock knows when they ask for something else.
# shellcheck disable=SC2016  # backticks in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

cd "$work"
recipe_of() { # recipe_of NAME REQUIREMENTS
  printf 'name: %s\nbase: debian:bookworm\npython: "3.11"\nrequirements: %s\n' "$1" "$2" >"$1.yaml"
}
wheels() { # wheels NAME: `name version …` of its lock
  sed -n '/^wheels/,$ s/^  { name = "\([^"]*\)", version = "\([^"]*\)".*/\1 \2/p' "$1.lock" | paste -sd' '
}
refused() { # refused STATUS TEXT COMMAND…
  local status=0
  "${@:3}" 2>"$work/err" || status=$?
  equal "exit status of ${*:3}" "$1" "$status"
  grep -qF "$2" "$work/err" || fail "says: $(cat "$work/err")"
}

note "requirements.txt and what it includes"
mkdir req
printf 'packaging>=24  # comment\n-r req/more.txt\nnever ; sys_platform == "win32"\n' >requirements.txt
printf 'attrs\n-c ../limits.txt\n' >req/more.txt
printf 'attrs<24\npackaging!=26.0\nidna<1\n' >limits.txt
recipe_of lines requirements.txt
"$MLENV" lock lines.yaml
[[ $(wheels lines) =~ ^attrs\ 23\.2\.0\ packaging\ 2[0-9.]+$ ]] || fail "locked: $(wheels lines)"
grep -qx 'revision = 2' lines.lock || fail "another revision"

note "a lock knows what was asked for"
printf '# the same\nattrs\n-c ../limits.txt\n' >req/more.txt
equal "lock" "$(cat lines.lock)" "$("$MLENV" lock lines.yaml >&2 && cat lines.lock)"
printf 'attrs<23.2\n-c ../limits.txt\n' >req/more.txt
refused 3 'requirement attrs: attrs → attrs<23.2' "$MLENV" build --locked lines.yaml
printf 'attrs>=24\n-c ../limits.txt\n' >req/more.txt
refused 3 'limits.txt:1:1: it asks for `attrs<24`' "$MLENV" lock lines.yaml
grep -qF 'req/more.txt:1:1: it asks for `attrs>=24`' err || fail "says: $(cat err)"

note "hashes"
file=$(sed -n 's/.*name = "attrs".*sha256 = "\([0-9a-f]*\)".*/\1/p' lines.lock)
printf 'attrs==23.2.0 --hash=sha256:%s\n' "$file" >right.txt
recipe_of right '[right.txt]'
"$MLENV" lock right.yaml
printf 'attrs==23.2.0 \\\n  --hash=sha256:%064d\n' 7 >wrong.txt
recipe_of wrong '[wrong.txt]'
refused 1 'the Python index has other bytes of `attrs` 23.2.0 than `wrong.txt` promises' "$MLENV" lock wrong.yaml
failing_with hash-mismatch "$MLENV" --json lock wrong.yaml
grep -qF "has sha256 $file" err || fail "says: $(cat err)"

note "where the file says that packages are"
mkdir -p req/wheels
python3 - req/wheels <<'PYTHON'
import sys, zipfile
info = "mlenv_made-1.dist-info/"
files = {"mlenv_made.py": "VALUE = 1\n", info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         info + "METADATA": "Metadata-Version: 2.1\nName: mlenv-made\nVersion: 1\nRequires-Dist: idna\n"}
files[info + "RECORD"] = "".join(f"{one},,\n" for one in [*files, info + "RECORD"])
with zipfile.ZipFile(sys.argv[1] + "/mlenv_made-1-py3-none-any.whl", "w") as wheel:
    for one in files:
        wheel.writestr(one, files[one])
PYTHON
printf -- '--find-links wheels\nmlenv-made\n' >req/own.txt
recipe_of own '[req/own.txt]'
"$MLENV" lock own.yaml
[[ $(wheels own) =~ ^idna\ [0-9.]+\ mlenv-made\ 1$ ]] || fail "locked: $(wheels own)"
if grep -qF -e "$work" -e find-links own.lock; then fail "the lock says where: $(cat own.lock)"; fi
port=$(free_port)
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
start "$work/wheels.log" python3 -m http.server "$port" --bind 127.0.0.1 --directory req/wheels
wait_until 20 python3 -c "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:$port')"
printf -- '--find-links http://127.0.0.1:%s/\nmlenv-made\n' "$port" >req/own.txt
cp own.lock before.lock
"$MLENV" lock --upgrade own.yaml
cmp before.lock own.lock || fail "another lock: $(diff before.lock own.lock)"
printf -- '--no-index\n--find-links wheels\nmlenv-made\n' >req/own.txt
refused 3 'idna' "$MLENV" lock --upgrade own.yaml

printf -- '--find-links "my wheels"\nmlenv-made\n' >req/own.txt
refused 2 'req/own.txt:1:14: `my wheels`, where packages are looked for, does not exist' "$MLENV" lock --upgrade own.yaml
"$MLENV" lock --locked own.yaml
mv req/wheels 'req/my wheels'
"$MLENV" lock --upgrade own.yaml
cmp before.lock own.lock || fail "another lock: $(diff before.lock own.lock)"
mkdir -p 'req/my wheels/simple/mlenv-alone'
python3 - 'req/my wheels/simple/mlenv-alone' <<'PYTHON'
import hashlib, sys, zipfile
info = "mlenv_alone-1.dist-info/"
files = {"mlenv_alone.py": "", info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         info + "METADATA": "Metadata-Version: 2.1\nName: mlenv-alone\nVersion: 1\n"}
files[info + "RECORD"] = "".join(f"{one},,\n" for one in [*files, info + "RECORD"])
name = "mlenv_alone-1-py3-none-any.whl"
with zipfile.ZipFile(f"{sys.argv[1]}/{name}", "w") as wheel:
    for one in files:
        wheel.writestr(one, files[one])
digest = hashlib.sha256(open(f"{sys.argv[1]}/{name}", "rb").read()).hexdigest()
open(sys.argv[1] + "/index.html", "w").write(f'<a href="{name}#sha256={digest}">{name}</a>')
PYTHON
port=$(free_port)
start "$work/index.log" python3 -m http.server "$port" --bind 127.0.0.1 --directory 'req/my wheels'
wait_until 20 python3 -c "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:$port')"
printf -- 'mlenv-alone\n--index-url http://127.0.0.1:%s/simple\n' "$port" >alone.txt
recipe_of alone '[alone.txt]'
"$MLENV" lock alone.yaml
equal "wheels of that index" "mlenv-alone 1" "$(wheels alone)"
printf -- '-r alone.txt\n--index-url http://127.0.0.1:%s/other\n' "$port" >other.txt
recipe_of other '[other.txt]'
refused 2 'alone.txt:2:13: there is one default index, and other.txt:2 names another' "$MLENV" lock other.yaml
recipe_of secret '[secret.txt]'
echo '--index-url https://me:secret@h.example/simple' >secret.txt
refused 2 'https://***@h.example/simple' "$MLENV" lock secret.yaml

note "pyproject.toml, and what uv locked of it"
cat >pyproject.toml <<'TOML'
[project]
name = "demo"
version = "0.1"
requires-python = ">=3.10"
dependencies = ["python-dateutil<2.9"]
[project.optional-dependencies]
net = ["idna<3.5"]
[dependency-groups]
dev = ["attrs<23", "colorama<0.4.5 ; sys_platform != 'linux'"]
TOML
recipe_of project 'pyproject.toml'
"$MLENV" lock project.yaml
[[ $(wheels project) =~ ^python-dateutil\ 2\.8\.2\ six\ 1\.[0-9.]+$ ]] || fail "locked: $(wheels project)"
printf -- '--require-hashes\npython-dateutil==2.8.2 --hash=sha256:%s\n' \
  "$(sed -n 's/.*name = "python-dateutil".*sha256 = "\([0-9a-f]*\)".*/\1/p' project.lock)" >all.txt
recipe_of all all.txt
refused 3 'is needed, and no hash of it is given' "$MLENV" lock all.yaml
failing_with no-hash "$MLENV" --json lock all.yaml
echo 'attrs=1' >bad.txt
recipe_of bad bad.txt
failing_with requirements-invalid "$MLENV" --json lock bad.yaml
uv=$(uv_program)
"$uv" lock -q --upgrade-package 'six<1.16' -P 'idna==3.3' 2>/dev/null || "$uv" lock -q
locked=$(awk '/^name = "(six|idna)"/ {gsub(/"/, "", $3); name = $3} /^version/ && name {gsub(/"/, "", $3); printf "%s %s ", name, $3; name = ""}' uv.lock)
recipe_of uvlock '{file: uv.lock, extras: [net], groups: [dev]}'
"$MLENV" lock uvlock.yaml
equal "versions of uv.lock" "${locked% }" "$(wheels uvlock | grep -oE '(idna|six) [^ ]+' | paste -sd' ')"
[[ $(wheels uvlock) == attrs\ 22.*python-dateutil\ 2.8.2* ]] || fail "locked: $(wheels uvlock)"

note "a uv on PATH is asked once whether it suits, and again when it is another file; a script each time"
cp "$uv" "$programs/uv"
asked_with() { XDG_CACHE_HOME=$work/uvs PATH=$programs:$PATH "$MLENV" lock uvlock.yaml --upgrade; }
notes() { find uvs/mlenv/uv/suits -type f 2>/dev/null | wc -l; }
asked_with && asked_with
equal "notes" 1 "$(notes)"
touch "$programs/uv"
asked_with
equal "notes of two files" 2 "$(notes)"
printf '#!/bin/sh\necho "$1" >>"%s"\nexec "%s" "$@"\n' "$work/asked" "$(realpath "$uv")" >"$programs/uv.new"
chmod +x "$programs/uv.new"
mv "$programs/uv.new" "$programs/uv"
asked_with && asked_with
equal "times asked for its version" 2 "$(grep -c -e --version asked)"
equal "notes with a script" 2 "$(notes)"

note "pylock.toml"
"$uv" pip compile -q --python-version 3.11 --format pylock.toml -o pylock.toml pyproject.toml >/dev/null
recipe_of pylock '[pylock.toml]'
"$MLENV" lock pylock.yaml
equal "wheels" "$(wheels project)" "$(wheels pylock)"
sed -i 's/sha256 = "[0-9a-f]\{8\}/sha256 = "00000000/' pylock.toml
refused 1 'than `pylock.toml` promises' "$MLENV" lock pylock.yaml

note "Python"
sed -i 's/>=3.10/>=3.12/' pyproject.toml
refused 3 'wants >=3.12' "$MLENV" lock project.yaml
