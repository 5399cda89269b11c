#!/usr/bin/env bash
# Sparse files in layers: whatever way GNU tar writes them, what is unpacked is what GNU tar would unpack, takes no
# more room, and `store verify` finds it sound. Maps of holes that make no sense are refused. More extended
# attributes than a file takes are no full disk.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need jq python3 tar busybox

# archive NAME LAYER
archive() { python3 "$root/tests/support/layers_archive.py" "$work/$1.tar" "h/$1:v1" '{}' "$2"; }
tree_of() { echo "$MLENV_STORE/trees/$(sha256sum <"$1" | cut -d' ' -f1)/fs"; }
runtime=crun
run() { "$MLENV" run --runtime "$runtime" --no-project --no-check "$@"; }

mkdir "$work/files"
cd "$work/files"
truncate -s 3M holes
truncate -s 0 empty
python3 - <<'PYTHON'
import random
random.seed(1)
def make(name, size, pieces):
    with open(name, "wb") as file:
        for at, length in pieces:
            file.seek(at)
            file.write(random.randbytes(length))
        file.truncate(size)
K = 4096
make("end", 2000000, [(0, K)])
make("begin", 1 << 20, [((1 << 20) - K, K)])
make("odd", 1000003, [(8 * K, 100), (40 * K, 3 * K + 1)])
make("many", 900 * 2 * K, [(i * 2 * K, K) for i in range(900)])
make("full", 100000, [(0, 100000)])
make("large", 3 << 30, [(1 << 30, K)])
PYTHON
note "as GNU tar writes them"
for format in gnu:0.0 pax:0.0 pax:0.1 pax:1.0; do
  name=${format/:/}
  case $runtime in crun) runtime=runc ;; *) runtime=crun ;; esac
  tar --sparse --sparse-version="${format#*:}" --format="${format%:*}" --owner 0 --group 0 --numeric-owner -cf "$work/layer.tar" -- *
  archive "$name" "$work/layer.tar"
  "$MLENV" load "$work/$name.tar" >/dev/null 2>&1
  run "h/$name:v1" -- true >"$work/out" 2>&1 || fail "$format: $(cat "$work/out")"
  tree=$(tree_of "$work/layer.tar")
  rm -rf "$work/oracle" && mkdir "$work/oracle" && tar -C "$work/oracle" -xf "$work/layer.tar"
  for file in *; do
    equal "$format: size of $file" "$(stat -c %s "$work/oracle/$file")" "$(stat -c %s "$tree/$file")"
    [ "$file" = large ] || cmp "$work/oracle/$file" "$tree/$file" || fail "$format: $file"
  done
  cmp -i 1073741000 -n 8000 "$work/oracle/large" "$tree/large" || fail "$format: large"
  room=$(du -sk "$tree" | cut -f 1)
  [ "$room" -lt 20000 ] || fail "$format takes $room KiB"
done
"$MLENV" store verify >"$work/out" 2>&1 || fail "$(cat "$work/out")"

note "a hole that was filled is found"
tar --sparse --format=gnu -cf "$work/layer.tar" holes
archive filled "$work/layer.tar"
"$MLENV" load "$work/filled.tar" >/dev/null 2>&1
run h/filled:v1 -- true >"$work/out" 2>&1 || fail "$(cat "$work/out")"
file=$(tree_of "$work/layer.tar")/holes
printf x | dd of="$file" bs=1 seek=2000000 conv=notrunc status=none
touch -d @0 "$file"
ends_with 3 "$MLENV" store verify
"$MLENV" store verify --repair >/dev/null 2>&1

note "maps that make no sense"
cat >"$work/maps.py" <<'PYTHON'
"""maps.py FILE SIZE OFFSET:LENGTH…: an old GNU sparse file, with a map of its own."""
import sys
out, size, *pieces = sys.argv[1:]
pieces = [tuple(int(n) for n in piece.split(":")) for piece in pieces]
stored = 1024
def number(value, length):
    if 0 <= value < 8 ** (length - 1):
        return b"%0*o\0" % (length - 1, value)
    return (value & ((1 << (8 * length)) - 1) | 1 << (8 * length - 1)).to_bytes(length, "big")
header = bytearray(512)
header[0:1] = b"f"
header[100:108], header[108:116], header[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
header[124:136], header[136:148], header[148:156] = number(stored, 12), number(0, 12), b" " * 8
header[156:157], header[257:265] = b"S", b"ustar  \0"
for i, (offset, length) in enumerate(pieces):
    header[386 + 24 * i:398 + 24 * i], header[398 + 24 * i:410 + 24 * i] = number(offset, 12), number(length, 12)
header[483:495] = number(int(size), 12)
header[148:156] = b"%06o\0 " % sum(header)
open(out, "wb").write(bytes(header) + b"x" * stored + b"\0" * 1024)
PYTHON
refused() { # refused NAME SIZE PIECE…
  local name=$1 status=0
  shift
  python3 "$work/maps.py" "$work/layer.tar" "$@"
  archive "$name" "$work/layer.tar"
  "$MLENV" load "$work/$name.tar" >/dev/null 2>&1 || return 0
  timeout 20 "$MLENV" --json run --runtime "$runtime" --no-project --no-check "h/$name:v1" -- true >"$work/out" 2>&1 || status=$?
  equal "status of $name" 125 "$status"
  grep -q '"code":"bad-tar"' "$work/out" || fail "$name: $(cat "$work/out")"
  equal "left of $name" "" "$(find "$MLENV_STORE/tmp" -mindepth 1)"
}
refused overlap 10000 0:512 256:512
refused backwards 10000 4096:512 0:512
refused beyond 1000 0:512 4096:512
refused negative 10000 -512:512 4096:512
refused huge 9000000000000000 0:512 4096:512

note "more attributes than a file takes are told with the file"
python3 - "$work/layer.tar" <<'PYTHON'
import sys, tarfile
with tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT) as tar:
    info = tarfile.TarInfo("many-attributes")
    info.pax_headers = {f"SCHILY.xattr.user.a{i}": "x" * 4000 for i in range(100)}
    tar.addfile(info)
PYTHON
archive attributes "$work/layer.tar"
"$MLENV" load "$work/attributes.tar" >/dev/null 2>&1
status=0
run h/attributes:v1 -- true >"$work/out" 2>&1 || status=$?
if [ "$status" != 0 ]; then
  # shellcheck disable=SC2016  # backticks of a message
  grep -q '`many-attributes` has more extended attributes' "$work/out" || fail "$(cat "$work/out")"
  if grep -q 'mlenv gc' "$work/out"; then fail "it asks for room: $(cat "$work/out")"; fi
fi
