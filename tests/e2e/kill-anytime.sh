#!/usr/bin/env bash
# SIGKILL at random moments of a build and of a push: nothing is left running, the store verifies, a
# rerun gives the same digest. In every run a build is killed while it unpacks and while it configures a bare
# Debian, and three times while it lays wheels on a base, a push three times;
# with --long 100 moments each, of the jax-cpu image from nothing.
# first
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

seed=${MLENV_TEST_SEED:-$RANDOM}
RANDOM=$seed
note "seed $seed (MLENV_TEST_SEED)"

pause() { # pause MILLISECONDS
  read -rt "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))" <> <(:) || true
}
# killed MOMENT COMMAND…: SIGKILL to that process alone, so many milliseconds after its start or, where MOMENT is a
# word that its story says, up to 600 after that. 1 when it had ended.
killed() {
  local moment=$1 status=0
  shift
  # timeout must not end the group: what the command started has to notice by itself.
  : >"$work/killed.log"
  "$@" >"$work/killed.log" 2>&1 &
  local child=$!
  if [[ $moment == [0-9]* ]]; then
    pause "$moment"
  else
    wait_until 200 told "$moment" "$child"
    pause $((RANDOM * 600 / 32768))
  fi
  kill -KILL "$child" 2>/dev/null || true
  wait "$child" 2>/dev/null || status=$?
  [ "$status" -eq 137 ] || {
    [ "$status" -eq 0 ] || fail "exit $status: $(cat "$work/killed.log")"
    return 1
  }
}
told() { grep -qzE "$1" "$work/killed.log" || ! kill -0 "$2" 2>/dev/null; } # a pattern over lines
# Nothing may still work in the store: no process with its root, folder or a file there.
quiet() { ! as_root find /proc/[0-9]*/{root,cwd,fd/} -maxdepth 1 -lname "$MLENV_STORE*" -print -quit 2>/dev/null | grep -q .; }
hits=0
# build_killed MOMENT: 1 when it was done before
build_killed() {
  killed "$1" "$MLENV" build "$path" --locked || return 1
  hits=$((hits + 1))
  wait_until 20 quiet
  verify_store
}
# milliseconds COMMAND…: how long it takes
milliseconds() {
  local began=${EPOCHREALTIME/[.,]/}
  "$@" >/dev/null
  took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
}
whole_again() { # what was killed, built to its end
  equal "digest after the kills" "$image" "$(build_digest "$path" --locked)"
  verify_store
  [ -z "$(ls -A "$MLENV_STORE/tmp")" ] || fail "left in tmp/: $(ls -A "$MLENV_STORE/tmp")"
}

if [ "$MLENV_TEST_LONG" = 1 ]; then
  moments=100
  path=$(recipe jax-cpu)
  MLENV_STORE=$work/inputs "$MLENV" build "$path" --locked >/dev/null # the inputs are there
  drop "$work/inputs"
else
  note "a bare Debian"
  shared_bare
  path=$recipe_path
  export MLENV_STORE=$work/killed
  # Each line is written when its part is done.
  for moment in 'fetch Debian packages' 'configuring packages.*configuring packages'; do
    build_killed "$moment" || true
  done
  note "killed $hits times"
  [ "$hits" -ge 1 ] || fail "killed $hits times"
  whole_again
  note "wheels on a base"
  moments=3
  export MLENV_STORE=$work/store
  path=$work/small.yaml
  small_recipe "$path" numpy einops
  base_tree
  "$MLENV" lock "$path"
fi
name=$(basename "$path" .yaml)
milliseconds "$MLENV" build "$path" --locked
whole=$took
image=$(build_digest "$path" --locked)
note "a build takes $whole ms: $image"

export MLENV_STORE=$work/again
start_over() { if [ "$MLENV_TEST_LONG" = 0 ]; then base_store; fi; }
start_over
hits=0
for ((number = 1; number <= moments; number++)); do
  at=$((RANDOM * (whole + 200) / 32768))
  # Of few, one in each part of three quarters: one that ends is none, and the machine is not always as quick.
  if [ "$MLENV_TEST_LONG" = 0 ]; then at=$((((number - 1) * 32768 + RANDOM) * whole * 3 / 4 / moments / 32768)); fi
  if ! build_killed "$at"; then # it was done: from the start again
    drop "$MLENV_STORE"
    start_over
  fi
done
note "build killed $hits times"
whole_again

if [ "$MLENV_TEST_LONG" = 0 ]; then moments=3; fi
start_registry
milliseconds "$MLENV" push "$name" "$registry/first:v1"
note "a push takes $took ms"
hits=0
for ((number = 1; number <= moments; number++)); do
  target=$registry/again$number:v1
  at=$((RANDOM * (took + 50) / 32768))
  if killed "$at" "$MLENV" push "$name" "$target"; then hits=$((hits + 1)); fi
  equal "digest of the push after a kill" "$image" "$("$MLENV" push "$name" "$target" | tail -n 1)"
done
note "push killed $hits times"
verify_store
equal "digest of what the registry has" "$image" \
  "$(MLENV_STORE=$work/pulled "$MLENV" pull "$target" | tail -n 1)"
verify_store "$work/pulled"
