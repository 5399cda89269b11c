#!/usr/bin/env bash
# `mlenv probe` and mlenv-gpu-probe against a stand-in driver that works and one that is sick in every known
# way; the kernel's PTX against ptxas. Where there is a GPU, against that.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq cc
cd "$work"
program=${MLENV%/*}/mlenv-gpu-probe
[ -x "$program" ] || skip "mlenv-gpu-probe is not built (MLENV_GPU_PROBE=OFF)"

mkdir "$programs/driver" "$programs/lacking"
cc -Wall -Wextra -Werror -O1 -shared -fPIC -o "$programs/driver"/libcuda.so.1 "$root/tests/support/standin_cuda.c"
cc -Wall -Wextra -Werror -O1 -shared -fPIC -o "$programs/driver"/libnccl.so.2 "$root/tests/support/standin_nccl.c"
cc -O1 -shared -fPIC -DSTANDIN_WITHOUT_LAUNCH -o "$programs/lacking"/libcuda.so.1 "$root/tests/support/standin_cuda.c"
: >lines

# Drivers that hang: they are waited for beside all others.
hang() { # hang NAME PROGRAM… -- VARIABLE=VALUE…: its answer is in hang-NAME, its status in hang-NAME.status
  local name=$1 command=() status=0
  shift
  while [ "$1" != -- ]; do
    command+=("$1")
    shift
  done
  env LD_LIBRARY_PATH="$programs/driver" "${@:2}" "${command[@]}" --size 1 >"hang-$name" 2>"hang-$name.err" || status=$?
  echo "$status" >"hang-$name.status"
}
hung() { # hung NAME TEXT: what it found is in the file `answer`
  wait_until 60 test -s "hang-$1.status"
  equal "status of $1" 3 "$(cat "hang-$1.status")"
  cp "hang-$1" answer
  cat answer >>lines
  equal "verdict of $1" fails "$(found .verdict)"
  case $(found .reason) in *"$2"*) ;; *) fail "no \`$2\` for $1: $(cat answer)" ;; esac
}
hang program "$program" --timeout 3 -- STANDIN_MODE=hang &
hang mlenv "$MLENV" --json probe --timeout 3 -- STANDIN_MODE=hang &
hang kernel "$program" --timeout 3 -- STANDIN_MODE=hang-kernel &
hang nccl "$program" --nccl --timeout 10 -- STANDIN_NCCL=hang STANDIN_GPUS=1 &
mapfile -t -O ${#started[@]} started < <(jobs -p)

# probe STATUS VARIABLE=VALUE… -- OPTION…: its answer is in the file `answer`.
probe() {
  local expected=$1 status=0 settings=()
  shift
  while [ "$1" != -- ]; do
    settings+=("$1")
    shift
  done
  env LD_LIBRARY_PATH="$programs/driver" "${settings[@]}" "${command[@]}" "${@:2}" --size 1 >answer 2>err || status=$?
  equal "status of ${settings[*]} $*" "$expected" "$status"
  cat answer >>lines
}
found() { jq -rc "$1" answer; }
# says STATUS VERDICT TEXT VARIABLE=VALUE… -- OPTION…
says() {
  local status=$1 verdict=$2 text=$3
  shift 3
  probe "$status" "$@"
  equal "verdict of $*" "$verdict" "$(found .verdict)"
  case $(found .reason) in *"$text"*) ;; *) fail "no \`$text\` for $*: $(cat answer)" ;; esac
}

for command in program mlenv; do
  note "$command"
  name=$command
  if [ "$command" = mlenv ]; then command=("$MLENV" --json probe); else command=("$program"); fi
  probe 0 -- --nccl
  equal "verdict" works "$(found .verdict)"
  equal "GPUs" '[[0,"9.0",true],[1,"9.0",true]]' "$(found '[.gpus[] | [.index, .compute_capability, .kernel_right]]')"
  equal "pairs" '[[0,1,true],[1,0,true]]' "$(found '[.pairs[] | [.from, .to, .peer_access]]')"
  equal "rates" 0 "$(found '[.. | objects | to_entries[] | select((.key | endswith("_per_second")) and (.value // 0) <= 0)] | length')"
  equal "NCCL" '["2.28.3",2,1048576,true]' "$(found '.nccl | [.version, .ranks, .bytes, .sums_right]')"
  equal "bus bandwidth of two" true "$(found '.nccl | .bus_bytes_per_second == .algorithm_bytes_per_second')"
  says 3 no-gpu 'cuInit: CUDA_ERROR_NO_DEVICE (100)' STANDIN_MODE=init-100 --
  hung "$name" 'no answer within 3 s at: cuInit'
  equal "what was known by then" '"13.0"' "$(found '.driver.cuda_version | tojson')"
  says 3 fails 'crashed (signal 11) at: the kernel of GPU 0' STANDIN_MODE=crash-kernel --
done

note "sick drivers"
command=("$program")
says 3 driver-too-old 'cudaErrorInsufficientDriver (35)' STANDIN_MODE=init-35 --
says 3 driver-mismatch 'CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)' STANDIN_MODE=init-803 --
says 3 not-ready 'CUDA_ERROR_SYSTEM_NOT_READY (802)' STANDIN_MODE=init-802 --
equal "advice" true "$(found '.advice | contains("nvidia-fabricmanager")')"
says 3 busy 'CUDA_ERROR_DEVICE_UNAVAILABLE (46)' STANDIN_MODE=init-46 --
says 3 no-gpu 'CUDA_ERROR_INVALID_DEVICE (101)' STANDIN_MODE=init-101 --
says 3 no-driver 'CUDA_ERROR_STUB_LIBRARY (34)' STANDIN_MODE=init-34 --
says 3 driver-fails 'CUDA_ERROR_UNKNOWN (999)' STANDIN_MODE=init-999 --
says 3 compat-refused 'COMPAT_NOT_SUPPORTED_ON_DEVICE (804)' STANDIN_MODE=init-804 --
equal "advice" true "$(found '.advice | contains("LD_LIBRARY_PATH")')"
says 3 driver-fails 'cuInit: error (12345)' STANDIN_MODE=init-12345 --
says 3 no-gpu 'the driver has no GPU' STANDIN_MODE=none --
says 3 fails 'crashed (signal 11) at: cuInit' STANDIN_MODE=crash --
says 3 fails 'ended the process (status 0) at: cuInit' STANDIN_MODE=exit --
hung kernel 'no answer within 3 s at: the kernel of GPU 0'
says 3 fails "the kernel's result is wrong" STANDIN_MODE=wrong --
equal "the other GPU" false "$(found '.gpus[1].kernel_right')"
says 3 fails 'copied to it and back is wrong at byte 4096' STANDIN_MODE=corrupt -- --size 2
says 3 fails 'UNSUPPORTED_PTX_VERSION (222)' STANDIN_MODE=ptx --
says 3 fails 'CUDA_ERROR_OUT_OF_MEMORY (2)' STANDIN_MODE=memory --
says 3 no-driver 'has no cuLaunchKernel' "LD_LIBRARY_PATH=$programs/lacking" --
probe 0 STANDIN_MODE=no-peer --
equal "way" '[false,false]' "$(found '[.pairs[].peer_access]')"
probe 0 STANDIN_MODE=noisy -- # what the driver prints is no answer
equal "noise" '["works",2]' "$(found '[.verdict, (.gpus | length)]')"
probe 0 STANDIN_MODE=nameless STANDIN_GPUS=1 --
equal "pairs of one" '[]' "$(found .pairs)"
probe 0 STANDIN_GPUS=1 -- --nccl-library "$programs/driver/libnccl.so.2"
equal "bus of one" null "$(found .nccl.bus_bytes_per_second)"
probe 0 STANDIN_GPUS=8 -- --nccl
equal "pairs of eight" 56 "$(found '.pairs | length')"
equal "bus bandwidth of eight" true "$(found '.nccl | .bus_bytes_per_second / .algorithm_bytes_per_second | . > 1.749 and . < 1.751')"
says 3 fails 'the sum on rank 1 is wrong at byte 4' STANDIN_NCCL=wrong -- --nccl
says 3 fails 'unhandled system error (2)' STANDIN_NCCL=fail -- --nccl
says 3 fails 'nowhere.so' -- --nccl-library nowhere.so
hung nccl "no answer within 10 s at: NCCL's start"

note "this machine, and the words on the command line"
status=0
"$program" --size 16 >answer || status=$?
cat answer >>lines
if [ -e /dev/nvidiactl ]; then
  equal "verdict of $(cat answer)" works "$(found .verdict)"
else
  equal "status without a GPU" 3 "$status"
fi
for words in '--size 0' '--size' '--timeout x' '--more'; do
  status=0
  # shellcheck disable=SC2086  # words
  "$program" $words 2>err || status=$?
  equal "status of $words" 2 "$status"
  grep -q '^mlenv-gpu-probe: ' err || fail "not said: $words"
done
LD_LIBRARY_PATH=$programs/driver STANDIN_MODE=nameless "$MLENV" probe --size 1 --nccl >text
grep -q 'ranks: sums right' text || fail "the text lacks NCCL: $(cat text)"
if grep -q $'\033' text; then fail "a name reaches the terminal"; fi
if python3 -c 'import jsonschema' 2>/dev/null; then
  equal "schema" mlenv.gpu-probe/1 "$(python3 "$root/tests/schema/check.py" <lines)"
fi
size=$(stat -c %s "$program")
[ "$size" -lt 3000000 ] || fail "it has grown to $size bytes"
for library in $(ldd "$program" | awk '{ print $1 }'); do
  case ${library##*/} in
    linux-vdso.so.* | libc.so.6 | libm.so.6 | ld-linux-*) ;;
    *) fail "it needs $library" ;;
  esac
done

note "the kernel's PTX against ptxas"
uv=$(some_uv)
ptxas=$XDG_CACHE_HOME/ptxas/nvidia/cu13/bin/ptxas
if [ ! -x "$ptxas" ]; then
  "$uv" pip install -q --target "$XDG_CACHE_HOME/ptxas" --only-binary :all: --no-deps 'nvidia-cuda-nvcc==13.*' >uv.log 2>&1 ||
    skip "no nvidia-cuda-nvcc on the machine's index: $(tail -n 1 uv.log)"
fi
sed -n '/R"(/,/)"/ { s/.*R"(//; s/)".*//; p }' "$root/runner/probe/kernel.hpp" >kernel.ptx
for gpu in 75 80 90 100 120; do
  "$ptxas" -arch="sm_$gpu" -o "kernel.$gpu" kernel.ptx || fail "ptxas refuses it for sm_$gpu"
done
