#!/usr/bin/env bash
# Trees that a program or an image makes as deep, as wide and as shut as it can: with few descriptors and little
# memory mlenv removes them, counts them, reads them, and says what it does not take.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need jq python3 busybox
python3 "$root/tests/support/layers_archive.py" "$work/small.tar" h/small:v1 '{}'
"$MLENV" load "$work/small.tar" >/dev/null 2>&1

# few COMMAND…: with 256 descriptors and 2 GB of address space, of which a program of 19,000 levels once wanted 13.
few() { (ulimit -n 256 && ulimit -v 2000000 && "$@"); }
runtime=crun
run() { few "$MLENV" run --runtime "$runtime" --no-project --no-check "$@"; }
nothing_left() {
  equal "left in tmp" "" "$(find "$MLENV_STORE/tmp" -mindepth 1 -maxdepth 1)"
}
# make_deep FOLDER: a chain in it that is longer than any path.
make_deep() {
  python3 - "$1" <<'PYTHON'
import os, sys
folder = os.open(sys.argv[1], os.O_RDONLY)
for level in range(400):
    os.mkdir("sixteen letters.", dir_fd=folder)
    below = os.open("sixteen letters.", os.O_RDONLY, dir_fd=folder)
    os.close(folder)
    folder = below
os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=folder))
PYTHON
}
# shellcheck disable=SC2016 # for the container's shell
deep='mkdir /deep && cd /deep && i=0 && while [ $i -lt 600 ]; do mkdir d && cd d; i=$((i+1)); done && echo there >file'

for runtime in crun runc; do
  note "$runtime: a deep one goes with its run"
  run h/small:v1 -- sh -c "$deep" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
  nothing_left

  note "names of 255 bytes, folders and files that are shut, many files in one folder"
  # shellcheck disable=SC2016
  run h/small:v1 -- sh -c 'mkdir /t && cd /t && n=$(busybox printf "%0255d" 0) && i=0 &&
    while [ $i -lt 40 ]; do mkdir $n && cd $n; i=$((i+1)); done
    cd /t && mkdir -p shut/in && busybox touch shut/in/file && busybox chmod 0 shut/in shut && mkdir wide && cd wide && i=0 &&
    while [ $i -lt 5000 ]; do >$i; i=$((i+1)); done' >"$work/out" 2>&1 || fail "$(cat "$work/out")"
  nothing_left

  note "one that is kept is counted, and goes with its record"
  run --keep h/small:v1 -- sh -c "$deep" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
  [ "$(few "$MLENV" --json runs show last | jq '.start.layer.id | length')" -gt 0 ] || fail "nothing was kept"
  few "$MLENV" --json runs >"$work/out"
  few "$MLENV" runs rm last >"$work/out" 2>&1 || fail "$(cat "$work/out")"
  equal "left in kept" "" "$(find "$MLENV_STORE/kept" -mindepth 1 -maxdepth 1)"

  note "one that is an output is told"
  mkdir -p "$work/project/out"
  make_deep "$work/project/out"
  (cd "$work/project" && ulimit -n 256 && "$MLENV" run --runtime "$runtime" --no-check --outputs out h/small:v1 -- true) >"$work/out" 2>&1 ||
    fail "$(cat "$work/out")"
  "$MLENV" --json runs show last >"$work/record"
  grep -q 'lies too deep' "$work/record" || fail "not said: $(jq -c .end.outputs "$work/record")"
  rm -rf "$work/project/out"
done
runtime=crun

note "what a killed run left"
dead=$MLENV_STORE/tmp/work-000000000000
mkdir -p "$dead" && touch "$dead/.lock"
make_deep "$dead"
few "$MLENV" images >/dev/null
nothing_left

note "a layer of a deep tree: one that Linux can name is unpacked and sound, a deeper one is refused"
cat >"$work/deep.py" <<'PYTHON'
"""deep.py FILE LEVELS: a tar of a file so deep, of which no folder has an entry."""
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT) as tar:
    info = tarfile.TarInfo("d/" * int(sys.argv[2]) + "file")
    info.size = 5
    tar.addfile(info, io.BytesIO(b"there"))
PYTHON
for levels in 1500 3000; do
  python3 "$work/deep.py" "$work/layer.tar" "$levels"
  python3 "$root/tests/support/layers_archive.py" "$work/$levels.tar" "h/deep:$levels" '{}' "$work/layer.tar"
  few "$MLENV" load "$work/$levels.tar" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
done
run h/deep:1500 -- true >"$work/out" 2>&1 || fail "$(cat "$work/out")"
few "$MLENV" store verify >"$work/out" 2>&1 || fail "$(cat "$work/out")"
status=0
run h/deep:3000 -- true >"$work/out" 2>&1 || status=$?
equal "status" 125 "$status"
grep -q 'a path in the layer is too long' "$work/out" || fail "$(cat "$work/out")"
"$MLENV" rm h/deep:1500 >/dev/null
few "$MLENV" gc >"$work/out" 2>&1 || fail "$(cat "$work/out")"
nothing_left

note "a tree of the store in which somebody made a deep one is found damaged, and repaired"
tree=$(find "$MLENV_STORE/trees" -mindepth 2 -maxdepth 2 -name fs | head -n 1)
make_deep "$tree"
status=0
few "$MLENV" store verify >"$work/out" 2>&1 || status=$?
equal "status" 3 "$status"
few "$MLENV" store verify --repair >"$work/out" 2>&1 || fail "$(cat "$work/out")"
[ ! -e "$tree" ] || fail "it stays"
nothing_left
