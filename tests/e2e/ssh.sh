#!/usr/bin/env bash
# `mlenv export ssh-config`: OpenSSH's own ssh, scp and sftp, with the sshd of a run's image, as root and as
# an ordinary user: commands, statuses, a terminal, files, a port. Nothing listens for it. A terminal, files and a port
# are root's alone but for MLENV_TEST_LONG=1.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc jq ssh scp sftp ssh-keygen curl script unshare
need_root

path=$work/remote.yaml
small_recipe "$path" six
sed -i 's/^name: .*/name: remote/' "$path"
echo 'system: [openssh-server]' >>"$path"
small_store
build_digest "$path" >/dev/null
make_user
mkdir -p "$work/project"
chmod a+rwX "$work/project"
mkdir "$work/root-home"

# ssh asks for its user's name.
{
  cat /etc/passwd
  echo "somebody:x:$user_id:$user_id::$user_home:/bin/sh"
} >"$work/passwd"
as_who() { # as_who COMMAND…: as $who, in the project, with a home of the test's own
  if [ "$who" = root ]; then
    as_root env -C "$work/project" HOME="$work/root-home" XDG_STATE_HOME="$work/root-home/state" MLENV_STORE="$MLENV_STORE" "$@"
  else
    # shellcheck disable=SC2016  # for that shell
    as_root unshare --mount sh -c 'mount --bind "$0" /etc/passwd && exec "$@"' "$work/passwd" setpriv --reuid "$user_id" --regid "$user_id" --clear-groups --no-new-privs \
      env -i -C "$work/project" HOME="$user_home" USER=somebody PATH="$PATH" MLENV_STORE="$MLENV_STORE" "$@"
  fi
}
program() { if [ "$who" = root ]; then echo "$MLENV"; else echo "$work/bin/mlenv"; fi; }
m() { as_who "$(program)" "$@"; }
stop_all() { # root may stop everybody's
  local id
  who=root
  m ps --names 2>/dev/null | while read -r id; do m stop --time 0 "$id" >/dev/null 2>&1 || true; done
}
trap 'status=$?; stop_all; (exit "$status"); finish_test' EXIT
status_of() { # status_of COMMAND…: its status; what it says is in $work/out and $work/err
  local status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}

for who in root user; do
  [ "$who" = root ] || as_root chown -R "$user_id:$user_id" "$MLENV_STORE"
  note "$who: the entry"
  m run -d --name train -e 'GREETING=hello  "world"' remote -- sleep 1000 >/dev/null
  config=$work/config-$who
  m export ssh-config train >"$config" 2>"$work/err" || fail "$(cat "$work/err")"
  equal "host" "Host mlenv-train" "$(head -n 1 "$config")"
  chmod 644 "$config"
  go() { as_who timeout 60 ssh -F "$config" -o BatchMode=yes "$@"; }
  if [ "$who" = user ]; then
    # ssh-keygen makes no key for somebody without a name.
    failing_with ssh-failed as_user MLENV_STORE="$MLENV_STORE" XDG_STATE_HOME="$user_home/other" \
      mlenv --json export ssh-config train
  fi
  note "$who: commands"
  equal "status" 0 "$(status_of go mlenv-train true)"
  equal "nothing else is said" "" "$(cat "$work/out" "$work/err")"
  equal "status" 7 "$(status_of go mlenv-train 'exit 7')"
  # shellcheck disable=SC2016  # for the shell there
  equal "the run's variables, folder and Python" 'hello  "world" /workspace /opt/venv/bin/python' \
    "$(go mlenv-train 'echo "$GREETING $PWD $(command -v python)"')"
  # shellcheck disable=SC2016
  equal "in a login shell too" /opt/venv/bin/python "$(go mlenv-train 'bash -lc "command -v python"')"
  equal "input" "read" "$(echo read | go mlenv-train cat)"
  go mlenv-train 'echo x >made'
  equal "whose files" "$([ "$who" = root ] || echo "$user_id") 644" "$(stat -c '%u %a' "$work/project/made" | sed 's/^0 / /')"
  as_root rm -f "$work/project/made"
  # shellcheck disable=SC2016
  equal "but in no other login shell" none "$(m exec train -- env -i /bin/bash -lc 'echo "${GREETING:-none}"')"
  if [ "$who" = root ] || [ "$MLENV_TEST_LONG" = 1 ]; then
    note "$who: a terminal"
    as_who timeout 60 script -qec "ssh -F $config -tt mlenv-train 'tty; stty size'" /dev/null </dev/null >"$work/out" 2>&1
    grep -q '/dev/pts/' "$work/out" || fail "no terminal: $(cat "$work/out")"
    note "$who: files"
    head -c 3000000 /dev/urandom >"$work/project/large"
    as_who scp -q -F "$config" "$work/project/large" mlenv-train:copied
    cmp "$work/project/large" "$work/project/copied" || fail "scp changed it"
    as_who sftp -q -b - -F "$config" mlenv-train <<<"get copied $work/project/back" >/dev/null
    cmp "$work/project/large" "$work/project/back" || fail "sftp changed it"
    as_root rm -f "$work/project"/{large,copied,back}
    note "$who: a port"
    port=$(free_port)
    served=$(free_port)
    go mlenv-train "cd /tmp && echo 'a page' >page && exec python -m http.server --bind 127.0.0.1 $served" >/dev/null 2>&1 &
    started+=($!)
    go -N -L "$port:127.0.0.1:$served" mlenv-train >/dev/null 2>&1 &
    started+=($!)
    wait_until 30 curl --noproxy '*' -fs "http://127.0.0.1:$port/page"
    equal "forwarded" "a page" "$(curl --noproxy '*' -s "http://127.0.0.1:$port/page")"
  fi
  note "$who: nobody else's key, no other server's"
  ssh-keygen -q -t ed25519 -N '' -f "$work/other-$who"
  sed "s|IdentityFile .*|IdentityFile \"$work/other-$who\"|" "$config" >"$config.other"
  as_root chmod 644 "$work/other-$who"
  as_root cp "$work/other-$who" "$work/other-key"
  if [ "$who" = user ]; then as_root chown "$user_id" "$work/other-$who"; fi
  as_root chmod 600 "$work/other-$who"
  equal "status" 255 "$(status_of as_who timeout 60 ssh -F "$config.other" -o BatchMode=yes mlenv-train true)"
  grep -q 'Permission denied' "$work/err" || fail "another reason: $(cat "$work/err")"
  sed "s|UserKnownHostsFile .*|UserKnownHostsFile $work/known|" "$config" >"$config.other"
  echo "mlenv $(cut -d' ' -f1,2 "$work/other-$who.pub")" >"$work/known"
  chmod 644 "$work/known"
  equal "status" 255 "$(status_of as_who timeout 60 ssh -F "$config.other" -o BatchMode=yes mlenv-train true)"
  grep -qi 'host key verification failed' "$work/err" || fail "another reason: $(cat "$work/err")"
  note "$who: with a key that opens this machine"
  home=$work/root-home
  [ "$who" = root ] || home=$user_home
  as_root mkdir -p "$home/.ssh"
  as_root cp "$work/other-$who.pub" "$home/.ssh/authorized_keys"
  if [ "$who" = user ]; then as_root chown -R "$user_id" "$home/.ssh"; fi
  sed "s|IdentityFile .*|IdentityFile \"$work/other-$who\"|" "$config" >"$config.other"
  equal "status" 0 "$(status_of as_who timeout 60 ssh -F "$config.other" -o BatchMode=yes mlenv-train true)"
  m export ssh-config --via login.example.org train >"$work/out" 2>/dev/null
  grep -qE '^  ProxyCommand ssh login.example.org .*ssh-proxy train' "$work/out" || fail "not by that host: $(cat "$work/out")"

  note "$who: what cannot be"
  m stop --time 0 train >/dev/null
  equal "status" 255 "$(status_of as_who timeout 60 ssh -F "$config" -o BatchMode=yes mlenv-train true)"
  grep -q 'has ended' "$work/err" || fail "another reason: $(cat "$work/err")"
  m run -d --name plain small -- sleep 1000 >/dev/null
  failing_with no-sshd m --json export ssh-config plain
  m stop --time 0 plain >/dev/null

  note "$who: an image that cannot be written"
  m run -d --name fixed --read-only --tmpfs /run remote -- sleep 1000 >/dev/null
  if [ "$who" = root ]; then
    m export ssh-config fixed >"$work/config-fixed" 2>"$work/err" || fail "$(cat "$work/err")"
    equal "status" 0 "$(status_of as_who timeout 60 ssh -F "$work/config-fixed" -o BatchMode=yes mlenv-fixed true)"
  else # sshd's own user must have the one id that is there
    failing_with ssh-failed m --json export ssh-config fixed
    grep -q 'read-only' "$work/err" || fail "another reason: $(cat "$work/err")"
  fi
  m stop --time 0 fixed >/dev/null
done
m store verify >"$work/out" 2>&1 || fail "$(cat "$work/out")"
