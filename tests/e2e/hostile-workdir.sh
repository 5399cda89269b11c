#!/usr/bin/env bash
# Images and programs that make the folder in which a command starts, or one that is mounted on, a link out of the
# container: at the start, at a restart, in a kept layer, in the project, under an `exec` that races with them. Run by
# root with runc, and by an ordinary user with crun (with --long by both with both); nothing of the machine is read or
# written.
# shellcheck disable=SC2016,SC2317  # for the shells inside; `m` is called by `run`
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/hostile.sh
. "$root/tests/support/hostile.sh"

hostile_image plain
hostile_image direct WorkingDir=/w w@/proc/1/root
hostile_image relative WorkingDir=/w w@x x@../proc/1/./root
hostile_image nested WorkingDir=/a/b a@ a/b@/proc/1/cwd
hostile_image own WorkingDir=/w w@/proc/self/root/proc/1/root/..
hostile_image target t@/proc/1/root
for place in dev proc sys; do
  hostile_image "$place" "$place@$host"
  hostile_image "$place-up" "$place@../../../../../../../../../../../..$host"
done
hostile_image on-dev t@/dev workspace@dev
hostile_image home "root@$host" "${host#/}@"
user_store
project=$work/project
mkdir "$project"
as_root chown "$user_id" "$project"
as_user_of_store() {
  as_user MLENV_STORE="$user_home/store" sh -c 'cd "$0" && exec mlenv "$@"' "$project" "$@"
}
# everybody COMMAND: as root with the one store, and as the user with the other.
everybody() {
  if [ "$MLENV_TEST_LONG/$runtime" != 0/crun ]; then
    m() { (cd "$project" && "$MLENV" "$@"); }
    who=root-$runtime
    "$@"
    as_root rm -rf "$project/sub"
  fi
  if [ "$MLENV_TEST_LONG/$runtime" != 0/runc ]; then
    m() { as_user_of_store "$@"; }
    who=user-$runtime
    "$@"
    as_root rm -rf "$project/sub"
  fi
}
run() { m run --runtime "$runtime" --no-check "$@"; }

starts() {
  local image
  for image in direct relative nested own; do
    tried "the folder of the image $image" run --no-project "hostile/$image:v1" -- /bin/sh -c "$look; echo began"
    if grep -q began "$work/out"; then fail "$image: a command began"; fi
    grep -q 'cannot start in its folder' "$work/err" || fail "$image: $(cat "$work/err")"
  done
  # What the runtime itself makes, `/dev/fd` and others, in a folder that the image has made a link.
  for image in dev dev-up proc proc-up sys sys-up; do
    failing_with image-root m --json run --runtime "$runtime" --no-check --no-project "hostile/$image:v1" -- /bin/sh -c "$look"
    nobody_out "$image"
  done
  for target in /t /workspace; do
    failing_with bad-mount m --json run --runtime "$runtime" --no-check --no-project -v "$project:$target" hostile/on-dev:v1 -- /bin/true
    equal "what lies in the project" "" "$(ls -A "$project")"
  done
  # A folder that is named by the person, and made a link in the project by an earlier run.
  run hostile/plain:v1 -- /bin/sh -c 'mkdir sub; ln -s /proc/1/root sub/deep' >/dev/null
  tried "a folder in the project" run -w sub/deep hostile/plain:v1 -- /bin/sh -c "$look"
  failing_with bad-workdir m --json run --runtime "$runtime" --no-check -w sub/deep hostile/plain:v1 -- /bin/true
  # In a layer that is kept.
  run --no-project --keep --name "kept-$who" -w /wd hostile/plain:v1 -- \
    /bin/sh -c 'cd /; rmdir /wd; ln -s /proc/1/root /wd' >/dev/null
  tried "a kept layer" run --no-project --from "kept-$who" -w /wd hostile/plain:v1 -- /bin/sh -c "$look"
  # What is mounted on, which the image has made a link.
  failing_with bad-mount m --json run --runtime "$runtime" --no-check --no-project \
    -v "$project:/t$host/sub" hostile/target:v1 -- /bin/true
  nobody_out "a mount's target"
  failing_with bad-mount m --json run --runtime "$runtime" --no-check --no-project \
    --tmpfs "/t$host/memory" hostile/target:v1 -- /bin/true
  nobody_out "a folder in memory"
  # The home of a container that cannot be written otherwise.
  tried "the home of a read-only image" run --no-project --read-only hostile/home:v1 -- \
    /bin/sh -c 'cat /root/secret ~/secret; echo >/root/escaped; echo >~/escaped; true'
}

restarts() {
  tried "a restart" run --no-project --restart on-failure:2 -w /wd hostile/plain:v1 -- \
    /bin/sh -c "$look; cd /; rmdir /wd 2>/dev/null; ln -s /proc/1/root /wd; exit 1"
}

# The program of an honest image swaps the folder all the time while others are put into it.
races() {
  local turn
  run -d --name "race-$who" --no-project -w /wd hostile/plain:v1 -- \
    /bin/sh -c 'cd /; mkdir /real; ln -s /proc/1/root /out; rmdir /wd; ln -s /real /wd; : >/ready
      while true; do ln -sfn /out /wd; ln -sfn /real /wd; done 2>/dev/null' >/dev/null
  wait_until 20 m exec -w / "race-$who" -- /bin/ls /ready
  : >"$work/all"
  for turn in 1 2 3 4 5 6; do
    tried "a race of exec, $turn" m exec -w /wd "race-$who" -- /bin/sh -c "pwd; $look"
    cat "$work/out" >>"$work/all"
  done
  for folder in /out /proc/1/root /proc/1/cwd /proc/self/root/proc/1/root; do
    tried "exec in $folder" m exec -w "$folder" "race-$who" -- /bin/sh -c "$look"
  done
  if grep -vxE '/real|/wd' "$work/all" >&2; then fail "began elsewhere"; fi
  m stop --time 0s "race-$who" >/dev/null
}

for runtime in runc crun; do
  note "$runtime: starts"
  everybody starts
  note "$runtime: restarts"
  everybody restarts
  note "$runtime: races"
  everybody races
done

note "honest folders"
m() { "$MLENV" "$@"; }
for runtime in runc crun; do
  equal "made where it is absent" "/new/folder" "$(run --no-project -w /new/folder hostile/plain:v1 -- /bin/pwd)"
  equal "in memory" "/tmp/a/b" "$(run --no-project -w /tmp/a/b --user 1000 hostile/plain:v1 -- /bin/pwd)"
  run --no-project --keep --name "honest-$runtime" hostile/plain:v1 -- /bin/sh -c 'mkdir /real; ln -s real /link' >/dev/null
  equal "by an honest link" "/real" "$(run --no-project --from "honest-$runtime" -w /link hostile/plain:v1 -- /bin/pwd)"
  ends_with 127 run --no-project hostile/plain:v1 -- /tmp/nothing
  ends_with 126 run --no-project hostile/plain:v1 -- /proc/version
done
