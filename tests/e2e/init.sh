#!/usr/bin/env bash
# mlenv init: what it writes for a framework, and makes of a Dockerfile, locks on this machine's indexes; a
# recipe that is there stays unless told.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir "$work/Speech Lab"
cd "$work/Speech Lab"
frameworks=(jax)
if [ "$MLENV_TEST_LONG" = 1 ]; then frameworks=(jax tensorflow pytorch 'pytorch>=2.9' scikit-learn); fi
for framework in "${frameworks[@]}"; do
  note "$framework"
  equal "answer" recipe.yaml "$("$MLENV" init --force --framework "$framework" 2>"$work/err")"
  grep -qx 'name: speech-lab' recipe.yaml || fail "no name of the folder: $(cat recipe.yaml)"
  "$MLENV" lock 2>"$work/err" || fail "no lock: $(cat "$work/err" recipe.yaml)"
  grep -q '\.whl"' recipe.lock || fail "no wheels in the lock"
  rm recipe.lock
done

note "what is there stays"
cp recipe.yaml "$work/kept"
failing_with recipe-exists "$MLENV" --json init --framework pytorch
cmp "$work/kept" recipe.yaml

note "from a Dockerfile, which another recipe's folder holds"
cp -r "$root/tests/golden/init-dockerfile.d" docker
"$MLENV" init --from docker/Dockerfile --recipe train.yaml 2>"$work/err"
grep -q 'not carried over: docker/Dockerfile:19: `curl' "$work/err" || fail "says: $(cat "$work/err")"
grep -qx '  docker/src: /app/src' train.yaml || fail "files: $(cat train.yaml)"
grep -q 'note: docker/requirements.txt:6: .*repository' "$work/err" || fail "says: $(cat "$work/err")"
sed -i '/tool @ git/d' train.yaml  # nobody has that repository
if grep -q secret train.yaml "$work/err"; then fail "a login was copied"; fi
"$MLENV" lock train.yaml 2>"$work/err" || fail "no lock: $(cat "$work/err" train.yaml)"
grep -q 'name = "torch", version = "2.4.0"' train.lock || fail "another torch: $(grep torch train.lock)"

note "a project's folder: its Dockerfile copies one file twice, its list is UTF-16, its name is in setup.py"
mkdir project
printf '\xff\xfei\0d\0n\0a\0\r\0\n\0' >project/requirements.txt
echo 'from setuptools import setup; setup(name="lab_tool", version="1", py_modules=["lab_tool"])' >project/setup.py
echo 'import idna; print("has", idna.__name__)' >project/lab_tool.py
cat >project/Dockerfile <<'END'
FROM debian:bookworm
WORKDIR /app
COPY requirements.txt .
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install -r requirements.txt
COPY . .
CMD ["/opt/venv/bin/python", "lab_tool.py"]
END
cd project
equal "answer" recipe.yaml "$("$MLENV" init --from 2>"$work/err")"
grep -qx '  ".": /app' recipe.yaml || fail "files: $(cat recipe.yaml)"
"$MLENV" lock 2>"$work/err" || fail "no lock: $(cat "$work/err" recipe.yaml)"
equal "run" "has idna" "$("$MLENV" run --no-project recipe.yaml 2>"$work/err")"
