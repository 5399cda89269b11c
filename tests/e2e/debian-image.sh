#!/usr/bin/env bash
# What an image of Debian packages is to those who work in it: dpkg finds nothing wrong, libraries are found,
# alternatives, certificates, users and character set are in order, and sshd lets one in.
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc
need_root

cat >"$work/recipe.yaml" <<'RECIPE'
name: served
base: debian:bookworm
python: "3.11"
system: [openssh-server, openssh-client, ca-certificates, openssl, vim-tiny, less, cron, dbus, libopenblas0-pthread]
RECIPE
as_root env MLENV_STORE="$MLENV_STORE" XDG_CACHE_HOME="$XDG_CACHE_HOME" "$MLENV" build "$work/recipe.yaml" >/dev/null
inside() { # inside SCRIPT: as root, who may become others; what it prints
  as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" run --no-project served -- bash -euc "$1" 2>"$work/err" ||
    fail "$(cat "$work/err")"
}
is() { # is WHAT EXPECTED SCRIPT
  local found
  found=$(inside "$3") || exit 1
  equal "$1" "$2" "$found"
}

# shellcheck disable=SC2016  # all of these are for the container to expand
{
  note "dpkg"
  is "dpkg --audit" "" 'dpkg --audit'
  # Missing for it: what the run has mounted over.
  is "dpkg --verify" "" 'dpkg --verify'
  is "half-configured" "" 'dpkg-query -W -f "\${Package} \${db:Status-Abbrev}\n" | grep -v " ii *$" || true'

  note "libraries"
  is "the cache after another ldconfig" "" \
    'ldconfig -p | sort >/tmp/before; ldconfig; ldconfig -p | sort | diff /tmp/before -'
  inside 'ldconfig -p' >"$work/libraries"
  for library in libcrypto.so.3 libopenblas.so.0 libz.so.1; do
    grep -q "$library" "$work/libraries" || fail "ldconfig does not know $library"
  done
  is "programs with libraries that are absent" "" \
    'for program in /usr/bin/* /usr/sbin/*; do ldd "$program" 2>/dev/null | grep -q "not found" && echo "$program"; done; true'

  note "alternatives"
  is "vi" /usr/bin/vim.tiny 'readlink -f /usr/bin/vi'
  is "pager" /usr/bin/less 'readlink -f /usr/bin/pager'
  is "BLAS" auto 'update-alternatives --query libblas.so.3-x86_64-linux-gnu | sed -n "s/^Status: //p"'
  is "broken" "" 'for link in /etc/alternatives/*; do [ -e "$link" ] || case $(readlink "$link") in */man/*) ;; *) echo "$link" ;; esac; done; true'

  note "certificates"
  is "those in the bundle" yes 'all=$(ls /usr/share/ca-certificates/mozilla/*.crt | wc -l)
    [ "$all" -gt 100 ] && [ "$all" = "$(grep -c BEGIN /etc/ssl/certs/ca-certificates.crt)" ] && echo yes'
  is "found by their hash" OK 'one=$(ls /usr/share/ca-certificates/mozilla/ISRG*X1.crt)
    openssl verify -CApath /etc/ssl/certs "$one" | sed "s/.*: //"'

  note "users, owners, modes, character set"
  is "sshd" "/run/sshd:/usr/sbin/nologin" 'getent passwd sshd | cut -d: -f6-'
  is "ssh-agent" "root:_ssh 2755" 'stat -c "%U:%G %a" /usr/bin/ssh-agent'
  is "shadow" "root:shadow 640" 'stat -c "%U:%G %a" /etc/shadow'
  is "pwck, grpck" "" 'pwck -rq || pwck -r; grpck -r'
  is "locale" "UTF-8 utf-8" 'echo $(locale charmap) $(python3 -c "import sys; print(sys.stdout.encoding)")'
  is "not of one machine" "" 'ls /etc/ssh/ssh_host_* /var/lib/dbus/machine-id 2>/dev/null || true; test ! -s /etc/machine-id'

  note "sshd"
  is "over ssh" "root OpenSSH" 'ssh-keygen -A >/dev/null
    mkdir -p /run/sshd /root/.ssh
    ssh-keygen -q -N "" -f /root/.ssh/id
    cp /root/.ssh/id.pub /root/.ssh/authorized_keys
    /usr/sbin/sshd -o Port=2222 -o ListenAddress=127.0.0.1 -o PidFile=/run/test.pid
    version=$(ssh -V 2>&1)
    ssh -i /root/.ssh/id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -p 2222 127.0.0.1 \
      "echo \$USER ${version%%_*}"
    kill "$(cat /run/test.pid)"'
}
