#!/usr/bin/env bash
# `mlenv run --nodes --engine ssh`: real sshds on nodes of their own, which have nothing of mlenv.
# The program and the image come there, each once; ranks meet; keys and hosts that cannot be reached
# are told; a node whose power is cut is noticed; nothing is left.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3 git
need_node_agent

small_tree
nodes_up 3
with_ssh
mkdir -p "$work/project" "$work/shared"
cd "$work/project"
cat >meet.py <<'PYTHON'
import os, socket, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
me = f"{rank} on {socket.gethostname()}"
if rank == 0:
    server = socket.create_server(where)
    said = [me]
    for _ in range(world - 1):
        peer, _ = server.accept()
        said.append(peer.makefile().read())
    print("met:", ", ".join(sorted(said)))
else:
    while True:
        try:
            peer = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(me.encode())
    peer.close()
PYTHON
cat >hosts <<'HOSTS'
# three nodes
node1 slots=2 address=10.77.0.2
node2 user=root port=22
node3
HOSTS

# on_head COMMAND…: mlenv there, with the test's store and project.
job() { on_head "$MLENV" run --engine ssh "$@"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out")"; }
programs_on() { on "$1" sh -c 'ls -d .cache/mlenv/node/*/* 2>/dev/null | wc -l'; }
# nothing_left NODE: no process of a job, no mount, no folder of one.
nothing_left() {
  [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[r]unc" || true')" ] &&
    [ -z "$(on "$1" sh -c 'grep " /root/.local/share/mlenv" /proc/self/mounts || true')" ]
}
nothing_left_anywhere() { nothing_left node1 && nothing_left node2 && nothing_left node3; }

note "the program and the image come to nodes that have nothing"
equal "programs" 0 "$(programs_on node1)"
ends_with 0 job --hosts hosts --nodes 3 small -- python meet.py
shown 'met: 0 on node1, 1 on node2, 2 on node3$'
equal "programs" 1 "$(programs_on node1)"
on node2 sh -c 'ls .local/share/mlenv/blobs' >"$work/blobs"
grep -q "${image#sha256:}" "$work/blobs" || fail "node2 has not the image: $(cat "$work/blobs")"
wait_until 30 nothing_left_anywhere

note "once: the second time neither the program nor a layer travels"
stamp() { on node2 sh -c 'find .cache/mlenv/node .local/share/mlenv/blobs -size +16k -printf "%T@ %i %p\n" | sort'; }
before=$(stamp)
ends_with 0 job --hosts node1,node2,node3 --nodes 3 small -- python meet.py
equal "files" "$before" "$(stamp)"

note "a shell that prints at each login does not get in the way"
echo 'echo "Welcome to node2"; echo "be nice" >&2' >"$bed/node2/root/.bashrc"
echo 'echo from profile' >"$bed/node2/root/.profile"
ends_with 0 job --hosts hosts --nodes 3 small -- python meet.py
rm "$bed/node2/root/.bashrc" "$bed/node2/root/.profile"

note "a rank finds its own host by the job's address, though its node says 127.0.1.1, as Debian does"
on node2 sh -c 'sed "s/^.* node2\$/127.0.1.1 node2/" /etc/hosts >/tmp/hosts && mount --bind /tmp/hosts /etc/hosts'
equal "the node itself" 127.0.1.1 "$(on node2 python3 -c 'import socket; print(socket.gethostbyname(socket.gethostname()))')"
ends_with 0 job --hosts hosts --nodes 3 small -- python -c 'import socket; print("me", socket.gethostbyname(socket.gethostname()))'
shown "^1: me ${bed_address[node2]}\$"
on node2 umount /etc/hosts

note "a variable of the caller's, whom nodes do not know"
ends_with 0 on_head env BARE=word "$MLENV" run --engine ssh --hosts hosts --nodes 3 -e BARE -e NOT_SET small -- sh -c 'echo "$BARE ${NOT_SET-none}"'
shown '^2: word none$'

note "half a program is not run"
on node3 sh -c 'f=$(ls .cache/mlenv/node/*/mlenv-node); head -c 1000 "$f" >x && chmod 700 x && mv x "$f"'
ends_with 0 job --hosts hosts --nodes 3 small -- true

# refused WORDS… : the job fails by the error no-node, and says what the words match.
refused() {
  local pattern=$1
  shift
  failing_with no-node on_head "$MLENV" --json run --engine ssh "$@" small -- true
  said "$pattern"
}
note "a host whose key is not known"
sed -i '/^node2/d' "$bed/head/root/.ssh/known_hosts"
refused 'ssh-keyscan -p 22 node2 \| ssh-keygen' --hosts hosts --nodes 3
note "a host with another key"
sed -n 's/^node3,/node2,/p' "$bed/ssh/known_hosts" | sed "s/${bed_address[node3]}/${bed_address[node2]}/" >>"$bed/head/root/.ssh/known_hosts"
refused 'another host key' --hosts hosts --nodes 3
install -m 600 "$bed/ssh/known_hosts" "$bed/head/root/.ssh/known_hosts"
note "a key that is refused"
mv "$bed/node2/root/.ssh/authorized_keys" "$work/authorized_keys"
refused 'BatchMode=yes node2 true' --hosts node1,node2 --nodes 2
mv "$work/authorized_keys" "$bed/node2/root/.ssh/authorized_keys"
note "no such name, nobody at that address"
refused 'no such name is known' --hosts nowhere --nodes 1
echo "10.77.0.99 away" >>"$bed/hosts"
refused 'switched off|no way leads' --hosts away --nodes 1
note "mistakes in the file of hosts"
echo 'node1 slot=2' >wrong
failing_with bad-hosts on_head "$MLENV" --json run --engine ssh --hosts wrong --nodes 1 small -- true
said 'wrong:1:7: a host has no .slot.; did you mean .slots.'

note "a home folder that forbids programs, and one that is full"
on node2 sh -c 'rm -rf .cache; mkdir .cache; mount -t tmpfs -o noexec tmpfs .cache'
refused 'noexec' --hosts node1,node2 --nodes 2
on node2 sh -c 'umount .cache; mount -t tmpfs -o size=64k tmpfs .cache'
refused 'No space left on device' --hosts node1,node2 --nodes 2
equal "left in the way" 0 "$(on node2 sh -c 'find .cache -name ".tmp-*" | wc -l')"
on node2 umount .cache

note "a node without an OCI runtime"
on node3 which -a runc crun >"$work/runtimes" || true
while read -r runtime; do on node3 mount --bind /dev/null "$runtime" </dev/null; done <"$work/runtimes"
ends_with 125 job --hosts hosts --nodes 3 small -- true
said 'node `node3` cannot take part'
said 'neither runc nor crun'
while read -r runtime; do on node3 umount "$runtime" </dev/null; done <"$work/runtimes"

note "slots of hosts bound the ranks on each"
failing_with bad-hosts job --hosts hosts --nodes 2 --ranks-per-node 3 --json small -- true
said 'takes 2 ranks'
printf 'node1 slots=2 address=10.77.0.2\nnode3 slots=3\n' >slots
ends_with 0 job --hosts slots --nodes 2 small -- sh -c 'echo $LOCAL_WORLD_SIZE of $WORLD_SIZE'
equal "two each" 4 "$(grep -c ': 2 of 4$' "$work/out")"

note "a node's power is cut"
nothing_said
job --hosts hosts --nodes 3 small -- sh -c 'echo up; sleep 7781' </dev/null >"$work/out" 2>"$work/err" &
running=$!
(wait_until 60 grep -q '^2: up' "$work/out") || fail "$(cat "$work/out" "$work/err")"
power_cut node3
cut=$SECONDS
status=0
wait "$running" || status=$?
[ "$status" -ne 0 ] || fail "a lost node, and all is well"
said 'node3'
note "noticed, and all ended, $((SECONDS - cut)) s after the cut"
wait_until 20 nothing_left node1
wait_until 20 nothing_left node2
power_on node3
wait_until 60 on head ssh -o BatchMode=yes -o ConnectTimeout=5 node3 true
ends_with 0 job --hosts hosts --nodes 3 small -- python meet.py

note "kill -9 of the controller leaves nothing anywhere"
nothing_said
job --hosts hosts --nodes 3 small -- sh -c 'echo up; sleep 7782' </dev/null >"$work/out" 2>"$work/err" &
(wait_until 60 grep -q '^2: up' "$work/out") || fail "$(cat "$work/out" "$work/err")"
on head pkill -9 -f -- 'run --engine ssh'
wait_until 30 nothing_left_anywhere
