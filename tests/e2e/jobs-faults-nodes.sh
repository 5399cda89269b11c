#!/usr/bin/env bash
# What can go wrong with the nodes of a job, one of three, by engine ssh: another image, interface,
# clock, no room, no memory, keys, an older agent, a cable that is cut. The node is named first, with
# what is wrong there, and nothing is left on any of them, nor on the one that is cut off. With MLENV_TEST_LONG=1 also
# what nodes-ssh.sh (keys, no OCI runtime) and jobs-export-faults.sh (a cable) have in every run, and more of a kind.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
# shellcheck source=tests/support/census.sh
. "$root/tests/support/census.sh"
# shellcheck source=tests/support/job_faults.sh
. "$root/tests/support/job_faults.sh"

faults_bed
with_ssh
cd "$work/project"
engine ssh
keys=$bed/node2/root/.ssh/authorized_keys
own_store=.local/share/mlenv
# What the agent of node2 says comes changed: altered.py OLD NEW is what its logins run.
cat >"$work/altered.py" <<'PYTHON'
"""altered.py OLD NEW: the command that a login asks for, its output with the bytes OLD as NEW."""
import os, re, subprocess, sys
old, new = [word.encode() for word in sys.argv[1:]]
child = subprocess.Popen(["sh", "-c", os.environ["SSH_ORIGINAL_COMMAND"]], stdout=subprocess.PIPE)
while chunk := os.read(child.stdout.fileno(), 1 << 20):
    chunk = re.sub(old, new, chunk)
    while chunk:
        chunk = chunk[os.write(1, chunk):]
sys.exit(child.wait())
PYTHON
altered() { printf 'command="python3 %s %s %s" %s\n' "$work/altered.py" "'$1'" "'$2'" "$(cat "$bed/ssh/id.pub")" >"$keys"; }
unaltered() { install -m 600 "$bed/ssh/id.pub" "$keys"; }
node2='node `node2` cannot take part'

note "all is well"
job small -- true </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
note_census

note "an interface that is not there, a loopback, one that is down"
ends 125 '`node1` has no network interface `nope`|no.*`nope`' --interface nope small -- true
if [ "$MLENV_TEST_LONG" = 1 ]; then
  ends 125 'loopback' --interface lo small -- true
fi
for name in node1 node2 node3; do on "$name" ip link add ib0 type veth peer name ib1; done
for name in node1 node3; do
  on "$name" ip addr add "10.99.0.${name#node}/24" dev ib0
  on "$name" ip link set ib1 up
  on "$name" ip link set ib0 up
done
ends 125 'node2' --interface ib0 small -- true
for name in node1 node2 node3; do on "$name" ip link del ib0; done

note "a clock that is an hour off, one that is half a minute off"
# skewed WHEN: node2 says that it is then.
skewed() { altered '(clock..)20[^Z]*Z' '\g<1>'"$(date -u -d "$1" +%Y-%m-%dT%H:%M:%S).000Z"; }
skewed '+1 hour'
ends 125 'error: the nodes cannot work together: clock' small -- true
said 's on node2$'
if [ "$MLENV_TEST_LONG" = 1 ]; then
  skewed '+30 seconds'
  ends 0 '' small -- true
  said '^mlenv: .*clock.* node2'
fi
unaltered

note "another image under the same digests: its manifest, a layer, or so it says"
blobs=$bed/node2/root/$own_store/blobs trees=$bed/node2/root/$own_store/trees
on_head "$MLENV" --json inspect small >"$work/image.json"
manifest=$blobs/$(jq -r '.digest[7:]' "$work/image.json") layer=$blobs/$(jq -r '.layers[0].digest[7:]' "$work/image.json")
cp "$manifest" "$work/manifest"
sed 's/"mediaType"/"mediatype"/' "$work/manifest" >"$manifest"
ends 125 "$node2" small -- true
said 'holds something else under the image.s digests'
cp "$work/manifest" "$manifest"
cp "$layer" "$work/layer"
printf x | dd of="$layer" bs=1 seek=5000 conv=notrunc status=none
mv "$trees" "$work/trees"
failing_with wrong-image job --json small -- true
equal "the last record" "mlenv.job-end/1 125 0" "$(tail -n 1 "$work/out" | jq -r '"\(.schema) \(.exit_code) \(.attempts)"')"
nothing_left "a damaged layer"
cp "$work/layer" "$layer"
rm -rf "$trees"
mv "$work/trees" "$trees"
altered 'digestxGsha256:........' 'digestxGsha256:00000000'
ends 125 "$node2" small -- true
said 'it is sha256:00000000'

note "an agent of an older protocol"
altered 'MLENV-NODE-STREAM/[0-9]*' 'MLENV-NODE-STREAM/0'
ends 125 "$node2" small -- true
said 'speaks another version'
unaltered

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "an older mlenv-node that lies there is left alone"
  on node2 sh -c 'mkdir -p .cache/mlenv/node/0000 && cp /bin/false .cache/mlenv/node/0000/mlenv-node'
  ends 0 '' small -- true
  on node2 rm -r .cache/mlenv/node/0000

fi
if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "a key that is refused, a host key that is another"
  mv "$keys" "$work/keys"
  ends 125 "$node2" small -- true
  said 'Permission denied'
  mv "$work/keys" "$keys"
  sed -i "s|^node2,.*|$(sed -n 's/^node3,[^ ]*/node2/p' "$bed/ssh/known_hosts")|" "$bed/head/root/.ssh/known_hosts"
  ends 125 "$node2" small -- true
  said 'shows another host key'
  install -m 600 "$bed/ssh/known_hosts" "$bed/head/root/.ssh/known_hosts"

fi
# with_mount OPTIONS FOLDER STATUS FIRST OPTION…: `ends`, with a small file system there on node2.
with_mount() {
  local options=$1 folder=$2 status=0
  shift 2
  on node2 sh -c 'mkdir -p "$2" && mount -t tmpfs -o "$1" tmpfs "$2"' mount "$options" "$folder"
  job "${@:3}" </dev/null >"$work/out" 2>"$work/err" || status=$?
  wait_until 20 on node2 umount "$folder"
  ended "$status" "$1" "$2"
}
note "no room: for the image, the code, what a rank prints"
with_mount size=30m "$own_store" 125 "$node2" small -- true
said 'No space left on device'
if [ "$MLENV_TEST_LONG" = 1 ]; then
  # The image is there, and little room for more.
  on node2 mount -t tmpfs tmpfs "$own_store"
  job small -- true </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
  used=$(on node2 df -k --output=used "$own_store" | tail -n 1)
  on node2 mount -o "remount,size=$((used + 200))k" "$own_store"
  head -c 400000 /dev/urandom >data
  status=0
  job small -- true </dev/null >"$work/out" 2>"$work/err" || status=$?
  wait_until 20 on node2 umount "$own_store"
  ended "$status" 125 "$node2"
  said 'No space left on device'
  rm data
fi
if [ "$MLENV_TEST_LONG" = 1 ]; then
  with_mount size=1m "$own_store/runs" 0 '' small -- python -c 'for i in range(40000): print("line", i, "." * 60)'
  said '^1: mlenv: output of rank 1 finds no room on the disk of `node2`'
  said '^1: mlenv: [0-9]+ bytes of output found no room'
fi
with_mount size=1m "$own_store/runs" 7 'rank 1 on node2 ended with status 7' small -- python -c 'import os, sys, time
if os.environ["RANK"] != "1": time.sleep(600)
for i in range(40000): print("line", i, "." * 60)
sys.exit(7)'


note "no memory to unpack the image"
# In a group of version 1 that the node's sshd, and so its agent, is in.
memory=$(own_group memory)
if [ -n "$memory" ]; then
  mv "$trees" "$work/trees"
  mkdir "$memory/node2"
  echo 12m >"$memory/node2/memory.limit_in_bytes"
  on node2 sh -c 'cat /run/sshd.pid >"$1/cgroup.procs"' move "$memory/node2"
  status=0
  job small -- true </dev/null >"$work/out" 2>"$work/err" || status=$?
  empties() { # what sshd and the agent left there, too
    while read -r pid; do echo "$pid" >"$memory/cgroup.procs" || true; done <"$memory/node2/cgroup.procs"
    rmdir "$memory/node2"
  }
  wait_until 20 empties 2>/dev/null
  rm -rf "$trees"
  mv "$work/trees" "$trees"
  on node2 "$MLENV" images >"$work/images" # sweeps what an agent that the kernel chose left
  ended "$status" 125 "$node2"
  # Which of its processes it is, the kernel chooses: the one that unpacks, the agent, sshd's.
  said 'was killed by SIGKILL|the connection to it (closed|ended)'
fi

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "no OCI runtime"
  on node2 which -a runc crun >"$work/runtimes" || true
  while read -r runtime; do on node2 mount --bind /dev/null "$runtime" </dev/null; done <"$work/runtimes"
  status=0
  job small -- true </dev/null >"$work/out" 2>"$work/err" || status=$?
  while read -r runtime; do on node2 umount "$runtime" </dev/null; done <"$work/runtimes"
  ended "$status" 125 "$node2"
  said 'neither runc nor crun'

fi
note "the agent is killed"
begun small -- sh -c "$waits"
on node2 pkill -9 -f 'mlenv-node agen[t]'
wait "$running" || true
# What it had begun in the store goes with the next one.
ends 0 '' small -- true

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "a cable is cut: the node lives, and ends its ranks by itself"
begun small -- sh -c "$waits"
in_switch ip link set "$(cat "$bed/node2/port")" down
status=0
wait "$running" || status=$?
alone() { [ -z "$(on node2 pgrep -f 'mlenv-nod[e]|run[c]|sleep 0[.]2')" ]; }
wait_until 30 alone
in_switch ip link set "$(cat "$bed/node2/port")" up
# sshd there learns now that nobody listens any more.
ended "$status" 125 'node node2 is lost'

note "a link so slow that the program takes longer than any patience for a first word"
on node2 rm -r .cache/mlenv/node
shape node2 1mbit
ends 0 '' small -- true
said '^mlenv: mlenv-node is on its way to node2: '
shape node2 off
