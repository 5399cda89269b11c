#!/usr/bin/env bash
# What can go wrong with the nodes of a job, one of three, by engine ssh: another image, interface,
# clock, no room, no memory, keys, an older agent, a cable that is cut. The node is named first, with
# what is wrong there, and nothing is left on any of them, nor on the one that is cut off.
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
altered() { sed "s|^|command=\"python3 $work/altered.py '$1' '$2'\" |" "$bed/ssh/id.pub" >"$keys"; }
unaltered() { install -m 600 "$bed/ssh/id.pub" "$keys"; }
node2='node `node2` cannot take part'

note "all is well"
job small -- true </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
note_census

note "an interface that is not there, a loopback, one that is down"
ends 125 '`node1` has no network interface `nope`|no.*`nope`' --interface nope small -- true
ends 125 'loopback' --interface lo small -- true
for name in node1 node2 node3; do on "$name" ip link add ib0 type veth peer name ib1; done
for name in node1 node3; do
  on "$name" ip addr add "10.99.0.${name#node}/24" dev ib0
  on "$name" ip link set ib1 up
  on "$name" ip link set ib0 up
done
ends 125 'node2' --interface ib0 small -- true
for name in node1 node2 node3; do on "$name" ip link del ib0; done

note "a clock that is 10 s off, one that is an hour off"
later() { date -u -d "+$1" +%Y-%m-%dT%H:; }
altered 'clockx.20[^Z]*Z' "clock\\\\x78\\\\x18$(date -u -d '+2 years' +%Y-%m-%dT%H:%M:%S).000Z"
ends 125 'clock' small -- true
unaltered

note "another image under the same digest"
blobs=$bed/node2/root/$own_store/blobs
manifest=$("$MLENV" --json inspect small | jq -r .digest)
cp "$blobs/${manifest#sha256:}" "$work/manifest"
sed 's/"mediaType"/"mediatype"/' "$work/manifest" >"$blobs/${manifest#sha256:}"
ends 125 "$node2" small -- true
tail -n 5 "$work/err"
cp "$work/manifest" "$blobs/${manifest#sha256:}"
layer=$("$MLENV" --json inspect small | jq -r '.layers[0].digest')
cp "$blobs/${layer#sha256:}" "$work/layer"
printf x | dd of="$blobs/${layer#sha256:}" bs=1 seek=5000 conv=notrunc status=none
mv "$bed/node2/root/$own_store/trees" "$work/trees"
mkdir "$bed/node2/root/$own_store/trees"
ends 125 "$node2" small -- true
tail -n 5 "$work/err"
cp "$work/layer" "$blobs/${layer#sha256:}"
rmdir "$bed/node2/root/$own_store/trees"
mv "$work/trees" "$bed/node2/root/$own_store/trees"

note "an agent that says to have proven another digest"
altered 'digestxGsha256:........' 'digestxGsha256:00000000'
ends 125 "$node2" small -- true
tail -n 5 "$work/err"
unaltered

note "an agent of another protocol"
altered 'MLENV-NODE-STREAM/[0-9]*' 'MLENV-NODE-STREAM/0'
ends 125 "$node2" small -- true
tail -n 5 "$work/err"
unaltered

note "a key that is refused, a host key that is another"
mv "$keys" "$work/keys"
ends 125 "$node2" small -- true
said 'Permission denied'
mv "$work/keys" "$keys"
sed -i "s|^node2,.*|$(sed -n 's/^node3,[^ ]*/node2/p' "$bed/ssh/known_hosts")|" "$bed/head/root/.ssh/known_hosts"
ends 125 "$node2" small -- true
said 'shows another host key'
install -m 600 "$bed/ssh/known_hosts" "$bed/head/root/.ssh/known_hosts"

note "no OCI runtime"
on node2 which -a runc crun >"$work/runtimes" || true
while read -r runtime; do on node2 mount --bind /dev/null "$runtime" </dev/null; done <"$work/runtimes"
ends_without_census=1
job small -- true </dev/null >"$work/out" 2>"$work/err" && fail "without a runtime"
while read -r runtime; do on node2 umount "$runtime" </dev/null; done <"$work/runtimes"
said 'neither runc nor crun'
nothing_left "no runtime"

note "no room: for the image, for what a rank prints"
on node2 mount -t tmpfs -o size=30m tmpfs "/root/$own_store"
ends_status=0
job small -- true </dev/null >"$work/out" 2>"$work/err" || ends_status=$?
on node2 umount "/root/$own_store"
equal "no room for the image" 125 "$ends_status"
tail -n 5 "$work/err"
nothing_left "no room"
on node2 sh -c "mkdir -p /root/$own_store/runs && mount -t tmpfs -o size=1m tmpfs /root/$own_store/runs"
status=0
job small -- python -c 'import os
for i in range(40000): print("line", i, "." * 60)' </dev/null >"$work/out" 2>"$work/err" || status=$?
equal "no room for output" 0 "$status"
grep -v '^[012]: ' "$work/err" | tail -n 5
on node2 umount "/root/$own_store/runs"
nothing_left "no room for output"

note "the agent is killed"
begun small -- sh -c "$waits"
on node2 pkill -9 -f 'mlenv-node agen[t]'
has_ended 'node node2 is lost' 125
note "a cable is cut: the node lives, and ends its ranks by itself"
begun small -- sh -c "$waits"
in_switch ip link set "$(cat "$bed/node2/port")" down
has_ended 'node node2 is lost' 125
in_switch ip link set "$(cat "$bed/node2/port")" up
note "done"
