#!/usr/bin/env bash
# `mlenv run` refuses what cannot run: the finding, what to do, status 125; --no-check starts it, and
# without GPUs what is about them does not count. The hosts are recorded ones (tests/verdicts).
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc gcc
need_root
shared_bare
hosts=$root/tests/verdicts/hosts
# What is remembered of verdicts is this test's own.
export XDG_CACHE_HOME=$work/cache
cat >"$work/gated.yaml" <<'RECIPE'
name: gated
base: debian:bookworm
env: {NVIDIA_VISIBLE_DEVICES: all, NVIDIA_REQUIRE_CUDA: "cuda>=13.0"}
RECIPE
"$MLENV" -q build "$work/gated.yaml" >/dev/null

run_on() { # run_on HOST ARGUMENT…: status, output in $work/out and $work/err
  local host=$1 status=0
  shift
  as_root env MLENV_STORE="$MLENV_STORE" XDG_CACHE_HOME="$XDG_CACHE_HOME" \
    ${host:+MLENV_HOST_FACTS="$host"} "$MLENV" run --no-project "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}

note "a host whose driver is too old"
equal "status" 125 "$(run_on "$hosts/t4-470.json" gated -- echo ran)"
equal "it did not start" "" "$(cat "$work/out")"
grep -q "does not run here: the image's NVIDIA_REQUIRE_… is not met" "$work/err" || fail "$(cat "$work/err")"
for word in needed: found: hint: 'mlenv explain requirement-unmet' --no-check '--gpus none'; do
  grep -qF -e "$word" "$work/err" || fail "no \`$word\`: $(cat "$work/err")"
done
failing_with does-not-run as_root env MLENV_STORE="$MLENV_STORE" MLENV_HOST_FACTS="$hosts/t4-470.json" \
  "$MLENV" --json run gated -- true
equal "--no-check" "0 ran" "$(run_on "$hosts/t4-470.json" --no-check gated -- echo ran) $(cat "$work/out")"
equal "without GPUs" "0 ran" "$(run_on "$hosts/t4-470.json" --gpus none gated -- echo ran) $(cat "$work/out")"
equal "an image that asks for nothing" 0 "$(run_on "$hosts/t4-470.json" bare -- true)"

note "a host without GPUs, and a new one"
for host in laptop h200-615; do
  equal "$host" "0 ran" "$(run_on "$hosts/$host.json" gated -- echo ran) $(cat "$work/out")"
  equal "$host: nothing said" "" "$(cat "$work/err")"
done

note "another architecture"
equal "status" 125 "$(run_on "$hosts/arm-server.json" bare -- true)"
grep -q 'mlenv explain architecture-differs' "$work/err" || fail "$(cat "$work/err")"

note "this host"
equal "here" "0 ran" "$(run_on "" bare -- echo ran) $(cat "$work/out")"
equal "nothing said" "" "$(cat "$work/err")"
noted=$(find "$work/cache/mlenv/verdicts" -type f | wc -l)
equal "remembered once" 1 "$noted"
equal "again" 0 "$(run_on "" bare -- true)"
equal "still once" 1 "$(find "$work/cache/mlenv/verdicts" -type f | wc -l)"

note "an image that brings a libcuda for older drivers"
mkdir -p "$work/compat/driver" "$work/compat/runtime"
cp "$root/tests/fuzz/corpus/elf/good-top.so" "$work/compat/driver/libcuda.so.1" # CUDA 13.0, for drivers 535
echo 'int cudart;' | gcc -shared -nostdlib -Wl,-soname,libcudart.so.13 -o "$work/compat/runtime/libcudart.so.13.0.96" -x c -
cat >"$work/compat/older.yaml" <<'RECIPE'
name: older
base: debian:bookworm
files: {driver: /usr/local/cuda/compat, runtime: /usr/local/cuda/lib64}
env: {LD_LIBRARY_PATH: /opt/lib, NVIDIA_VISIBLE_DEVICES: all}
RECIPE
"$MLENV" -q build "$work/compat/older.yaml" >/dev/null
paths() { # paths HOST ARGUMENT…: where libraries are looked for
  local host=$1
  shift
  # shellcheck disable=SC2016  # for the shell inside
  equal "status" 0 "$(run_on "${host:+$hosts/$host.json}" "$@" older -- sh -c 'echo "$LD_LIBRARY_PATH"')"
  cat "$work/out"
}
equal "the driver is too old without it" /usr/local/cuda/compat:/opt/lib "$(paths h100-535)"
equal "the driver is new enough" /opt/lib "$(paths h100-580)"
equal "without GPUs" /opt/lib "$(paths h100-535 --gpus none)"
equal "where nobody judges" /opt/lib "$(paths h100-535 --no-check)"
equal "here" /opt/lib "$(paths "")"
equal "a GPU that may not use it" 125 "$(run_on "$hosts/rtx4090-550.json" older -- true)"
grep -q 'mlenv explain forward-compatibility-refused' "$work/err" || fail "$(cat "$work/err")"

note "after a build"
MLENV_HOST_FACTS=$hosts/arm-server.json "$MLENV" build "$work/gated.yaml" >"$work/out" 2>"$work/err"
grep -q '^note: this image does not run here: .*; `mlenv check' "$work/err" || fail "$(cat "$work/err")"
equal "the digest is alone" 1 "$(wc -l <"$work/out")"
"$MLENV" build "$work/gated.yaml" >/dev/null 2>"$work/err"
! grep -q '^note: this image' "$work/err" || fail "$(cat "$work/err")"
