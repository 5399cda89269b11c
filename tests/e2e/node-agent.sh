#!/usr/bin/env bash
# mlenv-node where there is nothing but a kernel, an OCI runtime and itself: it takes an image over a
# pair of pipes and runs a rank. Whatever ends either end of the link leaves nothing; what arrives
# wrong, or finds no room, is refused, and the store stays sound.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc chroot unshare
need_root
program=${MLENV%/*}/mlenv-node
driver=${MLENV%/*}/tests/node_driver
[ -x "$program" ] || skip "mlenv-node is not built (MLENV_NODE=OFF)"
[ -x "$driver" ] || skip "tests/node_driver is not built (MLENV_TESTS=OFF)"

printf 'name: base\nbase: debian:bookworm\npython: "3.11"\n' >"$work/base.yaml"
base_tree
image=$(build_digest "$work/base.yaml")

note "nothing is linked"
"$program" --version >"$work/out"
grep -qE '^mlenv-node [0-9.]+ protocol [0-9]+$' "$work/out" || fail "$(cat "$work/out")"
if ldd "$program" >"$work/out" 2>&1; then fail "linked: $(cat "$work/out")"; fi
if grep -aq NEEDED <(readelf -d "$program" 2>&1); then fail "it needs a library"; fi

bare=$work/bare
mkdir -p "$bare"/{proc,sys,dev,tmp,store,usr/bin}
cp "$program" "$bare/"
runtime=$(command -v runc)
cp "$runtime" "$bare/usr/bin/runc"
ldd "$runtime" | grep -oE '/[^ ]+' | while IFS= read -r library; do
  mkdir -p "$bare${library%/*}"
  cp "$library" "$bare$library"
done

# in_bare COMMAND…: in a mount namespace in which $bare could be a machine's root.
in_bare() {
  as_root unshare -m sh -ec 'bare=$1; shift
    mount --bind "$bare" "$bare"
    if [ -n "$STORE_BYTES" ]; then mount -t tmpfs -o size="$STORE_BYTES" store "$bare/store"; fi
    for folder in proc sys dev; do mount --rbind "/$folder" "$bare/$folder"; done
    exec "$@"' sh "$bare" "$@"
}
export STORE_BYTES=
agent=(env -i PATH=/usr/bin "$(command -v chroot)" "$bare" /mlenv-node agent /store)
# rank SCRIPT: by an agent in there; sets $status.
rank() {
  status=0
  in_bare "$driver" "$MLENV_STORE" "$image" "${agent[@]}" -- "$1" >"$work/out" 2>"$work/err" || status=$?
}
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1 in $(cut -c1-300 "$work/err")"; }
bare_store_is_sound() {
  as_root env MLENV_STORE="$bare/store" "$MLENV" store verify >"$work/out" 2>&1 || fail "unsound: $(cat "$work/out")"
}

note "an image comes, a rank runs"
rank 'echo "at $(cat /etc/debian_version | cut -d. -f1)"; python3 -c "print(6*7)"; exit 5'
[ "$status" = 5 ] || fail "status $status: $(cut -c1-300 "$work/err")"
equal "output" "at 12 42" "$(tr '\n' ' ' <"$work/out" | sed 's/ $//')"
said '^runtime=/usr/bin/runc$'
said '"cpu":'
bare_store_is_sound

note "its facts are those that mlenv finds"
# What changes from moment to moment is not compared.
same='del(.. | .free_bytes?, .available_bytes?, .clock_offset_seconds?, .load?) | .cpu, .system, .network, .isolation'
"$program" facts "$MLENV_STORE" >"$work/node.json"
"$MLENV" --json facts >"$work/mlenv.json"
jq -S "$same" "$work/node.json" >"$work/node.facts"
jq -S "$same" "$work/mlenv.json" >"$work/mlenv.facts"
diff "$work/mlenv.facts" "$work/node.facts" || fail "other facts"

note "a runtime that is absent is told before anything starts"
mv "$bare/usr/bin/runc" "$work/runc"
rank 'true'
mv "$work/runc" "$bare/usr/bin/runc"
equal "status" 125 "$status"
said '^runtime=$'
said 'neither `runc` nor `crun` is on PATH'

note "no room: told, and nothing half is kept"
STORE_BYTES=20m
rank 'true'
STORE_BYTES=
equal "status" 125 "$status"
said '^image: no-space: '

note "a wrong byte is refused"
layer=$("$MLENV" --json inspect "$image" | jq -r '.layers[0].digest')
blob=$MLENV_STORE/blobs/${layer#sha256:}
[ -f "$blob" ] || fail "the layer is no file"
rm -rf "$work/good" && cp "$blob" "$work/good"
printf 'x' | dd of="$blob" bs=1 seek=1000 conv=notrunc status=none
as_root mv "$bare/store" "$work/store-before" # files are made slowly where many were just removed
mkdir "$bare/store"
rank 'true'
cp "$work/good" "$blob"
equal "status" 125 "$status"
said "^image: digest-mismatch: \`$layer\` is not what was promised"
[ ! -e "$bare/store/blobs/${layer#sha256:}" ] || fail "it was kept"
bare_store_is_sound

note "what is no agent is shown"
status=0
"$driver" "$MLENV_STORE" "$image" sh -c 'echo "sh: mlenv-node: not found"; exit 127' -- true >"$work/out" 2>"$work/err" || status=$?
equal "status" 125 "$status"
said 'no mlenv agent was started there: it wrote `sh: mlenv-node: not found`'

# Processes whose command line has the word.
alive() { pgrep -f -- "$1" >/dev/null; }
none_alive() { ! alive "$1"; }
# groups_of PROCESS: names of the control groups that it is in and that are its run's alone.
groups_of() { grep -oE 'mlenv-[0-9a-f]{16}' "/proc/$1/cgroup" | sort -u; }
no_group() { [ -z "$(find /sys/fs/cgroup -type d -name "$1" 2>/dev/null)" ]; }
# left_nothing NUMBER: of a rank that slept so long.
left_nothing() {
  wait_until 30 none_alive "sleep $1"
  wait_until 30 none_alive "agent $work/node$1"
  equal "mounts" "" "$(grep -F "$work/node$1" /proc/self/mounts || true)"
  for group in $groups; do wait_until 30 no_group "$group"; done
  # A store that is opened again takes away what the dead left.
  "$driver" "$MLENV_STORE" "$image" "$program" agent "$work/node$1" -- true 2>"$work/err" || fail "$(cat "$work/err")"
  equal "unfinished work" "" "$(ls -A "$work/node$1/tmp")"
  verify_store "$work/node$1"
}

note "kill -9 of the agent, of its controller"
for victim in agent controller; do
  number=77$((${#victim} + 10))
  nothing_said
  "$driver" "$MLENV_STORE" "$image" "$program" agent "$work/node$number" -- "trap '' TERM HUP; sleep $number" >"$work/out" 2>"$work/err" &
  pid=$!
  started+=("$pid")
  wait_until 60 alive "^sleep $number"
  groups=$(groups_of "$(pgrep -f "^sleep $number")") || fail "the rank has no group of its own"
  if [ "$victim" = agent ]; then
    kill -9 "$(pgrep -P "$pid" -f "agent $work/node$number")"
  else
    kill -9 "$pid"
  fi
  status=0
  wait "$pid" || status=$?
  if [ "$victim" = agent ]; then
    equal "status" 125 "$status"
    said '^lost: the connection to it closed$'
  fi
  left_nothing "$number"
done
