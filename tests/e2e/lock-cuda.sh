#!/usr/bin/env bash
# What a recipe asks of its CUDA wheels (driver, gpus, libraries), and upgrades of single packages, on the real index.
# Nothing is downloaded but metadata; --long compiles with the compiler that a recipe asks for.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

path=$work/recipe.yaml
lock=$work/recipe.lock
torch_recipe() { # torch_recipe LINE…
  rm -f "$lock"
  printf 'name: a\nbase: debian:bookworm\nframework: pytorch\n' >"$path"
  printf '%s\n' "$@" >>"$path"
}
refused() { # refused WORDS: locking is, with exit status 3 and these words, and leaves no lock
  local status=0
  "$MLENV" lock "$path" >"$work/out" 2>"$work/err" || status=$?
  equal "status" 3 "$status"
  grep -qF "$1" "$work/err" || fail "says: $(cat "$work/err")"
  [ ! -e "$lock" ] || fail "wrote a lock"
}
# locked KEY: its value in the lock, without quotes
locked() { sed -n "s/^$1 = //p" "$lock" | tr -d '"'; }
version() { sed -n "s/^  { name = \"$1\", version = \"\([^\"]*\)\".*/\1/p" "$lock"; }
# take_hint: writes the `cuda` that the message proposes into the recipe
take_hint() {
  local cuda
  cuda=$(sed -n 's/^hint: write `cuda: "\([0-9.]*\)"`, which locks torch .* for CUDA .*/\1/p' "$work/err")
  [ -n "$cuda" ] || fail "no choice is proposed: $(cat "$work/err")"
  echo "cuda: \"$cuda\"" >>"$path"
}

note "a driver that the newest build is too new for"
torch_recipe 'driver: ">=535"'
refused 'does not run with driver 535'
take_hint
"$MLENV" lock "$path" >"$work/out" 2>"$work/err" || fail "the hint does not work: $(cat "$work/err")"
equal "min-driver" 525.60.13 "$(locked min-driver)"
equal "revision" 2 "$(locked revision)"
equal "cudnn" "$(version nvidia-cudnn-cu12)" "$(locked cudnn)"
equal "nccl" "$(version nvidia-nccl-cu12)" "$(locked nccl)"
grep -q sm_80 <<<"$(locked architectures)" || fail "no architectures: $(cat "$lock")"
"$MLENV" lock --locked "$path"
cp "$lock" "$work/old.lock"

note "a driver that no build runs with"
torch_recipe 'driver: ">=400"'
refused 'no other CUDA release fits the recipe'

note "GPUs that the newest build has no code for"
torch_recipe 'gpus: [sm_60, sm_80]'
refused 'the recipe'"'"'s wheels hold no code for sm_60'
take_hint
"$MLENV" lock "$path" >"$work/out" 2>"$work/err" || fail "the hint does not work: $(cat "$work/err")"
grep -q sm_60 <<<"$(locked architectures)" || fail "no code for sm_60: $(locked architectures)"

note "libraries"
torch_recipe 'libraries: {cudnn: "99.*"}'
refused 'the recipe asks for cuDNN 99.*'
torch_recipe 'cuda: "13.0"' 'libraries: {nccl: ">=2.20", nvcc: true}'
"$MLENV" lock "$path" >"$work/out" 2>"$work/err" || fail "says: $(cat "$work/err")"
for package in nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime; do
  [[ $(version "$package") == 13.0.* ]] || fail "$package is $(version "$package")"
done
[ -n "$(version nvidia-cuda-cccl)" ] || fail "no CCCL"
status=0
"$MLENV" diff "$work/old.lock" "$lock" >"$work/out" || status=$?
equal "status of diff" 3 "$status"
grep -qE '^≠ oldest driver +525.60.13 → 580$' "$work/out" || fail "diff says: $(cat "$work/out")"
grep -qE '^≠ nccl ' "$work/out" || fail "diff says: $(cat "$work/out")"
torch_recipe 'cuda: "12.6"' 'libraries: {nvcc: true}'
refused 'CUDA 12.6 has no compiler among the Python packages'

note "an upgrade of one package"
small_recipe "$path" 'idna<3.7' 'six<1.16' 'certifi<2024'
rm -f "$lock"
"$MLENV" lock "$path" 2>"$work/err" || fail "says: $(cat "$work/err")"
six=$(version six) idna=$(version idna) certifi=$(version certifi)
small_recipe "$path" idna six certifi
"$MLENV" lock "$path" >/dev/null
equal "idna, kept" "$idna" "$(version idna)"
cp "$lock" "$work/kept.lock"
"$MLENV" lock "$path" --upgrade idna Certifi >"$work/out"
[ "$(version idna)" != "$idna" ] || fail "idna did not move"
[ "$(version certifi)" != "$certifi" ] || fail "certifi did not move"
equal "six" "$six" "$(version six)"
equal "lines of difference" 2 "$(wc -l <"$work/out")"
equal "Debian packages" "$(grep -c 'path = "pool' "$work/kept.lock")" "$(grep -c 'path = "pool' "$lock")"
"$MLENV" lock --upgrade "$path" >"$work/out"
[ "$(version six)" != "$six" ] || fail "--upgrade of all left six as it was"
cp "$lock" "$work/kept.lock"
for name in indna python3; do
  status=0
  "$MLENV" lock --upgrade "$name" "$path" 2>>"$work/err" || status=$?
  equal "status of --upgrade $name" 2 "$status"
done
grep -qF 'hint: did you mean `idna`?' "$work/err" || fail "says: $(cat "$work/err")"
grep -qF 'it holds the Debian package' "$work/err" || fail "says: $(cat "$work/err")"
diff "$work/kept.lock" "$lock" || fail "a failed upgrade wrote the lock"

note "a wheel that turns out to hold no code for the GPU"
need runc
mkdir -p "$work/index/kernels" "$work/made"
python3 - "$work/index/kernels" <<'PYTHON'
# One container as nvcc's fatbinary writes them, with machine code for sm_75.
import hashlib, struct, sys, zipfile
entry = bytearray(64 + 24)
struct.pack_into("<HHIQ", entry, 0, 2, 0x101, 64, 24)
struct.pack_into("<I", entry, 28, 75)
struct.pack_into("<Q", entry, 40, 0x11)
code = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + bytes(entry)
info = "kernels-1.dist-info/"
files = {"kernels/one.so": b"\x7fELF" + code,
         info + "METADATA": b"Metadata-Version: 2.1\nName: kernels\nVersion: 1\n",
         info + "WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux2014_x86_64\n"}
files[info + "RECORD"] = "".join(f"{name},,\n" for name in [*files, info + "RECORD"]).encode()
path = sys.argv[1] + "/kernels-1-py3-none-manylinux2014_x86_64.whl"
with zipfile.ZipFile(path, "w") as wheel:
    for name in files:
        wheel.writestr(name, files[name])
digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
with open(sys.argv[1] + "/index.html", "w") as page:
    page.write(f'<a href="kernels-1-py3-none-manylinux2014_x86_64.whl#sha256={digest}">kernels-1-py3-none-manylinux2014_x86_64.whl</a>\n')
PYTHON
base_store
for gpu in sm_80 sm_75; do
  printf 'name: made\nbase: debian:bookworm\npython: "3.11"\ngpus: [%s]\nbytecode: false\npackages: [kernels, "nvidia-cuda-runtime==13.0.*"]\n' \
    "$gpu" >"$work/made/recipe.yaml"
  [ "$gpu" = sm_75 ] || failing_with no-gpu-code env UV_INDEX="file://$work/index" "$MLENV" --json build "$work/made/recipe.yaml"
done
UV_INDEX="file://$work/index" build_digest "$work/made/recipe.yaml" >/dev/null

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "the compiler in an image"
mkdir "$work/nvcc"
cat >"$work/nvcc/recipe.yaml" <<'RECIPE'
name: nvcc
base: debian:bookworm
packages: ["nvidia-cuda-runtime==13.0.*"]
system: [g++]
libraries: {nvcc: true}
RECIPE
cat >"$work/nvcc/add.cu" <<'SOURCE'
#include <cuda/std/array>
#include <cstdio>
__global__ void add(float* a) { a[threadIdx.x] += 1; }
int main() {
  add<<<1, 32>>>(nullptr);
  std::puts(cudaGetErrorString(cudaGetLastError()));
}
SOURCE
"$MLENV" build "$work/nvcc/recipe.yaml" >/dev/null
said=$("$MLENV" run "$work/nvcc/recipe.yaml" -- sh -c 'nvcc -arch=sm_90 -o /tmp/add add.cu && /tmp/add')
note "the program says: $said"
[ -n "$said" ] || fail "the program says nothing"
