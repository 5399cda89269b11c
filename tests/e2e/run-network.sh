#!/usr/bin/env bash
# Networks of a run: none, and one of its own with ports that this machine passes on, by pasta and by
# slirp4netns, as root and as an ordinary user; nothing stays, whatever is killed.
# packages: passt slirp4netns
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc curl pasta slirp4netns unshare ss
need_root
[ -e /dev/net/tun ] || skip "there is no /dev/net/tun"

small_tree
user_store
mkdir -p "$work/project"
chmod 777 "$work/project"
cd "$work/project"
# As distributions have it, whatever this machine has.
as_root mknod "$work/tun" c 10 200
as_root chmod 666 "$work/tun"
for program in pasta slirp4netns; do
  mkdir "$work/$program"
  ln -s "$(command -v "$program")" "$work/$program/"
done

# launch WHO PROGRAM ARGUMENT…: becomes `mlenv run` with that program alone at hand.
launch() {
  local who=$1 program=$2
  shift 2
  if [ "$who" = root ]; then
    exec "${sudo[@]}" env PATH="$work/$program" MLENV_STORE="$MLENV_STORE" "$MLENV" run "$@"
  fi
  # shellcheck disable=SC2016  # for that shell
  exec "${sudo[@]}" unshare --mount sh -c 'mount --bind "$0" /dev/net/tun && exec "$@"' "$work/tun" \
    setpriv --reuid "$user_id" --regid "$user_id" --clear-groups --no-new-privs \
    env -i HOME="$user_home" PATH="$work/$program" MLENV_STORE="$user_home/store" "$work/bin/mlenv" run "$@"
}
run() { (launch "$@"); }
fetch() { curl --noproxy '*' -fsS -m 5 "http://127.0.0.1:$1/page"; }
refused() { ! fetch "$1"; }
# A process of this test alone: its command line has this test's folder, or the port.
helpers() { pgrep -f "127.0.0.1/$1:80|$user_home/store/tmp|$MLENV_STORE/tmp" || true; }
no_helpers() { [ -z "$(helpers "$1")" ]; }
server='mkdir -p /tmp/s && cd /tmp/s && echo "a page" >page && exec python3 -m http.server 80'

for who in root user; do
  note "$who: none has its own loopback, and nothing else"
  equal "$who: interfaces" lo "$(run "$who" pasta --network none small -- sh -c 'tail -n +3 /proc/net/dev | cut -d: -f1' | xargs)"
  run "$who" pasta --network none small -- python3 -c '
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0)); s.listen()
    socket.create_connection(s.getsockname(), 5).close()' || fail "$who: no loopback"
  for program in pasta slirp4netns; do
    note "$who, $program: a published port"
    port=$(free_port)
    launch "$who" "$program" -p "$port:80" small -- sh -c "$server" >"$work/log" 2>&1 </dev/null &
    job=$!
    started+=("$job")
    wait_until 60 fetch "$port"
    equal "$who, $program: what is fetched" "a page" "$(fetch "$port")"
    # Loopback alone.
    ss -ltn >"$work/listening"
    ! grep -qE "(0\.0\.0\.0|\*|\[::\]):$port " "$work/listening" || fail "$who, $program: others can reach it"
    if run "$who" "$program" -p "$port:80" small -- true 2>"$work/err"; then fail "the port was taken twice"; fi
    grep -qF "the port 127.0.0.1:$port of this machine is taken" "$work/err" || fail "$who, $program: $(cat "$work/err")"
    kill -TERM "$job"
    status=0
    wait "$job" || status=$?
    equal "$who, $program: status" 143 "$status"
    wait_until 20 refused "$port"
    wait_until 20 no_helpers "$port"

    note "$who, $program: mlenv is killed"
    port=$(free_port)
    launch "$who" "$program" -p "$port:80" small -- sh -c "$server" >"$work/log" 2>&1 </dev/null &
    job=$!
    started+=("$job")
    wait_until 60 fetch "$port"
    kill -KILL "$job"
    wait "$job" 2>/dev/null || true
    wait_until 20 refused "$port"
    wait_until 20 no_helpers "$port"
  done
  note "$who: the way out"
  port=$(free_port)
  mkdir -p "$work/www"
  echo "outside" >"$work/www/page"
  start "$work/http.log" python3 -m http.server --bind 127.0.0.1 --directory "$work/www" "$port"
  wait_until 20 fetch "$port"
  # The host's loopback is not to be had from a network of the container's own.
  if run "$who" pasta --network private small -- python3 -c "
import socket; socket.create_connection(('127.0.0.1', $port), 3)" 2>"$work/err"; then fail "$who: the host's loopback was reached"; fi
  equal "$who: from the host's network" outside "$(run "$who" pasta small -- python3 -c "
import urllib.request
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open('http://127.0.0.1:$port/page', timeout=5).read().decode().strip())")"
done

note "slirp4netns: what it does not pass on, and a port that is taken by then"
slirp() { "${sudo[@]}" env PATH="$work/slirp4netns" MLENV_STORE="$MLENV_STORE" "$MLENV" --json run "$@" small -- true; }
port=$(free_port)
failing_with port-taken slirp -p "$port:80" -p "$port:81"
# It has a descriptor for each port, and may not have so many. Nobody has these ports.
words=()
for port in $(python3 -c '
import socket
all = [socket.socket() for _ in range(40)]
for one in all: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in all))'); do words+=(-p "$port:80"); done
(
  ulimit -n 40
  failing_with no-network slirp "${words[@]}"
)
grep -qE 'does not pass on 127\.0\.0\.1:[0-9]+ \(tcp\): .*slirp_add_hostfwd failed' "$work/err" || fail "not its words: $(cat "$work/err")"

note "what cannot be had"
failing_with no-network as_root env PATH="$work/bin" MLENV_STORE="$MLENV_STORE" "$MLENV" --json run --network private small -- true
grep -q 'apt-get install passt' "$work/err" || fail "not what to install: $(cat "$work/err")"
port=$(free_port)
start "$work/http.log" python3 -m http.server --bind 127.0.0.1 "$port"
wait_until 20 curl --noproxy '*' -s "http://127.0.0.1:$port/"
failing_with port-taken "$MLENV" --json run -p "$port:80" small -- true
failing_with no-port "$MLENV" --json run -p 203.0.113.77:8080:80 small -- true
