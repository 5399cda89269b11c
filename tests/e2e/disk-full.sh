#!/usr/bin/env bash
# A store on a disk that is too small: the build says so and fails, the store verifies, and with more
# room the same store gives the same digest.
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_root

shared_small
path=$recipe_path

mkdir "$work/disk"
as_root mount -t tmpfs -o size=20m,mode=777 tmpfs "$work/disk"
export MLENV_STORE=$work/disk/store
sizes=(20m 150m 400m)
[ "$MLENV_TEST_LONG" = 0 ] || sizes=(20m 60m 150m 300m 400m)
for size in "${sizes[@]}"; do
  as_root mount -o "remount,size=$size" "$work/disk"
  status=0
  said=()
  [ "$size" = 20m ] || said=(--json) # the code, or the words
  "$MLENV" "${said[@]}" build "$path" --locked >"$work/out" 2>"$work/err" || status=$?
  note "$size: exit $status, $(df --output=pcent "$work/disk" | tail -n 1) full"
  if [ "$status" -eq 0 ]; then break; fi
  [ "$status" -eq 1 ] || fail "exit $status: $(cat "$work/err")"
  grep -q 'No space left on device' "$work/err" || fail "no word of the disk: $(cat "$work/err")"
  [ "$size" = 20m ] || grep -q '"code":"no-space"' "$work/err" || fail "the code is not no-space: $(cat "$work/err")"
  # Little must be left of what was not finished.
  verify_store
done
[ "$size" != 20m ] || fail "20 MB were enough"
as_root mount -o "remount,size=4g" "$work/disk"
equal "digest when there is room" "$image" "$(build_digest "$path" --locked)"
verify_store
