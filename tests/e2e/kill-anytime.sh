#!/usr/bin/env bash
# SIGKILL at random moments of a build and of a push: nothing is left running, the store verifies, a
# rerun gives the same digest. 10 moments; with --long 100, of the jax-cpu image.
# first
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

seed=${MLENV_TEST_SEED:-$RANDOM}
RANDOM=$seed
moments=10
if [ "$MLENV_TEST_LONG" = 1 ]; then moments=100; fi
note "seed $seed (MLENV_TEST_SEED)"

if [ "$MLENV_TEST_LONG" = 1 ]; then
  path=$(recipe jax-cpu)
else
  path=$work/small.yaml
  small_recipe "$path" numpy einops
fi
name=$(basename "$path" .yaml)
"$MLENV" lock "$path"
MLENV_STORE=$MLENV_TEST_SHARED/small "$MLENV" build "$path" --locked >/dev/null # the inputs are there
began=${EPOCHREALTIME/[.,]/}
image=$(build_digest "$path" --locked)
whole=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
note "a build takes $whole ms: $image"

# killed MILLISECONDS COMMAND…: SIGKILL to that process alone after so long. 1 when it had ended.
killed() {
  local limit=$1 status=0
  shift
  # timeout must not end the group: what the command started has to notice by itself.
  "$@" >"$work/killed.log" 2>&1 &
  local child=$!
  read -rt "$((limit / 1000)).$(printf %03d $((limit % 1000)))" <> <(:) || true
  kill -KILL "$child" 2>/dev/null || true
  wait "$child" 2>/dev/null || status=$?
  [ "$status" -eq 137 ] || {
    [ "$status" -eq 0 ] || fail "exit $status: $(cat "$work/killed.log")"
    return 1
  }
}
# Nothing may still work in the store: no process with its root, folder or a file there.
quiet() { ! as_root find /proc/[0-9]*/{root,cwd,fd/} -maxdepth 1 -lname "$MLENV_STORE*" -print -quit 2>/dev/null | grep -q .; }


export MLENV_STORE=$work/killed
hits=0
for ((number = 1; number <= moments; number++)); do
  at=$((RANDOM * (whole + 200) / 32768))
  if killed "$at" "$MLENV" build "$path" --locked; then
    hits=$((hits + 1))
    wait_until 20 quiet
    verify_store
  else # it was done: from the start again
    drop "$MLENV_STORE"
  fi
done
note "build killed $hits times"
equal "digest after the kills" "$image" "$(build_digest "$path" --locked)"
verify_store
[ -z "$(ls -A "$MLENV_STORE/tmp")" ] || fail "left in tmp/: $(ls -A "$MLENV_STORE/tmp")"

start_registry
began=${EPOCHREALTIME/[.,]/}
"$MLENV" push "$name" "$registry/first:v1" >/dev/null
whole=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
note "a push takes $whole ms"
hits=0
for ((number = 1; number <= moments; number++)); do
  target=$registry/again$number:v1
  at=$((RANDOM * (whole + 50) / 32768))
  if killed "$at" "$MLENV" push "$name" "$target"; then hits=$((hits + 1)); fi
  equal "digest of the push after a kill" "$image" "$("$MLENV" push "$name" "$target" | tail -n 1)"
done
note "push killed $hits times"
verify_store
equal "digest of what the registry has" "$image" \
  "$(MLENV_STORE=$work/pulled "$MLENV" pull "$target" | tail -n 1)"
verify_store "$work/pulled"
