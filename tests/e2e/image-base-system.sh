#!/usr/bin/env bash
# `system` on a base that is an image: the set that apt takes there, and the tree that apt makes there
# (excluded paths, diversions, overridden modes, alternatives, new users); one layer on top of the
# base's; one digest as root and as an ordinary user. Newer versions only where something needs them.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/archive.sh
. "$(dirname "$0")/../support/archive.sh"
need runc skopeo curl
need_root
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"
base_store

note "a base as slim images are, with settings of its own"
cat >"$work/base.yaml" <<'RECIPE'
name: base
base: debian:bookworm
python: "3.11"
run:
  - |
    cat > /etc/dpkg/dpkg.cfg.d/docker <<'RULES'
    path-exclude /usr/share/doc/*
    path-include /usr/share/doc/*/copyright
    path-exclude /usr/share/man/*
    path-exclude /usr/share/locale/*
    RULES
    dpkg-divert --local --rename --divert /usr/bin/lesskey.real --add /usr/bin/lesskey
    dpkg-statoverride --add root root 0700 /usr/bin/lessecho
    echo 0123456789abcdef0123456789abcdef > /etc/machine-id
    echo kept > /var/log/wtmp
RECIPE
build_digest --no-unpack --output "oci:$work/layout" "$work/base.yaml" >/dev/null
packages=(less vim-tiny openssh-client uuid-runtime)
mkdir "$work/top"
top=$work/top/top.yaml
cat >"$top" <<RECIPE
name: top
base: oci:../layout
system: [$(printf '%s, ' "${packages[@]}")]
RECIPE
image=$(build_digest --output "oci:$work/out" "$top")
taken() { sed -nE 's/.*name = "([^"]*)", version = "([^"]*)", architecture.*/\1=\2/p' "$1"; }
layers() { skopeo inspect --raw "oci:$1" | python3 -c 'import json,sys
for one in json.load(sys.stdin)["layers"]: print(one["digest"])'; }

note "one layer on top of the base's"
layers "$work/layout" >"$work/below"
layers "$work/out" | head -n -1 | diff "$work/below" - || fail "other layers below"
verify_store
reader_agrees top "$work/out" --keep 2>/dev/null || true

note "what apt takes and what apt makes there"
# Kind, mode, owners, path and content of everything but what hangs on the moment.
list='
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp \
  -o -path /workspace -o -path /mlenv -o -path /var/cache -o -path /var/lib/apt -o -path "/var/lib/dpkg/*-old" \
  -o -path /var/lib/dpkg/available -o -path "/var/lib/dpkg/lock*" -o -path /var/lib/dpkg/triggers/Lock \
  -o -path /etc/apt -o -path /etc/.pwd.lock -o -path "/etc/*-" -o -path /var/log -o -path /etc/hosts \
  -o -path /etc/hostname -o -path /etc/resolv.conf -o -path /etc/mtab \) -prune \
  -o -printf "%y %m %U:%G %p -> %l\n" | LC_ALL=C sort
find /etc /usr /var/lib -xdev -type f ! -path "/var/lib/apt/*" ! -path "/var/lib/dpkg/*-old" \
  ! -path "/etc/*-" ! -path /etc/hosts ! -path /etc/hostname ! -path /etc/resolv.conf ! -path "/etc/apt/*" \
  ! -path "/var/lib/dpkg/lock*" ! -path /var/lib/dpkg/available \
  -exec sha256sum {} + | LC_ALL=C sort -k 2'
"$MLENV" load "oci:$work/layout" >/dev/null 2>&1 || true
"$MLENV" run --no-project base -- sh -c "apt-get update -qq >&2
apt-get install -qq -s --no-install-recommends ${packages[*]} | sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1=\3/p' | sort > /tmp/set
apt-get install -qq -y --no-install-recommends ${packages[*]} >&2
cat /tmp/set; echo; $list" >"$work/by-apt" 2>"$work/err" || fail "apt: $(tail -n 5 "$work/err")"
taken "$work/top/top.lock" | LC_ALL=C sort >"$work/set"
sed '/^$/,$d' "$work/by-apt" | LC_ALL=C sort | diff "$work/set" - || fail "apt takes another set"
[ -s "$work/set" ] || fail "nothing was taken"
"$MLENV" run --no-project top -- sh -c "$list" >"$work/by-mlenv"
sed '1,/^$/d' "$work/by-apt" | diff - "$work/by-mlenv" >"$work/differences" || fail "trees differ: $(head -n 40 "$work/differences")"
inside() { "$MLENV" run --no-project top -- "$@"; }
equal "dpkg --audit" "" "$(inside dpkg --audit)"
equal "dpkg -V" "" "$(inside dpkg -V | grep -Ev '/usr/share/(doc|man|locale)/' || true)"
equal "excluded" "copyright" "$(inside ls /usr/share/doc/less)"
equal "diverted" "/usr/bin/lesskey.real" "$(inside sh -c 'ls /usr/bin/lesskey*')"
equal "overridden" "700" "$(inside stat -c %a /usr/bin/lessecho)"
equal "alternative" "/usr/bin/vim.tiny" "$(inside readlink -f /usr/bin/vi)"
equal "of the base" "0123456789abcdef0123456789abcdef kept" "$(inside sh -c 'echo $(cat /etc/machine-id /var/log/wtmp)')"
equal "user and group" "uuidd _ssh" "$(inside sh -c 'echo $(stat -c %U /var/lib/libuuid /run/uuidd 2>/dev/null | head -n 1) $(stat -c %G /usr/bin/ssh-agent)')"

note "nothing that the base has is in it again"
skopeo copy -q "oci:$work/out" "dir:$work/flat"
tar -tzf "$work/flat/$(layers "$work/out" | tail -n 1 | cut -d: -f2)" >"$work/entries"
for path in usr/bin/dpkg etc/dpkg/dpkg.cfg.d/docker etc/machine-id var/log/dpkg.log var/lib/dpkg/available etc/passwd-; do
  grep -qx "$path" "$work/entries" && fail "$path is in the layer"
done

note "the same as an ordinary user; kept on relock"
make_user
as_root cp -r "$work/top" "$work/layout" "$user_home/"
as_root chown -R "$user_id:$user_id" "$user_home"
found=$(as_user mlenv build --locked "$user_home/top/top.yaml" | tail -n 1)
equal "the user's image" "$image" "$found"
before=$(cat "$work/top/top.lock")
sed -i 's/name: top/name: other/' "$top"
"$MLENV" lock "$top" 2>/dev/null
equal "packages" "$(grep -c sha256 <<<"$before")" "$(grep -c sha256 "$work/top/top.lock")"
