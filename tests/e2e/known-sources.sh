#!/usr/bin/env bash
# Sources that people ask about: each is locked by the hints that its builds give, line by line, built once
# and found again, and imported, or the reason is told why it cannot be. With --long, horovod as well (three minutes of C++) and
# flash-attn without its CUDA part, beside a PyTorch of 3 GB.
# shellcheck disable=SC2016  # backticks in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need git

base_tree
cd "$work"
start() { # start NAME LINE…: a recipe
  name=$1
  printf 'name: %s\nbase: debian:bookworm\npython: "3.11"\n' "$name" >"$name.yaml"
  printf '%s\n' "${@:2}" >>"$name.yaml"
}
says() { # says HINT: locking fails, and this line mends it
  local status=0
  "$MLENV" lock "$name.yaml" 2>"$work/err" || status=$?
  equal "exit status of locking $name" 1 "$status"
  grep '^hint: ' "$work/err" | grep -qF "$1" || fail "$name says: $(cat "$work/err")"
}
locks() { # locks VERSION: it is in the lock; a second lock, which starts anew, builds nothing
  "$MLENV" lock "$name.yaml" 2>"$work/progress" || fail "$name: $(cat "$work/progress")"
  grep -qF "$1" "$name.lock" || fail "no $1 in $(cat "$name.lock")"
  cp "$name.lock" first.lock
  rm "$name.lock"
  "$MLENV" lock "$name.yaml" 2>"$work/progress"
  ! grep -q '^build ' "$work/progress" || fail "$name is built again: $(cat "$work/progress")"
  cmp first.lock "$name.lock" || fail "another lock of $name"
}
imports() { "$MLENV" -q build --imports "$name.yaml" >/dev/null 2>"$work/err" || fail "$name: $(cat "$work/err")"; }
fails_importing() { # fails_importing REASON
  local status=0
  "$MLENV" -q build --imports "$name.yaml" >/dev/null 2>"$work/err" || status=$?
  equal "exit status of importing $name" 3 "$status"
  grep -qF "$1" "$work/err" || fail "$name: $(cat "$work/err")"
}

note "wget 3.2, packed as a zip"
start wget 'packages: [wget==3.2]'
locks 'name = "wget", version = "3.2"'
imports

note "gym 0.21, for older build tools"
start gym 'packages: [gym==0.21.0]'
says 'setuptools<66'
start gym 'packages: [gym==0.21.0]' 'build: {constraints: ["setuptools<66", "wheel<0.38"]}'
locks 'name = "gym", version = "0.21.0"'
fails_importing 'hint: add `system: [python3-distutils]` to the recipe'
printf 'system: [python3-distutils]\n' >>gym.yaml
"$MLENV" -q lock gym.yaml
imports

note "mpi4py, against the base's MPI"
start mpi4py 'packages: [mpi4py==3.1.6]' 'no-binary: [mpi4py]'
says 'setuptools<81'
start mpi4py 'packages: [mpi4py==3.1.6]' 'no-binary: [mpi4py]' 'build: {constraints: ["setuptools<81"]}'
says 'system: [build-essential, python3-dev, libopenmpi-dev]'
printf 'system: [build-essential, python3-dev, libopenmpi-dev]\n' >>mpi4py.yaml
locks 'name = "mpi4py", version = "3.1.6"'
imports
"$MLENV" -q run mpi4py.yaml -- python -c 'import mpi4py.MPI as m; print(m.Get_library_version())' </dev/null >out
grep -q 'Open MPI' out || fail "another MPI: $(cat out)"

note "a repository that compiles against NumPy and does not say so"
mkdir -p det-like/det
printf 'VERSION = "1"\n' >det-like/det/__init__.py
cat >det-like/setup.py <<'PYTHON'
import numpy
from setuptools import Extension, setup
setup(name="det-like", version="0.6", packages=["det"], install_requires=["numpy<2"],
      ext_modules=[Extension("det.native", ["native.c"], include_dirs=[numpy.get_include()])])
PYTHON
cat >det-like/native.c <<'C'
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <numpy/arrayobject.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", 0, -1, 0};
PyMODINIT_FUNC PyInit_native(void) { import_array(); return PyModule_Create(&module); }
C
git -C det-like init -q
git -C det-like add -A
git -C det-like -c user.name=somebody -c user.email=somebody@host.example commit -qm first
packages="packages: [\"det-like @ git+file://$work/det-like\"]"
start det "$packages"
says 'build: {requires: {det-like: [numpy]}}'
start det "$packages" 'build: {requires: {det-like: [numpy]}}'
says 'system: [build-essential, python3-dev]'
start det "$packages" 'build: {requires: {det-like: [numpy]}}' 'system: [build-essential, python3-dev]'
locks 'name = "det-like"'
imports
"$MLENV" -q run det.yaml -- python -c 'import det.native' </dev/null # compiled against the image's own NumPy

note "DeepSpeed and Whisper, to a lock: PyTorch itself is not fetched"
start deepspeed 'framework: pytorch==2.5.1' 'packages: [deepspeed==0.15.4]'
locks 'name = "deepspeed", version = "0.15.4"'
start whisper 'packages: [openai-whisper==20231117]'
says 'setuptools<81'
start whisper 'packages: [openai-whisper==20231117]' 'build: {constraints: ["setuptools<81"]}'
locks 'name = "openai-whisper"'

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "horovod, for an older CMake"
  start horovod 'packages: [horovod==0.28.1]'
  says 'requires: {horovod: [cmake, ninja]}'
  start horovod 'packages: [horovod==0.28.1]' 'build: {requires: {horovod: [cmake, ninja]}}'
  says 'system: [build-essential, python3-dev]'
  printf 'system: [build-essential, python3-dev]\n' >>horovod.yaml
  says 'constraints: ["cmake<4"]'
  start horovod 'packages: [horovod==0.28.1]' 'build: {requires: {horovod: [cmake, ninja]}, constraints: ["cmake<4"]}' \
    'system: [build-essential, python3-dev]'
  locks 'name = "horovod", version = "0.28.1"'
  imports

  note "flash-attn without its CUDA part"
  start flash 'framework: pytorch==2.5.1' 'packages: [flash-attn==2.7.4.post1]'
  says 'requires: {flash-attn: [torch]}'
  start flash 'framework: pytorch==2.5.1' 'packages: [flash-attn==2.7.4.post1]' 'build: {requires: {flash-attn: [torch]}}'
  says 'FLASH_ATTENTION_SKIP_CUDA_BUILD: "TRUE"'
  start flash 'framework: pytorch==2.5.1' 'packages: [flash-attn==2.7.4.post1]' \
    'build: {requires: {flash-attn: [torch]}, env: {flash-attn: {FLASH_ATTENTION_SKIP_CUDA_BUILD: "TRUE"}}}'
  locks 'name = "flash-attn", version = "2.7.4.post1"'
  fails_importing "No module named 'flash_attn_2_cuda'"
else
  note "left out: horovod and flash-attn (--long)"
fi
