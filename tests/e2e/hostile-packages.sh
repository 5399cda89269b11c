#!/usr/bin/env bash
# Debian packages made to attack who builds with them: maintainer scripts that fork without end, write outside, end others and leave daemons; packages with paths and links out of
# the tree, and devices. As root and as an ordinary user: an error, or an image, and nothing of the machine is changed.
# shellcheck disable=SC2016  # for the shells inside
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/hostile.sh
. "$root/tests/support/hostile.sh"
# shellcheck source=tests/support/archive.sh
. "$root/tests/support/archive.sh"
need gcc curl
need_root
base_store
printf 'name: base\nbase: debian:bookworm\npython: "3.11"\n' >"$work/base.yaml"
build_digest --no-unpack --output "oci:$work/layout" "$work/base.yaml" >/dev/null
make_user
chmod -R a+rX "$work/layout"
# No further than the machine's: children that wait are as many for the limit.
printf '#include <unistd.h>\nint main(void) { for (;;) { int p = fork(); if (p == 0) pause(); if (p < 0) usleep(1000); } }\n' >"$work/crowd.c"
gcc -static -O1 -o "$work/crowd" "$work/crowd.c"
marker=87$((RANDOM % 900000 + 100000))
# What tries the ways out, in sh: by process 1, by descriptors, by links and by `..`.
out='for up in /proc/1/root /proc/1/cwd /proc/self/fd/*/.. /../.. /usr/share/evil/out; do
  cat $up'$host'/secret $up/secret; echo >$up'$host'/escaped; echo >$up/escaped-by-link; done 2>/dev/null
for pid in /proc/[0-9]*; do cat $pid/root'$host'/secret; done 2>/dev/null
ln -sfn '$host' /var/out 2>/dev/null; echo >/var/out/escaped 2>/dev/null; mknod /var/disk b 8 0 2>/dev/null; dd if=/var/disk count=1 of=/dev/null 2>/dev/null && echo DISK'
attack_of() { # attack_of NAME: in sh
  case $1 in
    crowd) echo '/usr/share/evil/crowd' ;;
    outside) echo "$out; true" ;;
    strike) echo "trap '' TERM HUP INT; kill -9 1; kill -TERM 1; kill -9 -1; sleep 1; true" ;;
    daemon) echo "(trap '' TERM HUP INT; setsid sleep $marker >/dev/null 2>&1 </dev/null &) ; sleep $marker & true" ;;
  esac
}

note "packages"
make_key ours
tree=$work/deb
package() { # package NAME: from $tree, with a maintainer script of $1
  mkdir -p "$tree/DEBIAN" "$work/debs"
  printf 'Package: evil-%s\nVersion: 1\nArchitecture: all\nMaintainer: Test <t@example.org>\nDescription: for a test\n' "$1" >"$tree/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip --build "$tree" "$work/debs/evil-$1_1_all.deb" >/dev/null
}
for name in crowd outside strike daemon; do
  rm -rf "$tree"
  mkdir -p "$tree/DEBIAN" "$tree/usr/share/evil"
  cp "$work/crowd" "$tree/usr/share/evil/"
  ln -s "$host" "$tree/usr/share/evil/out"
  printf '#!/bin/sh\n%s\n' "$(attack_of "$name")" >"$tree/DEBIAN/postinst"
  chmod 755 "$tree/DEBIAN/postinst"
  package "$name"
done
# Those whose files lead out: the tar of a package as no dpkg-deb writes it.
cat >"$work/odd_deb.py" <<'PYTHON'
import io, sys, tarfile
folder, host = sys.argv[1:]
def tar(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as file:
        for name, more in entries:
            info = tarfile.TarInfo(name)
            data = more.pop("data", b"")
            info.size = len(data)
            for key, value in more.items():
                setattr(info, key, value)
            file.addfile(info, io.BytesIO(data))
    return out.getvalue()
def member(name, data, size=None):
    size = len(data) if size is None else size
    return (b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"100644", size)) + data + b"\n" * (len(data) % 2)
def deb(name, entries, control=b"", tail=b""):
    text = ("Package: evil-%s\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n" % name).encode() + control
    data = b"!<arch>\n" + member(b"debian-binary", b"2.0\n") + member(b"control.tar", tar([("./control", {"data": text})])) \
        + member(b"data.tar", tar(entries)) + tail
    open("%s/evil-%s_1_all.deb" % (folder, name), "wb").write(data)
deb("above", [("../../../../../../../.." + host + "/escaped", {"data": b"x"})])
deb("absolute", [(host + "/escaped", {"data": b"x"})])
deb("through", [("./usr/share/way", {"type": tarfile.SYMTYPE, "linkname": host}), ("./usr/share/way/escaped", {"data": b"x"})])
deb("hard", [("./usr/share/key", {"type": tarfile.LNKTYPE, "linkname": "../../../../../.." + host + "/secret"})])
deb("device", [("./dev/evil", {"type": tarfile.BLKTYPE, "devmajor": 8, "devminor": 0}), ("./usr/evil", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 1})])
deb("wide", [("./usr/share/wide", {"data": b"x"})], control=b"X-Wide: " + b"x" * (40 << 20) + b"\n")
deb("tail", [("./usr/share/tail", {"data": b"x"})], tail=member(b"_more", b"x" * 99, size=9999999999))
PYTHON
python3 "$work/odd_deb.py" "$work/debs" "$host"
write_archive ours "$work/www" bookworm "main:$work/debs"
serve "$work/www"

# build WHO NAME: of the recipe $work/NAME.yaml
build() {
  local who=$1 name=$2 folder=$work/of-$1/$2
  shift 2
  mkdir -p "$folder"
  cp -r "$work/$name.yaml" "$work/ours.asc" "$folder/"
  [ ! -d "$work/$name" ] || cp -r "$work/$name" "$folder/"
  [ "$who" = root ] || as_root chown -R "$user_id:$user_id" "$work/of-user"
  if [ "$who" = root ]; then
    (cd "$folder" && env HOME="$work/of-root" MLENV_STORE="$work/of-root/store" XDG_CACHE_HOME="$work/of-root/cache" timeout 100 "$MLENV" --json build "$name.yaml")
  else
    (cd "$folder" && as_user MLENV_STORE="$user_home/store" timeout 100 mlenv --json build "$name.yaml")
  fi >"$work/out" 2>"$work/err" </dev/null
}
gone() { ! pgrep -f "sleep $marker" >/dev/null && ! pgrep -x crowd >/dev/null; }
# tries WHO NAME: whatever its status, it says why, and nobody is out or left
tries() {
  local status=0
  build "$@" || status=$?
  case $status in 0 | 1 | 2 | 3) ;; *) fail "$*: status $status: $(tail -n 5 "$work/err")" ;; esac
  if [ "$status" != 0 ]; then grep -q '"code":"' "$work/err" || fail "$*: no error: $(tail -n 5 "$work/err")"; fi
  if grep -q '"code":"internal"' "$work/err"; then fail "$*: $(tail -n 5 "$work/err")"; fi
  nobody_out "$*"
  wait_until 20 gone
  note "$*: $status $(grep -o '"frames":\[.*\]\|"code":.*' "$work/err" | tail -n 1 | cut -c1-120)"
}
debian_recipe() {
  printf 'name: r\nbase: "oci:%s/layout"\nsystem: [%s]\nsources: {debian: [{uri: "%s", suite: bookworm, signed-by: ours.asc}]}\n' "$work" "$1" "$served"
}
for name in crowd outside strike daemon above absolute through hard device wide tail; do debian_recipe "evil-$name" >"$work/d-$name.yaml"; done
for who in root user; do
  # As a user those alone that go by another way than as root; with MLENV_TEST_LONG=1 all.
  scripts=(outside strike daemon crowd)
  trees=(above through hard device)
  if [ "$who$MLENV_TEST_LONG" = user0 ]; then
    scripts=(outside crowd)
    trees=(through device)
  fi
  note "$who: maintainer scripts"
  for name in "${scripts[@]}"; do tries "$who" "d-$name"; done
  grep -q '"code":"too-many-processes"' "$work/err" || fail "$who: $(tail -n 5 "$work/err")"
  note "$who: packages whose files lead out"
  for name in "${trees[@]}"; do
    tries "$who" "d-$name"
    grep -q '"code":"' "$work/err" || fail "$who: $name was built"
  done
done
for name in absolute wide tail; do tries root "d-$name"; done
