#!/usr/bin/env bash
# mlenv build --imports and init --try: what an import needs that no file and no lock says is found, told with
# the line that mends it, kept with the image, and added by --try. With --long also real packages that do so.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# NAME, the text of its __init__.py, the module if that is called otherwise, and what the wheel requires
wheel() {
  python3 - "$work/wheels" "$1" "$2" "${3:-$1}" "${@:4}" <<'PY'
import base64, hashlib, sys, zipfile
folder, name, text, module, *requires = sys.argv[1:]
info = f'{name}-1.0.dist-info'
files = {f'{module}/__init__.py': text + '\n',
         f'{info}/METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n'
         + ''.join(f'Requires-Dist: {one}\n' for one in requires),
         f'{info}/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n'}
record = ''
for path, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b'=').decode()
    record += f'{path},sha256={digest},{len(content.encode())}\n'
files[f'{info}/RECORD'] = record + f'{info}/RECORD,,\n'
with zipfile.ZipFile(f'{folder}/{name}-1.0-py3-none-any.whl', 'w') as archive:
    for path, content in files.items():
        archive.writestr(path, content)
PY
}
mkdir "$work/wheels"
wheel mlenv_plain 'x = 1'
wheel mlenv_gomp 'import ctypes; ctypes.CDLL("libgomp.so.1")'
wheel mlenv_undeclared 'import idna'
wheel mlenv_driven 'import ctypes; ctypes.CDLL("libcuda.so.1")'
wheel mlenv_crashes 'import os; os.abort()'
wheel mlenv_exits 'import os; os._exit(0)'
wheel mlenv_another 'import mlenv_plain; assert mlenv_plain.x == 1'
# Two builds of one module, and who asks for either.
wheel mlenv_drawn 'kind = "whole"' mlenv_draw
wheel mlenv_drawn_headless 'kind = "headless"' mlenv_draw
wheel mlenv_shows 'import mlenv_draw' mlenv_shows mlenv_drawn
wheel mlenv_serves 'import mlenv_draw' mlenv_serves mlenv_drawn_headless
# Says for others what it can, and spoils what it can reach.
wheel mlenv_spoils 'import glob, os, signal
for fd in range(3, 256):
    try:
        os.write(fd, b"imported")
    except OSError:
        pass
for process in glob.glob("/proc/[0-9]*"):
    for fd in glob.glob(process + "/fd/[0-9]*"):
        try:
            with open(fd, "wb", buffering=0) as file:
                file.write(b"imported" * 100000)
        except OSError:
            pass
for file in glob.glob("/opt/venv/lib/*/site-packages/mlenv_*/__init__.py") + glob.glob("/opt/venv/bin/python*"):
    try:
        with open(file, "w") as out:
            out.write("x = 2")
    except OSError:
        pass
try:
    os.kill(-1, signal.SIGKILL)
except OSError:
    pass'
export UV_FIND_LINKS=$work/wheels
cd "$work"
base_tree

note "what sources load by name is known without a trial"
small_recipe recipe.yaml mlenv_gomp
"$MLENV" build -q >/dev/null
"$MLENV" check small >"$work/out" 2>&1 || true
grep -q 'library-missing' "$work/out" || fail "$(cat "$work/out")"
grep -qF 'system: [libgomp1]' "$work/out" || fail "$(cat "$work/out")"

note "all of it comes in"
small_recipe recipe.yaml mlenv_plain
"$MLENV" build --imports >digest 2>"$work/err" || fail "status $?: $(cat "$work/err")"
grep -qx 'imports: 1 succeeded, 0 failed' "$work/err" || fail "$(cat "$work/err")"

note "what does not is told, with its cause"
small_recipe recipe.yaml mlenv_plain mlenv_gomp mlenv_undeclared mlenv_driven mlenv_crashes
ends_with 3 "$MLENV" build --imports
grep -q '^sha256:' "$work/out" || fail "no digest: $(cat "$work/out")"
for line in 'imports: 1 succeeded, 3 failed' \
  "note: it needs an NVIDIA driver, which builds do not have: \`import mlenv_driven\`" \
  'error: 3 Python packages of `recipe.yaml` cannot be imported' \
  '`import mlenv_crashes` (mlenv-crashes 1.0): ended by SIGABRT' \
  '`import mlenv_gomp` (mlenv-gomp 1.0): OSError: libgomp.so.1: cannot open shared object file' \
  "\`import mlenv_undeclared\` (mlenv-undeclared 1.0): ModuleNotFoundError: No module named 'idna'" \
  'hint: add `system: [libgomp1]` and `packages: ["idna"]` to the recipe'; do
  grep -qF "$line" "$work/err" || fail "says nothing of \"$line\": $(cat "$work/err")"
done
failing_with imports-failed "$MLENV" --json build --imports
python3 "$root/tests/schema/check.py" <"$work/out" >"$work/met" || fail "$(cat "$work/out")"
equal "failures in JSON" 3 "$(jq '.imports.failed | length' "$work/out")"
equal "without a GPU" mlenv_driven "$(jq -r '.imports.without_gpu[].import' "$work/out")"

note "check knows it of the recipe and of the image, run says it once"
for subject in recipe.yaml small; do
  "$MLENV" check "$subject" >"$work/out" 2>&1 || true
  grep -q 'import-fails' "$work/out" || fail "check $subject: $(cat "$work/out")"
  grep -qF 'system: [libgomp1]' "$work/out" || fail "check $subject: $(cat "$work/out")"
done
"$MLENV" run --no-project small -- python -c 'import mlenv_plain' 2>"$work/err"
grep -q 'note: `import mlenv_crashes` failed when it was tried' "$work/err" || fail "run: $(cat "$work/err")"
"$MLENV" run --no-project small -- python -c 'import mlenv_plain' 2>"$work/err"
! grep -q 'failed when it was tried' "$work/err" || fail "it says so each time: $(cat "$work/err")"

note "each answers for itself alone"
small_recipe recipe.yaml mlenv_spoils mlenv_exits mlenv_plain mlenv_another
ends_with 3 "$MLENV" build --imports
for line in 'imports: 2 succeeded, 2 failed' \
  '`import mlenv_exits` (mlenv-exits 1.0): it ended Python with status 0' \
  '`import mlenv_spoils` (mlenv-spoils 1.0): '; do
  grep -qF "$line" "$work/err" || fail "says nothing of \"$line\": $(cat "$work/err")"
done

note "init --try adds it"
printf 'mlenv_plain\nmlenv_gomp\nmlenv_undeclared\n' >requirements.txt
"$MLENV" init --force --from requirements.txt --try >"$work/out" 2>"$work/err" || fail "status $?: $(cat "$work/err")"
grep -qF 'added `libgomp1` to `system`' "$work/err" || fail "$(cat "$work/err")"
grep -qF 'added `idna` to `packages`' "$work/err" || fail "$(cat "$work/err")"
"$MLENV" build --imports -q >/dev/null || fail "the recipe still lacks something: $(cat recipe.yaml)"

note "of two packages that bring the same files it leaves one out"
printf 'mlenv_shows\nmlenv_serves\n' >requirements.txt
"$MLENV" init --force --from requirements.txt --try >"$work/out" 2>"$work/err" || fail "status $?: $(cat "$work/err")"
grep -qF 'two wheels put different files at `/opt/venv/' "$work/err" || fail "$(cat "$work/err")"
grep -qxF 'exclude: ["mlenv-drawn"]' recipe.yaml || fail "$(cat recipe.yaml)"
equal "the one that stays" headless "$("$MLENV" run --no-project recipe.yaml -- python -c 'import mlenv_draw; print(mlenv_draw.kind)')"

note "and where nothing helps, says so and leaves the recipe"
echo mlenv_crashes >requirements.txt
ends_with 3 "$MLENV" init --force --from requirements.txt --try
grep -qF '`import mlenv_crashes` (mlenv-crashes 1.0): ended by SIGABRT' "$work/err" || fail "$(cat "$work/err")"
cp recipe.yaml tried.yaml
"$MLENV" init --force --from requirements.txt >/dev/null 2>&1
cmp recipe.yaml tried.yaml || fail "the recipe that could not be mended was changed"

note "what the project's sources import, which are read and not run"
mkdir project && cd project
echo mlenv_plain >requirements.txt
echo 'y = 1' >helpers.py
cat >train.py <<'PY'
import os
import idna
from mlenv_plain import x
from helpers import y
import mlenv_nowhere
try:
    import mlenv_guarded
except ImportError:
    pass
raise SystemExit(9)
PY
"$MLENV" init --from requirements.txt --try >"$work/out" 2>"$work/err" || fail "status $?: $(cat "$work/err")"
grep -qF 'added `idna` to `packages`' "$work/err" || fail "$(cat "$work/err")"
grep -qF 'note: `import mlenv_nowhere` (train.py:5)' "$work/err" || fail "$(cat "$work/err")"
! grep -q 'mlenv_guarded\|helpers' "$work/err" || fail "$(cat "$work/err")"
echo 'from mlenv_plain import gone' >broken.py
ends_with 3 "$MLENV" init --force --from requirements.txt --try
grep -qF '`import mlenv_plain` (broken.py:1): ImportError: cannot import name' "$work/err" || fail "$(cat "$work/err")"
cd ..
verify_store

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "packages that do so"
  unset UV_FIND_LINKS
  printf 'lightgbm\nopencv-python\nsoundfile\nsounddevice\n' >requirements.txt
  "$MLENV" init --force --from requirements.txt --try >"$work/out" 2>"$work/err" || fail "status $?: $(cat "$work/err")"
  cat "$work/err"
fi
