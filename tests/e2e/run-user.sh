#!/usr/bin/env bash
# `mlenv run --user` by an ordinary user: the job is another user of the image, files that it makes in
# mounts are the caller's, with the ids that /etc/subuid and /etc/subgid give; without them one clear error.
# shellcheck disable=SC2016  # for the shells inside
# packages: uidmap
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc crun jq unshare newuidmap newgidmap
need_root

small_tree
user_store
project=$work/project
mkdir -p "$project/sub" "$work/data"
as_root chown -R "$user_id:$user_id" "$project"
echo original >"$work/data/file"

# The machine's files of users, with the test's.
{
  cat /etc/passwd
  echo "somebody:x:$user_id:$user_id::$user_home:/bin/sh"
} >"$work/passwd"
echo "somebody:700000:30000
$user_id:800000:35536" >"$work/subuid"
echo "somebody:900000:65536" >"$work/subgid"
: >"$work/none"
# with_files PASSWD SUBUID SUBGID COMMAND…: as the user, who may gain what set-user-ID programs give.
with_files() {
  # shellcheck disable=SC2016  # for that shell
  as_root unshare --mount sh -c 'touch /etc/subuid /etc/subgid
    mount --bind "$1" /etc/passwd && mount --bind "$2" /etc/subuid && mount --bind "$3" /etc/subgid
    shift 3; exec "$@"' sh "$1" "$2" "$3" setpriv --reuid "$user_id" --regid "$user_id" --clear-groups \
    env -i -C "$project" HOME="$user_home" LC_ALL=C.UTF-8 MLENV_STORE="$user_home/store" \
    PATH="$work/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "${@:4}"
}

# A device whose hook, a program of this machine, makes folders in the container.
vendor=mlenv-test-user-$$.example
specification=/etc/cdi/$vendor.yaml
cat >"$work/hook" <<'HOOK'
#!/bin/sh
bundle=$(sed 's/.*"bundle": *"\([^"]*\)".*/\1/')
root=$(tr -d '\n' <"$bundle/config.json" | sed 's/.*"root": *{[^}]*"path": *"\([^"]*\)".*/\1/')
mkdir -p -m 700 "$root/opt/by-hook/deep"
chmod 755 "$root/opt/by-hook" "$root/opt/by-hook/deep"
echo made >"$root/opt/by-hook/deep/file"
HOOK
chmod 755 "$work/hook"
trap 'as_root rm -f "$specification"; finish_test' EXIT
as_root mkdir -p /etc/cdi
as_root tee "$specification" >/dev/null <<CDI
cdiVersion: 0.5.0
kind: $vendor/device
devices:
  - name: hook
    containerEdits: {hooks: [{hookName: createContainer, path: $work/hook, args: [hook]}]}
CDI
m() { with_files "$work/passwd" "$work/subuid" "$work/subgid" mlenv "$@"; }
run() { m run --runtime "$runtime" "$@"; }

for runtime in runc crun; do
  note "$runtime: who it is"
  equal "by number" "1000:1000 /home/user-1000" "$(run --user 1000:1000 small -- sh -c 'echo $(id -u):$(id -g) $HOME')"
  equal "by name" "$(run small -- sh -c 'echo $(id -u www-data):$(id -g www-data)') www-data" \
    "$(run --user www-data small -- sh -c 'echo $(id -u):$(id -g) $(id -un)')"
  equal "beyond all ranges" 2000000000:7 "$(run --user 2000000000:7 small -- sh -c 'echo $(id -u):$(id -g)')"
  equal "groups" "1000 20 50" "$(run --user 1000:1000 --group-add staff --group-add 20 small -- id -G)"
  equal "root, as ever, with one id" "0 1" "$(run --user root small -- sh -c 'echo $(id -u) $(grep -c . /proc/self/uid_map)')"
  equal "nobody else's rights" "0000000000000000" "$(run --user 1000:1000 small -- sed -n 's/^CapEff:\t//p' /proc/self/status)"

  note "$runtime: files in mounts"
  run --user 1000:1000 -w sub -v "$work/data/file:/opt/new/deep/file:ro" -v "$work/data:/workspace/inner/most:ro" --tmpfs /opt/memory/x small -- \
    sh -c 'echo x >made; mkdir -p folder/below; cat /opt/new/deep/file; touch /opt/memory/x/y ~/z' >"$work/out"
  equal "a mount" original "$(cat "$work/out")"
  equal "owners" "$user_id:$user_id $user_id:$user_id $user_id:$user_id" \
    "$(stat -c %u:%g "$project/sub/made" "$project/sub/folder/below" "$project/inner/most" | paste -sd' ')"
  as_root rm -r "$project/sub/made" "$project/sub/folder" "$project/inner"
  equal "what is the caller's can be read" secret "$(
    (umask 077 && echo secret >"$project/secret" && as_root chown "$user_id:$user_id" "$project/secret")
    run --user 1000:1000 small -- cat secret
  )"

  note "$runtime: places of mounts are the caller's, wherever links lead"
  as_root ln -s "$project/nowhere" "$project/dangling-outside"
  as_root ln -s new/place "$project/dangling"
  run --user 1000:1000 -v "$work/data/file:/workspace/conf/deep/file" -v "$work/data:/workspace/dangling" \
    --tmpfs /workspace/in/memory small -- sh -c 'cat conf/deep/file new/place/file; stat -c %a in/memory' >"$work/out"
  equal "links" "original original 1777" "$(paste -sd' ' "$work/out")"
  equal "of others" "" "$(find "$project" ! -type l ! -uid "$user_id")"
  as_root rm -r "$project/conf" "$project/new" "$project/in" "$project/dangling" "$project/dangling-outside"
  failing_with bad-mount m --json run --runtime "$runtime" --user 1000:1000 -v "$work/data:/data:ro" --tmpfs /data/cache small -- true
  failing_with bad-mount m --json run --runtime "$runtime" -v "$work/data:/data:ro" --tmpfs /data/cache small -- true
  equal "a read-only mount" file "$(ls "$work/data")"
  as_root chown "$user_id" "$work/data"
  failing_with bad-mount m --json run --runtime "$runtime" --user 1000:1000 -v "$work/data:/data:ro" --tmpfs /data/cache small -- true
  equal "a read-only mount of the caller's" file "$(ls "$work/data")"
  as_root chown root "$work/data"

  note "$runtime: what hooks make can be removed"
  run --user 1000:1000 --device "$vendor/device=hook" small -- cat /opt/by-hook/deep/file >"$work/out"
  equal "a hook" made "$(cat "$work/out")"
  equal "scratch folders" "" "$(as_root find "$user_home/store/tmp" -mindepth 1 -maxdepth 1 2>/dev/null)"
  run --keep --name hooked --user 1000:1000 --device "$vendor/device=hook" small -- true
  equal "kept" made "$(run --from hooked --user 1000:1000 small -- cat /opt/by-hook/deep/file)"
  m runs rm hooked 2>"$work/err"
  equal "layers" "" "$(as_root ls "$user_home/store/kept")"

  if run --user 1000:1000 --read-only small -- sh -c 'echo x >/opt/x' 2>"$work/err"; then fail "the image was written to"; fi
  equal "a read-only image, a home" "" "$(run --user 1000:1000 --read-only small -- sh -c 'echo x >~/x; echo x >made')"

  note "$runtime: status, signals, further commands"
  status=0
  run --user 1000:1000 small -- sh -c 'exit 7' || status=$?
  equal "status" 7 "$status"
  status=0
  run --user 1000:1000 --timeout 1s --stop-signal INT small -- sleep 100 2>"$work/err" || status=$?
  equal "timeout" 124 "$status"
  equal "told" 'mlenv: this run is ended: `--timeout` allows 1 s' "$(cat "$work/err")"
  run -d --name back --user 1000:1000 small -- sleep 1000 >/dev/null
  equal "exec" 1000 "$(m exec back -- id -u)"
  m stop --time 1s back >/dev/null
  run --user 1000:1000 small -- sh -c 'touch started; exec sleep 1000' &
  job=$!
  wait_until 20 test -e "$project/started"
  as_root kill -TERM "$(pgrep -o -u "$user_id" -f "^mlenv run --runtime $runtime --user 1000:1000 small")"
  status=0
  wait "$job" || status=$?
  equal "a signal to mlenv" 143 "$status"
  as_root rm -f "$project/started"
done
runtime=runc

note "kept, too"
run --keep --name mine --user 1000:1000 small -- sh -c 'echo kept >~/file'
equal "kept" kept "$(run --from mine --user 1000:1000 small -- sh -c 'cat ~/file')"
failing_with layer-differs m --json run --from mine small -- true
m runs prune --keep 0 --kept 2>/dev/null
equal "layers" "" "$(as_root ls "$user_home/store/kept")"

note "where there are no such ids"
failing_with no-user-map with_files "$work/passwd" "$work/none" "$work/subgid" mlenv --json run --user 1000:1000 small -- true
grep -qF 'usermod --add-subuids' "$work/err" || fail "no hint: $(cat "$work/err")"
failing_with no-user-map with_files "$work/passwd" "$work/subuid" "$work/none" mlenv --json run --user 1000:1000 small -- true
failing_with no-user-map with_files "$work/passwd" "$work/subuid" "$work/subgid" \
  setpriv --no-new-privs mlenv --json run --user 1000:1000 small -- true
grep -qF 'newuidmap' "$work/err" || fail "not its own words: $(cat "$work/err")"
failing_with no-user-map m --json run --user 1000:1000 --group-add 4000000 small -- true
failing_with no-user m --json run --user nobody-knows-me small -- true
failing_with no-user-map m --json run --group-add staff small -- true

note "nothing is left"
equal "scratch folders" "" "$(as_root find "$user_home/store/tmp" -mindepth 1 -maxdepth 1 2>/dev/null)"
equal "others' files" "" "$(as_root find "$user_home/store" "$project" ! -uid "$user_id")"
