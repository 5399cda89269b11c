#!/usr/bin/env bash
# What a strange caller hands over (open descriptors, closed streams, ignored and blocked signals, an
# umask, limits, variables) reaches no build step, container, job or tool, and breaks nothing. Root's by runc, an ordinary
# user's by crun; both by both with --long.
# shellcheck disable=SC2016  # for other shells
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need busybox python3 flock
need_node_agent
need_root
python3 "$root/tests/support/busybox_image.py" "$work/base.tar" hostile/base:v1
"$MLENV" -q load "$work/base.tar" >/dev/null
mkdir -p "$work/project" "$work/private" "$work/locks"
echo secret >"$work/private/key"
cp "$work/base.tar" "$work/project/"
cd "$work/project"

# What a command finds open above its streams, with what it is; and whether the way out is one.
look='for fd in /proc/self/fd/*; do
  case ${fd##*/} in 0|1|2) continue;; esac
  [ -e $fd ] || continue
  echo "FOUND $fd $(readlink $fd)"
  if [ -e $fd/../private/key ]; then echo "ESCAPED by $fd: $(cat $fd/../private/key)"; fi
  if [ -d $fd ]; then touch $fd/../private/written; fi
done; echo looked'
# with_open COMMAND…: a shell that holds a lock, a folder, a pipe and a file that may be written.
with_open() {
  (
    exec 5<"$work/private/key" 7<>"$work/private/written-to" 9<"$work/locks" 11> >(cat >/dev/null) 200<"$work/private"
    flock 9
    "$@"
  )
}
# Of what it found, only what the look itself opened (the folder that it lists) may be there.
nothing_found() { # nothing_found WHAT FILE
  grep -q looked "$2" || fail "$1: did not run: $(cat "$2")"
  grep -E "ESCAPED by /|FOUND /.*($work/(private|locks)|pipe:)" "$2" && fail "$1: has what the caller had open"
  [ ! -e "$work/private/written" ] || fail "$1: wrote on this machine"
}

note "descriptors: a build step"
printf 'name: r\nbase: oci-archive:base.tar\nrun:\n  - |\n' >recipe.yaml
while IFS= read -r line; do echo "    $line" >>recipe.yaml; done <<<"$look"
with_open "$MLENV" build --verbose recipe.yaml >"$work/built" 2>&1 || fail "build: $(cat "$work/built")"
nothing_found "a build step" "$work/built"

for runtime in runc crun; do
  command -v "$runtime" >/dev/null || continue
  [ "$MLENV_TEST_LONG/$runtime" != 0/crun ] || continue
  note "descriptors: run and exec by $runtime"
  with_open "$MLENV" run --runtime "$runtime" hostile/base:v1 -- sh -c "$look" >"$work/out" 2>&1
  nothing_found "run by $runtime" "$work/out"
  id=$("$MLENV" run --runtime "$runtime" -d hostile/base:v1 -- sleep 100)
  with_open "$MLENV" exec "$id" -- sh -c "$look" >"$work/out" 2>&1
  nothing_found "exec by $runtime" "$work/out"
  "$MLENV" stop "$id" >/dev/null
done
note "descriptors: a job on nodes"
with_open "$MLENV" run --nodes 1 hostile/base:v1 -- sh -c "$look" >"$work/out" 2>&1
nothing_found "a rank" "$work/out"

note "descriptors: of an ordinary user"
user_store 2>/dev/null
as_root cp -r "$work/project" "$user_home/project"
echo '    true executed-again' | as_root tee -a "$user_home/project/recipe.yaml" >/dev/null
as_root chown -R "$user_id:$user_id" "$user_home/project"
(cd "$user_home/project" && with_open as_user MLENV_STORE="$user_home/store" mlenv build --verbose recipe.yaml) >"$work/built" 2>&1 ||
  fail "build by a user: $(cat "$work/built")"
nothing_found "a build step of a user" "$work/built"
cp "$(dirname "$MLENV")"/mlenv-* "$work/bin/"
as_owner() { as_user MLENV_STORE="$user_home/store" mlenv "$@"; }
for runtime in runc crun; do
  [ "$MLENV_TEST_LONG/$runtime" != 0/runc ] || continue
  with_open as_owner run --runtime "$runtime" hostile/base:v1 -- sh -c "$look" >"$work/out" 2>&1
  nothing_found "a run of a user by $runtime" "$work/out"
  id=$(with_open as_owner run --runtime "$runtime" -d hostile/base:v1 -- sleep 100)
  with_open as_owner exec "$id" -- sh -c "$look" >"$work/out" 2>&1
  nothing_found "exec of a user by $runtime" "$work/out"
  flock --nonblock "$work/locks" true || fail "a user's run in the background holds the lock"
  as_owner stop --time 0s "$id" >/dev/null
  as_owner run --runtime "$runtime" hostile/base:v1 -- sh -c 'readlink /proc/self/fd/0; readlink /proc/self/fd/2' >"$work/out" <&- 2>&-
  if grep -F "$user_home" "$work/out"; then fail "$runtime: a file of the user's in the place of a stream"; fi
done
with_open as_owner run --nodes 1 hostile/base:v1 -- sh -c "$look" >"$work/out" 2>&1
nothing_found "a rank of a user" "$work/out"

note "descriptors: programs that mlenv starts"
mkdir -p "$work/tools" "$work/repository"
for tool in git ssh; do
  cat >"$work/tools/$tool" <<SCRIPT
#!/bin/sh
{
$look
} >>"$work/tool"
exec "$(command -v "$tool" || echo false)" "\$@"
SCRIPT
  chmod +x "$work/tools/$tool"
done
(cd "$work/repository" && git init -q && with_open env PATH="$work/tools:$PATH" "$MLENV" run hostile/base:v1 -- true)
wait_until 20 grep -q looked "$work/tool" # by the record of the run, which is completed behind it
nothing_found "git" "$work/tool"
rm -f "$work/tools/git" "$work/tool"
with_open env PATH="$work/tools:$PATH" timeout 60 "$MLENV" run --nodes 1 --engine ssh --hosts 127.0.0.1 hostile/base:v1 -- true >/dev/null 2>&1 </dev/null || true
nothing_found "ssh" "$work/tool"

note "descriptors: a run in the background holds neither the lock nor the pipe of its shell"
for words in "" "--nodes 1"; do
  # Who reads that pipe has its end when the foreground command is over.
  # shellcheck disable=SC2086  # words
  id=$(timeout 60 sh -c 'exec 8>&1 9>"$0/lock"; flock 9;
    "$MLENV" run -d '"$words"' hostile/base:v1 -- sleep 100' "$work/locks") || fail "run -d $words: the pipe stays open"
  flock --nonblock "$work/locks/lock" true || fail "run -d $words: the lock is held"
  "$MLENV" stop "$id" >/dev/null
done

note "descriptors that are named by the command line are read"
got=$("$MLENV" run --env-file <(echo NAMED=yes) hostile/base:v1 -- sh -c 'echo $NAMED')
equal "variable of a substituted process" yes "$got"
"$MLENV" rm hostile/base:v1 >/dev/null
"$MLENV" -q load /dev/fd/6 6<"$work/base.tar" >/dev/null
(exec 9<"$work/locks" && "$MLENV" run --env-file <(echo A=b) hostile/base:v1 -- sh -c "$look") >"$work/out" 2>&1
nothing_found "a run that reads a descriptor" "$work/out"

note "closed streams: no file of the store, nor of this machine, takes their place"
streams='for fd in 0 1 2; do echo "$fd $(readlink /proc/self/fd/$fd)"; done >/tmp/seen; cat /tmp/seen >&2'
for closing in '<&-' '>&-' '<&- >&-' '<&- >&- 2>&-' '2>&-'; do
  rm -rf "$work/kept" && mkdir "$work/kept"
  for words in "run -v $work/kept:/tmp hostile/base:v1 --" "run --nodes 1 -v $work/kept:/tmp hostile/base:v1 --"; do
    case $MLENV_TEST_LONG/$closing/$words in 0/'<&-'/*nodes* | 0/'>&-'/*nodes* | 0/'2>&-'/*nodes*) continue ;; esac
    rm -f "$work/kept/seen"
    # shellcheck disable=SC2086  # words
    eval "\"\$MLENV\" $words sh -c '$streams' $closing" 2>/dev/null || true
    [ -s "$work/kept/seen" ] || fail "$words $closing: did not run"
    grep -F "$work" "$work/kept/seen" && fail "$words $closing: a file of this machine as a stream"
  done
done
equal "what a closed input reads" "" "$("$MLENV" run hostile/base:v1 -- cat <&-)"
rm -f r.lock
"$MLENV" build recipe.yaml <&- 2>&- >"$work/out" || fail "a build without streams"
verify_store

note "signals"
strange() { python3 -c 'import os, signal, sys
for number in (signal.SIGCHLD, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
os.execv(sys.argv[1], sys.argv[1:])' "$@"; }
# Zombies of a caller that does not ask are none to wait for: every command ends, and ends right.
equal "status of a run" 7 "$(status=0; strange "$(command -v timeout)" -s KILL 60 "$MLENV" run hostile/base:v1 -- sh -c 'exit 7' || status=$?; echo $status)"
strange "$(command -v timeout)" -s KILL 100 "$MLENV" run --nodes 1 hostile/base:v1 -- true
rm -f r.lock
strange "$(command -v timeout)" -s KILL 100 "$MLENV" build recipe.yaml >/dev/null
strange "$MLENV" run hostile/base:v1 -- sleep 100 &
pid=$!
sleeps() { pgrep -P "$pid" >/dev/null; }
wait_until 20 sleeps
wait_until 20 sh -c '"$MLENV" ps | grep -q hostile'
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
equal "status of a run that is told to end, whatever was blocked" 143 "$status"
got=$(strange "$MLENV" run hostile/base:v1 -- sh -c 'grep -E "^Sig(Blk|Ign)" /proc/self/status | tr "\n" " "')
[[ $got =~ SigBlk:[[:space:]]0+[[:space:]]SigIgn:[[:space:]]0+ ]] || fail "a container's signals: $got"

note "umask: neither everybody's nor nobody's files"
(umask 000 && MLENV_STORE=$work/open "$MLENV" -q load "$work/base.tar" && MLENV_STORE=$work/open "$MLENV" run hostile/base:v1 -- true)
[ -z "$(find "$work/open" -perm -0002 ! -type l ! -perm -1000 -print -quit)" ] ||
  fail "everybody may write: $(find "$work/open" -perm -0002 ! -type l ! -perm -1000 | head -n 3)"
(umask 777 && MLENV_STORE=$work/shut "$MLENV" -q load "$work/base.tar" && MLENV_STORE=$work/shut "$MLENV" run hostile/base:v1 -- true)

note "variables"
# Of two of one name, all programs are to see the same.
got=$(python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None)
words = [sys.argv[1], "run", "-e", "TWICE", "hostile/base:v1", "--", "sh", "-c", "echo $TWICE"]
argv = (ctypes.c_char_p * (len(words) + 1))(*[w.encode() for w in words], None)
env = [f"{k}={v}" for k, v in os.environ.items()] + ["TWICE=first", "TWICE=second", "nothing", "=x"]
envp = (ctypes.c_char_p * (len(env) + 1))(*[e.encode() for e in env], None)
libc.execve(words[0].encode(), argv, envp)' "$MLENV")
equal "a variable that is there twice" first "$got"
for runtime in runc crun; do
  command -v "$runtime" >/dev/null || continue
  with_open env LISTEN_FDS=300 LISTEN_FDNAMES=a NOTIFY_SOCKET="$work/notify" timeout 60 "$MLENV" run --runtime "$runtime" \
    hostile/base:v1 -- sh -c "$look"' ; env' >"$work/out" 2>&1 || fail "by $runtime, as a service: $(cat "$work/out")"
  nothing_found "a service by $runtime" "$work/out"
  grep -E 'LISTEN_|NOTIFY_' "$work/out" && fail "by $runtime: variables of a service manager in the container"
done

note "a folder that is gone"
gone() { # gone COMMAND…: in a folder that was removed
  (mkdir "$work/gone" && cd "$work/gone" && rmdir "$work/gone" && timeout 60 "$@")
}
for words in 'run hostile/base:v1 -- true' 'run --nodes 1 hostile/base:v1 -- true' 'run -v x:/x hostile/base:v1 -- true' init \
  'export slurm hostile/base:v1 -- true'; do
  # shellcheck disable=SC2086  # words
  failing_with folder-gone gone "$MLENV" --json $words
done
gone "$MLENV" run --no-project hostile/base:v1 -- true || fail "a run that needs no folder"

note "limits: an error at most, and a store that verifies"
# Through a pipe, since no file can be written.
said=$( (ulimit -f 0 && MLENV_STORE=$work/none "$MLENV" -q load "$work/base.tar") 2>&1) || true
[[ $said == *'File too large'* ]] || fail "the limit of a file's size is not told: $said"
equal "the signal of that limit in a container" 153 \
  "$(ulimit -f 4000 && "$MLENV" run hostile/base:v1 -- sh -c 'head -c 5000000 /dev/zero >/tmp/x; echo $?')"
for limit in '-f 8' '-n 12' '-n 33' '-f 0'; do
  status=0
  # shellcheck disable=SC2086  # words
  (ulimit $limit && MLENV_STORE=$work/limited timeout 60 "$MLENV" -q load "$work/base.tar") >"$work/out" 2>&1 || status=$?
  [ "$status" != 124 ] || fail "with ulimit $limit: does not end"
  [ "$status" != 70 ] || fail "with ulimit $limit: $(cat "$work/out")"
done
limited() { # limited LIMIT COMMAND…
  # shellcheck disable=SC2086  # two words
  (ulimit $1 && timeout 60 "${@:2}")
}
# A stack of 16 KiB is too small for the loader, at times, before mlenv has its say.
for limit in '-s 32' '-s 64' '-n 8' '-n 16' '-n 31'; do
  for words in images 'run hostile/base:v1 -- true'; do
    # shellcheck disable=SC2086  # words
    failing_with small-limits limited "$limit" "$MLENV" --json $words
    grep -q "ulimit ${limit% *} " "$work/err" || fail "does not say what helps: $(cat "$work/err")"
  done
done
limited '-s 256' "$MLENV" run hostile/base:v1 -- true || fail "a stack of 256 KiB"
MLENV_STORE=$work/limited "$MLENV" -q load "$work/base.tar" >/dev/null
verify_store "$work/limited"
verify_store
