#!/usr/bin/env bash
# `mlenv run`: the job's status, streams, environment, mounts and folders, as root and as an ordinary
# user; the image stays as it is, and nothing is left behind.
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc crun
need_root

small_tree
user_store
mkdir -p "$work/project" "$work/data"
echo 'import sys, six; print("train", *sys.argv[1:])' >"$work/project/train.py"
echo original >"$work/data/file"
chmod -R a+rwX "$work/project" "$work/data"

run_as() { # run_as WHO ARGUMENT…: `mlenv run small` in the project
  local who=$1
  shift
  if [ "$who" = root ]; then
    (cd "$work/project" && as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" run small "$@")
  else
    (cd "$work/project" && as_user MLENV_STORE="$user_home/store" mlenv run small "$@")
  fi
}

status_of() { # status_of WHO ARGUMENT…
  local status=0
  run_as "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}

for who in root user; do
  note "$who"
  equal "$who: output" "train a b" "$(run_as "$who" -- python train.py a b)"
  equal "$who: status" 42 "$(status_of "$who" -- sh -c 'exit 42')"
  equal "$who: a program that is not there" 127 "$(status_of "$who" -- no-such-program)"
  grep -q 'no-such-program' "$work/err" || fail "$who: nothing said about it"
  equal "$who: a file that is no program" 126 "$(status_of "$who" -- /etc/passwd)"
  equal "$who: a signal" 143 "$(status_of "$who" -- sh -c 'kill -TERM $$')"
  equal "$who: our own failure" 125 "$(status_of "$who" --runtime no-such-runtime -- true)"
  equal "$who: wrong usage" 125 "$(status_of "$who" -v "$work/data:/data:x" -- true)"
  equal "$who: input" hello "$(echo hello | run_as "$who" -- cat)"
  equal "$who: errors apart" out "$(run_as "$who" -- sh -c 'echo out; echo err >&2' 2>/dev/null)"
  # shellcheck disable=SC2016  # for the shell inside
  equal "$who: variables" "1 two /root" "$(run_as "$who" -e A=1 -e B=two -- sh -c 'echo $A $B $HOME')"
  equal "$who: folder" /opt "$(run_as "$who" -w /opt -- pwd)"
  equal "$who: it is root inside" 0 "$(run_as "$who" -- id -u)"
  equal "$who: a mount" original "$(run_as "$who" -v "$work/data:/data:ro" -- cat /data/file)"
  for runtime in runc crun; do
    equal "$who, $runtime: a file, where the image has none" original \
      "$(run_as "$who" --runtime "$runtime" -v "$work/data/file:/opt/new/file:ro" -- cat /opt/new/file)"
  done
  run_as "$who" -v "$work/data:/data:ro" -- sh -c 'echo new >/data/file' 2>"$work/err" &&
    fail "$who: a read-only mount was written to"
  run_as "$who" -- sh -c "touch made-by-$who; rm -rf /usr/lib/python3; rm /etc/passwd; echo x >/new"
  equal "$who: the image is as it was" "train" "$(run_as "$who" -- python train.py)"
  run_as "$who" -- sh -c 'echo x >/dev/shm/x && echo x >/tmp/x && [ ! -w /sys/kernel ] && [ -c /dev/null ]'
done
equal "owner of root's file" 0 "$(stat -c %u "$work/project/made-by-root")"
equal "owner of the user's file" "$user_id" "$(stat -c %u "$work/project/made-by-user")"

note "what is asked wrongly"
complaint() { # complaint TEXT ARGUMENT…: said once, and the container did not start
  local text=$1 status=0
  shift
  run_as root "$@" >"$work/out" 2>"$work/err" || status=$?
  equal "status of $*" 125 "$status"
  equal "errors about $*" 1 "$(grep -c '^error: ' "$work/err")"
  grep -qF "$text" "$work/err" || fail "$*: $(cat "$work/err")"
  ! grep -qE 'runc run|/tmp/tmp-' "$work/err" || fail "inner matters: $(cat "$work/err")"
}
complaint "the container's own \`/proc\`" -v /usr:/proc -- true
complaint 'the source is a folder, and the target is a file' -v /usr:/etc/passwd -- true
complaint "is a file, not a folder" -w train.py -- true
complaint "there is no such folder" -w absent/sub -- true
complaint "leads out of" -w ../.. -- true
[ ! -e "$work/project/absent" ] || fail "a folder was made in the project"
complaint "standard input is none" -t -- true </dev/null
complaint "started no container" --runtime /bin/true -- true
status=0
(cd "$work/project" && as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" --json run small -- no-such-program) 2>"$work/err" ||
  status=$?
equal "status with --json" 127 "$status"
equal "lines about it" 1 "$(grep -c no-such-program "$work/err")"

note "no namespaces"
# A user namespace has limits of its own, for those below it.
# shellcheck disable=SC2016  # for that shell
failing_with no-namespace as_root env MLENV_STORE="$MLENV_STORE" unshare --user --map-root-user sh -c '
  echo 0 >/proc/sys/user/max_user_namespaces
  echo 0 >/proc/sys/user/max_mnt_namespaces
  exec "$0" --json run small -- true' "$MLENV"

note "a store of somebody else"
chmod -R a+rX "$MLENV_STORE"/{names,blobs,version}
chmod a+rx "$MLENV_STORE"
for arguments in "tag small mine" "rm small" "run small -- true"; do
  # shellcheck disable=SC2086  # several words
  as_user MLENV_STORE="$MLENV_STORE" mlenv $arguments 2>"$work/err" && fail "$arguments succeeded"
  grep -qF "the store \`$MLENV_STORE\` cannot be written" "$work/err" || fail "$arguments: $(cat "$work/err")"
  grep -q '^hint: set MLENV_STORE' "$work/err" || fail "no hint: $(cat "$work/err")"
done

note "nothing is left"
for store in "$MLENV_STORE" "$user_home/store"; do
  equal "scratch folders" "" "$(as_root find "$store/tmp" -mindepth 1 -maxdepth 1 2>/dev/null)"
  ! grep -q " $store" /proc/self/mountinfo || fail "a mount is left in $store"
done
verify_store
