#!/usr/bin/env bash
# `store verify` by an ordinary user reads trees whose modes keep him out, and changes nothing in them:
# with a user namespace of his own, and without.
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need skopeo unshare setpriv
make_user

as_root mkdir "$user_home/recipe"
layer=$work/layer
mkdir -p "$layer/shut/in" "$layer/open/deep"
for mode in 0000 0100 0200 0400 0644 4755 2711; do
  echo "$mode" >"$layer/open/deep/$mode"
  chmod "$mode" "$layer/open/deep/$mode"
done
ln -s deep/0000 "$layer/open/link"
ln "$layer/open/deep/0644" "$layer/open/second"
echo secret >"$layer/shut/in/file"
chmod 0200 "$layer/shut/in/file"
chmod 1300 "$layer/shut/in"
chmod 0500 "$layer/open/deep"
chmod 0000 "$layer/shut"
as_root tar -C "$layer" --owner 0 --group 0 --numeric-owner -cf "$work/layer.tar" open shut
as_root skopeo copy -q "tarball:$work/layer.tar" "oci:$user_home/recipe/base:v1"
printf 'name: modes\nbase: oci:base:v1\n' | as_root tee "$user_home/recipe/modes.yaml" >/dev/null
as_root chown -R "$user_id:$user_id" "$user_home"
as_user mlenv build "$user_home/recipe/modes.yaml" >"$work/build.log" 2>&1 || fail "$(cat "$work/build.log")"
trees=$user_home/.local/share/mlenv/trees

# state FOLDER: of each thing in it type, mode, owner, group, links, size, time of its content, time of its
# last change of any kind, path, where it leads; then every file's content.
state() {
  as_root find "$1" -mindepth 1 -printf '%y %#m %U:%G %n %s %T@ %C@ %P %l\n' | LC_ALL=C sort -k8
  as_root find "$1" -type f -exec sha256sum {} + | sed "s, $1/, ," | LC_ALL=C sort -k2
}
without_last_change() { awk 'NF > 2 { $7 = "" } { print }' "$1"; }

note "modes, as the layer has them"
state "$trees" >"$work/before"
tree=$(as_root find "$trees" -path '*/fs/shut' -printf '%H/%P\n')
tree=${tree%/shut}
as_root find "$tree" -mindepth 1 -printf '%y %#m %U:%G %P\n' | LC_ALL=C sort -k4 >"$work/found"
(cd "$layer" && as_root find . -mindepth 1 -printf "%y %#m $user_id:$user_id %P\n") | LC_ALL=C sort -k4 |
  diff - "$work/found" || fail "the tree is not the layer"
[ "$(wc -l <"$work/found")" -eq 14 ] || fail "not all of it: $(cat "$work/found")"

note "what would be seen"
as_root cp -a "$tree" "$work/planted"
state "$work/planted" >"$work/clean"
# planted COMMAND… FILE: a change of that kind shows.
planted() {
  "$@"
  state "$work/planted" >"$work/changed"
  if diff "$work/clean" "$work/changed" >/dev/null; then fail "not seen: $*"; fi
  mv "$work/changed" "$work/clean"
}
# The last times of all: not seen by the time of the last change alone.
planted_surely() {
  without_last_change "$work/clean" >"$work/sure"
  planted "$@"
  if diff "$work/sure" <(without_last_change "$work/clean") >/dev/null; then fail "not seen for sure: $*"; fi
}
planted_surely as_root chmod u+r "$work/planted/shut/in/file"
planted_surely as_root chmod -t "$work/planted/shut/in"
planted_surely as_root chown 1:"$user_id" "$work/planted/open/deep/0644"
planted_surely as_root chown "$user_id":1 "$work/planted/open"
planted_surely as_root chown -h 1:1 "$work/planted/open/link"
planted_surely as_root touch -d @1 "$work/planted/open/deep/0000"
planted_surely as_root sh -c "printf OTHER >'$work/planted/shut/in/file'; touch -d @0 '$work/planted/shut/in/file'"
planted_surely as_root sh -c "printf other >'$work/planted/shut/in/file'; touch -d @0 '$work/planted/shut/in/file'"
planted_surely as_root ln -sfn deep/0100 "$work/planted/open/link"
planted_surely as_root rm "$work/planted/open/second"
# A mode that was another one for a while.
planted as_root sh -c "chmod 700 '$work/planted/shut'; chmod 0 '$work/planted/shut'"

verified() { # verified HOW COMMAND…: nothing is damaged, and all is as it was
  local how=$1
  shift
  "$@" >"$work/log" 2>&1 || fail "$how: $(cat "$work/log")"
  state "$trees" >"$work/after"
}
same_but_last_change() {
  diff <(without_last_change "$work/before") <(without_last_change "$work/after") || fail "something in the trees was changed"
}

note "as it is"
verified "as it is" as_user mlenv store verify
if as_user unshare -U true 2>/dev/null; then
  diff "$work/before" "$work/after" || fail "something in the trees was changed"
  note "where no namespace may be made, modes are as they were once it is done"
  # shellcheck disable=SC2016 # for that shell
  verified "without namespaces" as_user unshare --user --map-user="$user_id" --map-group="$user_id" --keep-caps sh -c '
    echo 0 >/proc/sys/user/max_user_namespaces || exit 77
    exec setpriv --ambient-caps -all --inh-caps -all mlenv store verify'
  if diff -q "$work/before" "$work/after" >/dev/null; then fail "it was read past modes here too"; fi
fi
same_but_last_change

note "damage behind shut folders is found"
state "$trees" >"$work/before"
as_root cp -a "$tree/shut/in" "$work/original"
as_root sh -c "echo other >'$tree/shut/in/file'"
status=0
as_user mlenv store verify >"$work/log" 2>&1 || status=$?
equal "status" 3 "$status"
grep -qF 'shut/in/file' "$work/log" || fail "$(cat "$work/log")"
as_root sh -c "echo secret >'$tree/shut/in/file'; touch -r '$work/original/file' '$tree/shut/in/file'"
for change in "chmod 0400 '$tree/shut/in/file'" "chmod 1700 '$tree/shut/in'"; do
  as_root sh -c "$change"
  status=0
  as_user mlenv store verify >"$work/log" 2>&1 || status=$?
  equal "status after $change" 3 "$status"
  as_root chmod --reference="$work/original" "$tree/shut/in"
  as_root chmod --reference="$work/original/file" "$tree/shut/in/file"
done
verified "mended by hand" as_user mlenv store verify
same_but_last_change

note "and repaired: that tree goes, the others stay as they are"
as_root sh -c "echo other >'$tree/shut/in/file'"
as_user mlenv store verify --repair >"$work/log" 2>&1 || fail "$(cat "$work/log")"
as_root test ! -e "$tree" || fail "the damaged tree is there"
state "$trees" >"$work/after"
name=$(basename "$(dirname "$tree")")
diff <(without_last_change "$work/before" | grep -vF "$name" | grep -v ' d ') \
  <(without_last_change "$work/after" | grep -v ' d ') || fail "another tree was changed"
as_user mlenv store verify >"$work/log" 2>&1 || fail "$(cat "$work/log")"
