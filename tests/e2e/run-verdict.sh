#!/usr/bin/env bash
# `mlenv run` refuses what cannot run: the finding, what to do, status 125; --no-check starts it, and
# without GPUs what is about them does not count. The hosts are recorded ones (tests/verdicts).
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc
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

note "after a build"
MLENV_HOST_FACTS=$hosts/arm-server.json "$MLENV" build "$work/gated.yaml" >"$work/out" 2>"$work/err"
grep -q '^note: this image does not run here: .*; `mlenv check' "$work/err" || fail "$(cat "$work/err")"
equal "the digest is alone" 1 "$(wc -l <"$work/out")"
"$MLENV" build "$work/gated.yaml" >/dev/null 2>"$work/err"
! grep -q '^note: this image' "$work/err" || fail "$(cat "$work/err")"
