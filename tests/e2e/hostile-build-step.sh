#!/usr/bin/env bash
# A build step that attacks whoever builds: it is refused what a container is refused, has nothing of the caller's
# (keys, open files, processes), and whatever it leaves or does not end, ends; as root and as an ordinary user.
# shellcheck disable=SC2016  # for the shells inside
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc busybox python3 setpriv unshare
need_root

gcc -static -O1 -o "$work/probe" "$root/tests/support/confinement_probe.c"
mkdir "$work/p" "$work/home"
python3 "$root/tests/support/busybox_image.py" "$work/p/base.tar" base:v1 "$work/probe"
make_user
as_root chmod a+rx "$work" "$work/p"
marker=86$((RANDOM % 900000 + 100000))

# recipe FILE: of the step on standard input
recipe_of() {
  { printf 'name: hostile\nbase: oci-archive:base.tar\nrun:\n  - |\n' && sed 's/^/    /'; } >"$work/p/$1.yaml"
}
# project WHO NAME: a folder of theirs with the recipe; sets $folder and $secrets, a folder that nobody else reads
project() {
  folder=$work/home/$1-$2
  secrets=$folder-secrets
  mkdir -p "$folder" "$secrets/locks"
  cp "$work/p/base.tar" "$work/p/$2.yaml" "$folder/"
  echo "the secret of this machine" >"$secrets/key"
  chmod 700 "$secrets"
  [ "$1" = root ] || as_root chown -R "$user_id:$user_id" "$folder" "$secrets"
}
# build WHO NAME: with a key in its session, and open: a folder, a file and a socket
cat >"$work/open.py" <<'PYTHON'
import os, socket, sys
os.dup2(os.open(sys.argv[1] + "/locks", os.O_RDONLY), 9)
os.dup2(os.open(sys.argv[1] + "/key", os.O_RDWR), 5)
here, there = socket.socketpair()
os.dup2(here.fileno(), 77)
for fd in (5, 9, 77):
    os.set_inheritable(fd, True)
os.execvp(sys.argv[2], sys.argv[2:])
PYTHON
build() {
  local who=$1 name=$2
  shift 2
  # One store for a case: nothing is taken from an earlier one.
  local words=(python3 "$work/open.py" "$secrets" "$work/probe" with-key)
  if [ "$who" = root ]; then
    (cd "$folder" && as_root env HOME="$work/home" MLENV_STORE="$work/store-$name" "$@" "${words[@]}" "$MLENV" --verbose build "$name.yaml")
  else
    (cd "$folder" && as_user MLENV_STORE="$user_home/store-$name" "$@" "${words[@]}" mlenv --verbose build "$name.yaml")
  fi
}
said() { sed -n 's/^.*run: //p' "$work/err"; }
gone() { ! pgrep -f "sleep $marker" >/dev/null; }

recipe_of look <<'STEP'
/opt/probe
for fd in /proc/self/fd/*; do
  case ${fd##*/} in [012]) continue ;; esac
  [ -e "$fd" ] && [ "$(readlink "$fd")" != /proc/self/fd ] && [ "${fd##*/}" != 3 ] && echo "OPEN $fd $(readlink "$fd")"
  if [ -e "$fd/../key" ]; then echo "READ $(cat "$fd/../key")"; echo written >"$fd/../written"; fi
done
for pid in /proc/[0-9]*; do
  [ -e "$pid/root/etc/machine-id" ] && echo "ROOT $pid"
  [ "$pid" != /proc/1 ] || for fd in "$pid"/fd/* "$pid/cwd" "$pid/exe"; do readlink "$fd" && echo "FD $fd"; done 2>/dev/null
  tr '\0' '\n' <"$pid/environ" 2>/dev/null | grep MLENV_STORE && echo "ENVIRON $pid"
done
echo '|/bin/sh' 2>/dev/null >/proc/sys/kernel/core_pattern && echo "CORE"
(: >/proc/1/mem) 2>/dev/null && echo "WRITE /proc/1/mem"
for file in /proc/keys /proc/kcore /proc/interrupts /proc/timer_list; do
  [ -e "$file" ] && [ -n "$(head -c 1 "$file")" ] && echo "HIDDEN $file"
done
echo "processes $(ulimit -u)"
echo "ids $(cat /proc/sys/kernel/pid_max)"
STEP
recipe_of strike <<'STEP'
trap '' TERM HUP INT
kill -9 1; kill -TERM 1; kill -9 -1
echo survived
(trap '' TERM HUP INT; setsid sleep MARKER >/dev/null 2>&1 </dev/null &)
sleep MARKER &
exit 0
STEP
sed -i "s/MARKER/$marker/" "$work/p/strike.yaml"
recipe_of "endless$marker" <<'STEP'
trap '' TERM HUP INT
(trap '' TERM HUP INT; setsid sleep MARKER >/dev/null 2>&1 </dev/null &)
echo began
while :; do sleep MARKER; done
STEP
sed -i "s/MARKER/$marker/" "$work/p/endless$marker.yaml"

largest_id=$(cat /proc/sys/kernel/pid_max)
for who in root user; do
  note "$who: what a step sees"
  project "$who" look
  build "$who" look >"$work/out" 2>"$work/err" || fail "$who: $(cat "$work/err")"
  said >"$work/said"
  for line in "call keyctl refused" "call add_key refused" "call request_key refused" "call bpf refused" \
    "call perf_event_open refused" "call userfaultfd refused" "call io_uring_setup refused" "call unshare_user refused" \
    "call clone_user refused" "call clone3 refused" "call mount refused" "call umount2 refused" "call setns refused" \
    "call kexec_load refused" "call open_by_handle_at refused" "call pidfd_getfd refused" "socket vsock refused" \
    "socket alg refused" "key login hidden" "mode NoNewPrivs 1" "mode Seccomp 2" "processes 8192"; do
    grep -qxF "$line" "$work/said" || fail "$who: not \`$line\`: $(cat "$work/said")"
  done
  # Of the machine nothing was changed; where a process namespace has an own one (Linux 6.14), it is this.
  equal "the machine's largest process id" "$largest_id" "$(cat /proc/sys/kernel/pid_max)"
  if [ "$(printf '%s\n' 6.14 "$(uname -r)" | sort -V | head -n 1)" = 6.14 ]; then
    grep -qxF "ids 8192" "$work/said" || fail "$who: $(grep ids "$work/said")"
  fi
  # What a container of docker has: 8 is CAP_SETPCAP, 21 CAP_SYS_ADMIN.
  equal "$who: capabilities" "0 1 3 4 5 6 7 8 10 13 18 27 29 31" "$(sed -n 's/^cap CapEff_\([0-9]*\) .*/\1/p' "$work/said" | xargs)"
  ! grep -E '^(OPEN|READ|ROOT|FD|ENVIRON|CORE|WRITE|HIDDEN) |^CORE$' "$work/said" || fail "$who: see above"
  [ ! -e "$secrets/written" ] || fail "$who: a step wrote outside"
  equal "$who: secrets" "the secret of this machine" "$(as_root cat "$secrets/key")"
  look=$(tail -n 1 "$work/out")
  [ "$who" = root ] || equal "the user's digest" "$of_root" "$look"
  of_root=$look

  note "$who: a step that strikes at its surroundings, and leaves a daemon"
  project "$who" strike
  build "$who" strike >"$work/out" 2>"$work/err" || true
  wait_until 20 gone

  note "$who: a step that does not end is ended with mlenv"
  project "$who" "endless$marker"
  nothing_said
  build "$who" "endless$marker" >"$work/out" 2>"$work/err" &
  job=$!
  wait_until 30 grep -q 'run: began' "$work/err"
  pkill -TERM -f -- "build endless$marker.yaml" || true
  wait "$job" && fail "$who: it was built"
  wait_until 20 gone
  left=$work/store-endless$marker
  [ "$who" = root ] || left=$user_home/store-endless$marker
  ! grep -q " $left" /proc/self/mountinfo || fail "$who: a mount is left"
done

# A program that forks without end, which no error of fork() ends. (Its children only wait: this machine is others', too.)
cat >"$work/bomb.c" <<'C'
#include <sys/types.h>
#include <unistd.h>
int main(void) {
  for (;;) {
    pid_t child = fork();
    if (child == 0) pause();
    if (child < 0) usleep(1000);
  }
}
C
gcc -static -O1 -o "$work/bomb" "$work/bomb.c"
python3 "$root/tests/support/busybox_image.py" "$work/p/base.tar" base:v1 "$work/bomb"
recipe_of bomb <<'STEP'
/opt/bomb
STEP
for who in root user; do
  note "$who: a fork bomb ends, and says so"
  project "$who" bomb
  status=0
  build "$who" bomb >"$work/out" 2>"$work/err" || status=$?
  equal "$who: status" 1 "$status"
  grep -q 'made processes without end' "$work/err" || fail "$who: $(tail "$work/err")"
  if pgrep -x bomb >/dev/null; then fail "$who: some are left"; fi
done
note "user: within a lower limit of the caller's, too"
rm -rf "$user_home/store-bomb"
ends_with 1 build user bomb prlimit --nproc=300:300
grep -q 'made processes without end' "$work/err" || fail "$(tail "$work/err")"
note "user: where others of the user's have a part of that limit"
# They end with their input.
exec {others}> >(as_user python3 -c '
import os, sys
ends = os.pipe()
for _ in range(200):
    if os.fork() == 0:
        os.close(ends[1])
        os.read(ends[0], 1)
        os._exit(0)
print("there", flush=True)
sys.stdin.read()' >"$work/others")
wait_until 20 grep -q there "$work/others"
rm -rf "$user_home/store-bomb"
ends_with 1 build user bomb timeout 60 prlimit --nproc=300:300
exec {others}>&-
grep -q 'made processes without end' "$work/err" || fail "$(tail "$work/err")"
cd "$work/home/root-bomb"
failing_with too-many-processes env MLENV_STORE="$work/store-again" "$MLENV" --json build bomb.yaml
