#!/usr/bin/env bash
# `mlenv run --jupyter`: PyPI's JupyterLab, served to this machine alone; a kernel that runs a cell, as
# root (in front) and as an ordinary user (in the background, in a network of its own). With
# MLENV_TEST_LONG=1 both in both ways, Docker and podman serve it, and a headless browser uses it as a person does
# (MLENV_TEST_SCREENSHOT: where its picture goes).
# packages: passt
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need runc python3 jq curl ss pasta unshare
need_root
[ -e /dev/net/tun ] || skip "there is no /dev/net/tun"

path=$work/lab.yaml
small_recipe "$path" jupyterlab
sed -i 's/^name: .*/name: lab/' "$path"
[ "$MLENV_TEST_LONG" = 0 ] || sed -i 's/^packages: .*/packages: [jupyterlab, matplotlib]/' "$path"
base_store
build_digest "$path" >/dev/null
make_user
mkdir -p "$work/project"
chmod a+rwX "$work/project"
cp "$root/tests/support/kernel.py" "$work/project/"
# As distributions have it, whatever this machine has.
as_root mknod "$work/tun" c 10 200
as_root chmod 666 "$work/tun"

words() { # words WHO ARGUMENT…: sets $words, a command line of mlenv as that user in the project
  if [ "$1" = root ]; then
    words=("${sudo[@]}" env -C "$work/project" SSH_CONNECTION="192.0.2.1 5000 192.0.2.2 2222"
      MLENV_STORE="$MLENV_STORE" "$MLENV" "${@:2}")
  else
    # shellcheck disable=SC2016  # for that shell
    words=("${sudo[@]}" unshare --mount sh -c 'mount --bind "$0" /dev/net/tun && exec "$@"' "$work/tun" setpriv --reuid "$user_id" --regid "$user_id" --clear-groups --no-new-privs
      env -i -C "$work/project" HOME="$user_home" PATH="$PATH" MLENV_STORE="$MLENV_STORE" "$work/bin/mlenv" "${@:2}")
  fi
}
m() { # m WHO ARGUMENT…
  words "$@"
  "${words[@]}"
}
stop_all() { # root may stop everybody's
  local id
  m root ps --names 2>/dev/null | while read -r id; do m root stop --time 0 "$id" >/dev/null 2>&1 || true; done
}
trap 'status=$?; stop_all; end_engines; (exit "$status"); finish_test' EXIT
has_line() { grep -q "$1" "$2"; }
status_at() { curl --noproxy '*' -s -o /dev/null -w '%{http_code}' "$1" || true; }
loopback_only() { # loopback_only PORT
  ss -ltn >"$work/listening"
  grep -q "127\.0\.0\.1:$1 " "$work/listening" || fail "nobody listens on 127.0.0.1:$1"
  ! grep -qE "(0\.0\.0\.0|\*|\[::\]):$1 " "$work/listening" || fail "others can reach port $1"
}
nobody_at() { [ "$(status_at "http://127.0.0.1:$1/api")" = 000 ]; }

in_front() { # in_front WHO
  local who=$1 port job url token status command words
  note "$who: in front"
  port=$(free_port)
  words "$who" --color never run --jupyter="$port" --name "$who" lab
  # What bash starts in the background ignores SIGINT, and so would mlenv.
  env --default-signal=INT "${words[@]}" >"$work/out" 2>"$work/err" </dev/null &
  job=$!
  started+=("$job")
  wait_until 120 has_line '?token=' "$work/out"
  url=$(cat "$work/out")
  [[ $url =~ ^http://127\.0\.0\.1:$port/lab\?token=([0-9a-f]{48})$ ]] || fail "not a URL: $url"
  token=${BASH_REMATCH[1]}
  loopback_only "$port"
  equal "with the token" 200 "$(status_at "http://127.0.0.1:$port/api/contents?token=$token")"
  equal "without it" 403 "$(status_at "http://127.0.0.1:$port/api/contents")"
  equal "its folder is the project" kernel.py \
    "$(curl --noproxy '*' -s "http://127.0.0.1:$port/api/contents?token=$token" | jq -r '.content[].name')"
  equal "told again" "$url" "$(m "$who" runs url "$who")"
  equal "a cell" 42 "$(m "$who" exec "$who" python kernel.py "127.0.0.1:$port" '6*7')"
  # shellcheck disable=SC2016  # for the shell inside
  equal "nobody else reaches the kernel" ipc "$(m "$who" exec "$who" sh -c 'cat /dev/shm/jupyter/kernel-*.json' | jq -r .transport)"
  equal "the kernel's Python" "'/opt/venv/bin/python'" "$(m "$who" exec "$who" python kernel.py "127.0.0.1:$port" 'import sys; sys.executable')"
  [ "$who" = root ] || equal "whose files" "$user_id" "$(
    m "$who" exec "$who" python kernel.py "127.0.0.1:$port" 'open("made", "w").write("x")' >/dev/null
    stat -c %u "$work/project/made"
  )"
  # Nobody else's: neither a command line nor the record holds the token.
  for command in /proc/[0-9]*/cmdline; do
    if tr '\0' ' ' 2>/dev/null <"$command" | grep -F "$token" >"$work/seen"; then fail "in a command line: $(cat "$work/seen")"; fi
  done
  m "$who" --json runs show "$who" >"$work/record"
  ! grep -qF "$token" "$work/record" || fail "the record holds the token"
  if [ "$who" = root ]; then
    grep -qE -- "^from the machine that you came from: ssh -N -L $port:127.0.0.1:$port -p 2222 .+@192\.0\.2\.2\$" "$work/err" ||
      fail "no way here by ssh: $(cat "$work/err")"
  fi
  as_root kill -INT "$job"
  ended() { ! m "$who" ps --names | grep -x "$who"; }
  wait_until 60 ended
  status=0
  wait "$job" || status=$?
  equal "$who: status" 0 "$status"
  nobody_at "$port" || fail "somebody listens still"
  failing_with run-ended m "$who" --json runs url "$who"
  rm -f "$work/project/made"
}

in_background() { # in_background WHO
  local who=$1 port url
  note "$who: in the background, in a network of its own"
  port=$(free_port)
  m "$who" --json run -d --name back --network private --jupyter="$port" lab >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
  url=$(jq -r .url "$work/out")
  loopback_only "$port"
  equal "with the token" 200 "$(status_at "http://127.0.0.1:$port/api/contents?token=${url#*token=}")"
  equal "told again" "$url" "$(m "$who" --json runs url back | jq -r .url)"
  equal "a cell" 42 "$(m "$who" exec back python kernel.py "127.0.0.1:$port" '6*7')"
  failing_with port-taken m "$who" --json run --jupyter="$port" lab
  m "$who" stop back >/dev/null
  equal "$who: ends of itself" "0 stop" "$(m "$who" --json runs show back | jq -r '"\(.end.exit_code) \(.end.ended_by)"')"
}

in_front root
[ "$MLENV_TEST_LONG" = 0 ] || in_background root

note "Ctrl-C on a terminal asks nothing"
cat >"$work/terminal.py" <<'PYTHON'
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
out = b""
typed = False
while True:
    try:
        data = os.read(master, 1000)
    except OSError:
        break
    if not data:
        break
    out += data
    if not typed and b"ends it" in out:
        os.write(master, b"\x03")
        typed = True
sys.stdout.write(out.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
words root run --jupyter lab
status=0
timeout 120 python3 "$work/terminal.py" "${words[@]}" >"$work/out" 2>&1 || status=$?
equal "status" 0 "$status"
! grep -qi 'shut\s*down this' "$work/out" || fail "it asks: $(cat "$work/out")"

note "a token of one's own; what cannot be"
port=$(free_port)
equal "own token" "http://127.0.0.1:$port/lab?token=mine" \
  "$(JUPYTER_TOKEN=mine m root -q --json run -d --name own -e JUPYTER_TOKEN=mine --jupyter="$port" lab | jq -r .url)"
m root stop own >/dev/null
failing_with no-jupyter m root --json run --jupyter base
failing_with jupyter-failed m root --json run --jupyter lab -- --no-such-option
failing_with jupyter-failed m root --json run -d --jupyter lab -- --no-such-option
grep -q 'no-such-option' "$work/err" || fail "not what it said: $(cat "$work/err")"
m root run -d --name plain base -- sleep 600 >/dev/null
failing_with no-notebook m root --json runs url plain
m root stop --time 0 plain >/dev/null

if [ "$MLENV_TEST_LONG" != 0 ]; then
  note "docker and podman serve it as well, and its image is not unpacked here"
  need podman
  # shellcheck disable=SC2119  # no options
  start_docker
  podman_settings
  set_root_words
  unpacked_store=$MLENV_STORE
  export MLENV_STORE=$work/packed
  as_root cp -a "$unpacked_store" "$MLENV_STORE"
  as_root rm -rf "$MLENV_STORE/trees"
  by_engine() { # by_engine RUNTIME
    local port url
    port=$(free_port)
    (cd "$work/project" && "${root_words[@]}" MLENV_STORE="$MLENV_STORE" "$MLENV" --json run -d --name "$1" --runtime "$1" --jupyter="$port" lab) \
      >"$work/out" 2>"$work/err" || fail "$1: $(cat "$work/err")"
    url=$(jq -r .url "$work/out")
    loopback_only "$port"
    equal "$1: with the token" 200 "$(status_at "http://127.0.0.1:$port/api/contents?token=${url#*token=}")"
    equal "$1: without it" 403 "$(status_at "http://127.0.0.1:$port/api/contents")"
    equal "$1: a cell" 42 "$(m root exec "$1" python kernel.py "127.0.0.1:$port" '6*7')"
    m root stop "$1" >/dev/null
    equal "$1: ends of itself" "0 stop" "$(m root --json runs show "$1" | jq -r '"\(.end.exit_code) \(.end.ended_by)"')"
  }
  by_engine docker
  by_engine podman
  equal "unpacked here" "" "$(ls -A "$MLENV_STORE/trees" 2>/dev/null)"
  failing_with no-jupyter m root --json run --runtime docker --jupyter base
  MLENV_STORE=$unpacked_store

  note "in a browser"
  need node npm chromium
  cp "$root"/tests/support/node/*.json "$root"/tests/support/node/notebook.js "$work/"
  (cd "$work" && npm ci --silent --ignore-scripts --cache "$XDG_CACHE_HOME/npm")
  m root run -d --name browser --jupyter lab >/dev/null 2>&1
  begun=$SECONDS
  timeout 240 node "$work/notebook.js" "$(command -v chromium)" "$(m root runs url browser)" "$work/lab.png"
  note "the browser took $((SECONDS - begun)) s"
  [ -z "${MLENV_TEST_SCREENSHOT:-}" ] || cp "$work/lab.png" "$MLENV_TEST_SCREENSHOT"
  equal "the notebook" 42 "$(jq -r '.cells[0].outputs[0].data["text/plain"][0]' "$work/project/waves.ipynb")"
  m root stop browser >/dev/null
fi
as_root chown -R "$user_id:$user_id" "$MLENV_STORE"
rm -f "$work/project/waves.ipynb"
[ "$MLENV_TEST_LONG" = 0 ] || in_front user
in_background user
equal "nothing is left" "" "$(m root ps)"
m user store verify >"$work/out" 2>&1 || fail "$(cat "$work/out")"
