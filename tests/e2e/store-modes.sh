#!/usr/bin/env bash
# `store verify` by an ordinary user reads trees whose modes keep him out, and changes nothing in them.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need skopeo unshare
make_user

as_root mkdir "$user_home/recipe"
mkdir -p "$work/layer/shut/in"
echo secret >"$work/layer/shut/in/file"
chmod 0200 "$work/layer/shut/in/file"
chmod 0300 "$work/layer/shut/in"
chmod 0000 "$work/layer/shut"
as_root tar -C "$work/layer" --owner 0 --group 0 --numeric-owner -cf "$work/layer.tar" shut
as_root skopeo copy -q "tarball:$work/layer.tar" "oci:$user_home/recipe/base:v1"
printf 'name: modes\nbase: oci:base:v1\n' | as_root tee "$user_home/recipe/modes.yaml" >/dev/null
as_root chown -R "$user_id:$user_id" "$user_home"
as_user mlenv build "$user_home/recipe/modes.yaml" >"$work/build.log" 2>&1 || fail "$(cat "$work/build.log")"

state() { # of everything in the tree: mode, and when it or its mode was changed last
  as_root find "$user_home/.local/share/mlenv/trees" -path '*/fs/shut*' -printf '%m %C@ %P\n' | LC_ALL=C sort
}
state >"$work/before"
grep -qE '^0 .*/fs/shut$' "$work/before" || fail "no such tree: $(cat "$work/before")"
note "as it is"
as_user mlenv store verify >"$work/log" 2>&1 || fail "$(cat "$work/log")"
state >"$work/after"
if as_user unshare -U true 2>/dev/null; then
  diff "$work/before" "$work/after" || fail "something in the tree was changed"
else
  diff <(awk '{ print $1, $3 }' "$work/before") <(awk '{ print $1, $3 }' "$work/after") || fail "other modes"
fi

note "damage behind shut folders is found"
echo other >"$work/other"
as_root cp --no-preserve=all "$work/other" "$(as_root find "$user_home/.local/share/mlenv/trees" -path '*/fs/shut/in/file')"
status=0
as_user mlenv store verify >"$work/log" 2>&1 || status=$?
equal "status" 3 "$status"
grep -qF 'shut/in/file' "$work/log" || fail "$(cat "$work/log")"
note "and repaired"
as_user mlenv store verify --repair >"$work/log" 2>&1 || fail "$(cat "$work/log")"
as_user mlenv store verify >"$work/log" 2>&1 || fail "$(cat "$work/log")"
