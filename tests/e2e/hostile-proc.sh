#!/usr/bin/env bash
# A program that looks at every process of its container by /proc: at the first one, which is mlenv's, and at those that
# come and go when others are put in. It sees neither files nor words nor variables of the machine, and ends nobody.
# Run by root with runc, and by an ordinary user with crun; by both with both with --long.
# shellcheck disable=SC2016,SC2317  # for the shells inside; `m` is called by `run`
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/hostile.sh
. "$root/tests/support/hostile.sh"

hostile_image plain
gcc -static -O2 -o "$work/tracer" "$root/tests/support/first_program_tracer.c"
hostile_image tracer "$work/tracer"
user_store
everybody() { # everybody COMMAND…: with $runtime
  [ "$MLENV_TEST_LONG/$runtime" = 0/crun ] || as_the_root "$@"
  [ "$MLENV_TEST_LONG/$runtime" = 0/runc ] || as_the_user "$@"
}
as_the_root() {
  m() { MLENV_TEST_WORD=$secret "$MLENV" "$@"; }
  who=root-$runtime
  "$@"
}
as_the_user() {
  m() { as_user MLENV_TEST_WORD="$secret" MLENV_STORE="$user_home/store" mlenv "$@"; }
  who=user-$runtime
  "$@"
}
run() { m run --runtime "$runtime" --no-check --no-project "$@"; }

# The first process: nothing of it can be opened, and what everybody may read says nothing.
first='for one in exe environ maps smaps mem auxv fd/0 fd/1 fd/2 fd/3; do
    if cat /proc/1/$one >/dev/null 2>&1; then echo "opens $one"; fi
  done
  for one in root cwd exe fd/0 fd/1 fd/2 fd/3 ns/mnt ns/pid; do readlink /proc/1/$one; ls /proc/1/$one/ 2>/dev/null; done
  if (: >>/proc/1/mem) 2>/dev/null; then echo "its memory opens"; fi
  wc -c </proc/1/cmdline
  grep -cvE "^[0-9]+ [0-9]+ [0-9:]+ / / ro,nosuid,nodev,noexec" /proc/1/mountinfo
  grep -E "^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)" /proc/1/status | grep -vE ":.(0000000000000000|1)$"
  busybox kill -9 1; busybox kill -15 1; busybox kill -0 1 && echo lives'
look_at_first() {
  tried "the first process" run hostile/plain:v1 -- /bin/sh -c "$first"
  equal "$who: what is seen of the first process" "0 0 lives" "$(paste -sd' ' "$work/out")"
  tried "its network" run --network none hostile/plain:v1 -- \
    /bin/sh -c 'cat /proc/1/net/dev | wc -l; cat /proc/1/net/unix /proc/1/net/tcp | wc -l'
  equal "$who: the first process's network" "3 2" "$(paste -sd' ' "$work/out")"
}

# All others, while commands are put in.
all='while [ ! -e /end ]; do
    for one in /proc/[0-9]*; do
      [ "$one" = "/proc/$$" ] && continue
      cat "$one/root'$host'/secret" "$one/cwd'$host'/secret" 2>/dev/null
      for file in "$one"/fd/*; do cat "$file'$host'/secret" 2>/dev/null; done
      for words in environ cmdline; do tr "\000" "\012" <"$one/$words"; done 2>/dev/null | grep "^MLENV_TEST_WORD="
      grep -F "'$host'" "$one/mountinfo" 2>/dev/null
    done
  done; echo looked'
look_at_others() {
  run -d --name "others-$who" hostile/plain:v1 -- /bin/sh -c "$all" >/dev/null
  for _ in 1 2 3 4 5; do m exec "others-$who" -- /bin/true; done
  m exec "others-$who" -- /bin/touch /end
  m wait "others-$who" >/dev/null
  m logs "others-$who" >"$work/out" 2>"$work/err"
  nobody_out "others"
  equal "$who: what is seen of others" looked "$(sort -u "$work/out")"
}

# Who watches a run from outside still sees its processes, and none is left when it is over.
watched() {
  run -d --name "seen-$who" hostile/plain:v1 -- /bin/sh -c 'while true; do :; done' >/dev/null
  for _ in 1 2 3 4 5; do # a busy machine lets it have its first turn late
    m --json watch "seen-$who" --interval 0.3s --for 1s >"$work/out" 2>"$work/err" || fail "$who: $(cat "$work/err")"
    if jq -e '.processes[]?' "$work/out" >/dev/null; then break; fi
  done
  equal "$who: watched processes" sh "$(jq -r ".processes[]?.name" "$work/out" | sort -u)"
  m stop --time 0s "seen-$who" >/dev/null
  m wait "seen-$who" >/dev/null || true
}

for runtime in runc crun; do
  note "$runtime: the first process"
  everybody look_at_first
  note "$runtime: those that come and go"
  everybody look_at_others
  note "$runtime: from outside"
  everybody watched
done

# Before its filter of system calls is on, nobody of the container gets into the program that starts a command: a
# folder that is long to enter keeps it busy while somebody waits for it. Below twenty links: the kernel, disturbed in a
# walk, begins it again, but goes on counting links up to forty.
enter_traced() {
  run -d --name "traced-$who" hostile/tracer:v1 -- /opt/tracer >/dev/null
  m exec "traced-$who" -- /bin/sh -c 'mkdir -p /tmp/d; steps=$(printf "d/../%.0s" $(seq 800))
    ln -s /tmp /tmp/x0; i=1; while [ $i -lt 19 ]; do ln -s "$steps/x$((i - 1))" /tmp/x$i; i=$((i + 1)); done'
  for try in $(seq 60); do
    m exec -w /tmp/x18 "traced-$who" -- /bin/true
    m logs "traced-$who" >"$work/out" 2>&1 || true
    if [ "$try" -ge 10 ] && grep -q '^seen' "$work/out"; then break; fi
  done
  m stop --time 0s "traced-$who" >/dev/null || true
  m wait "traced-$who" >/dev/null || true
  grep -qx 'mode 111' "$work/out" || fail "$who: who starts it may read it: $(cat "$work/out")"
  grep -qx 'seen nothing' "$work/out" || fail "$who: it was not seen: $(cat "$work/out")"
  ! grep -E 'seen (memory|traced)' "$work/out" || fail "$who: somebody got into it"
}
for runtime in runc crun; do
  note "$runtime: the program that starts the command"
  everybody enter_traced
done
