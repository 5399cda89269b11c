#!/usr/bin/env bash
# `mlenv run --matrix` with jobs on engines local and ssh: a job of two nodes for each variation, side
# by side without touching each other; hosts divided among them; what fails or is interrupted goes on.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3
need_root
need_node_agent

small_tree
nodes_up 4
nodes_have_small
with_ssh
mkdir -p "$work/project" "$work/shared"
cd "$work/project"
# The ranks of a variation meet, and it waits until all variations of `group` do.
cat >meet.py <<'PYTHON'
import json, os, socket, sys, time
rank, n = int(os.environ["RANK"]), os.environ["n"]
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    peer, _ = socket.create_server(where).accept()
    other = peer.makefile().read()
    print("met", other, "in", n, flush=True)
    open(f"/shared/met-{n}", "w").close()
    while not all(os.path.exists(f"/shared/met-{one}") for one in os.environ["group"].split("+")):
        time.sleep(0.05)
    with open(os.environ["MLENV_OUTPUT"] + "/metrics.json", "w") as file:
        json.dump({"nodes": os.environ["MLENV_NODE_NAME"] + " " + other.split()[-1]}, file)
else:
    while True:
        try:
            peer = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(f"rank {rank} of {n} on {os.environ['MLENV_NODE_NAME']}".encode())
    peer.close()
sys.exit(3 if n == "3" and rank == 0 and not os.path.exists("/shared/mended") else 0)
PYTHON
cat >wait.sh <<'SHELL'
trap 'exit 0' TERM INT
touch "/shared/up-$n-$RANK"
until [ -e /shared/quick ]; do sleep 0.1; done
SHELL
printf 'node%s\n' 1 2 3 4 >hosts

m() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"; }
ssh_matrix() { on_head "$MLENV" run --engine ssh --hosts hosts --nodes 2 -v "$work/shared:/shared" "$@"; }
local_matrix() { m run --nodes 2 -v "$work/shared:/shared" "$@"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err" "$work/out")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out" "$work/err")"; }
nothing_left() { [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[r]unc|[m]eet.py|[w]ait.sh" || true')" ]; }
nothing_left_anywhere() { nothing_left node1 && nothing_left node2 && nothing_left node3 && nothing_left node4; }
ours_left() { pgrep -af "$work/[s]tore|^mlenv-n[0-9]" >"$work/left"; }
nothing_local_left() { ! ours_left; }

note "ssh: two groups of two hosts, at the same time"
ends_with 0 ssh_matrix --dry-run --matrix n=1..4 small -- python meet.py
shown '^variation 3, n=3: python meet.py$'
shown '^rank 1 on node2, '
on_head "$MLENV" --json run --engine ssh --hosts hosts --nodes 2 --dry-run --matrix n=1..2 small -- python meet.py '{n}' >"$work/out"
"$root/tests/schema/check.py" <"$work/out" >/dev/null
equal "commands" "1 python meet.py 1,2 python meet.py 2" \
  "$(jq -r '.variations[] | "\(.number) \(.argv | join(" "))"' "$work/out" | paste -sd ,)"
[ ! -e matrix ] || fail "a dry run made results"
command=(--matrix @variations.csv --name pairs small -- python meet.py '{n}')
printf 'n,group\n1,1+2\n2,1+2\n3,3+4\n4,3+4\n' >variations.csv
ends_with 1 ssh_matrix "${command[@]}"
said 'matrix .*: 4 variations, each on 2 nodes, 2 at a time; results in '
shown '^1  1  1\+2    done  .*node1 node2$|^1  1  1\+2    done  .*node3 node4$'
shown '^3  3  3\+4    failed \(3\)'
equal "groups" "node1 node2,node1 node2,node3 node4,node3 node4" \
  "$(jq -r '.variations[].metrics[0].text' matrix/pairs/matrix.json | sort | paste -sd ,)"
equal "its log" "0: met rank 1 of 2 on" "$(on_head "$MLENV" logs pairs-2 | cut -d' ' -f1-7)"
id=$(jq -r .id matrix/pairs/matrix.json)
on_head "$MLENV" runs --matrix "$id" >"$work/out"
equal "listed" 5 "$(wc -l <"$work/out")"
touch "$work/shared/mended"
ends_with 0 on_head "$MLENV" --json run --engine ssh --hosts hosts --nodes 2 -v "$work/shared:/shared" --resume "${command[@]}"
equal "answer" "done $id 4 1" "$(jq -r '"\(.state) \(.id) \([.variations[] | select(.state == "done")] | length) \(.at_once)"' "$work/out")"
"$root/tests/schema/check.py" <"$work/out" >/dev/null
failing_with usage on_head "$MLENV" --json run --engine ssh --hosts hosts --nodes 2 --parallel 3 --matrix n=1..4 --name more small -- true
[ ! -e matrix/more ] || fail "it left $(ls -A matrix/more)"

note "ssh: a group of hosts that cannot be reached leaves its variations to the others"
ends_with 0 on_head "$MLENV" run --engine ssh --hosts gone1.invalid,gone2.invalid,node1,node2 --nodes 2 \
  --matrix n=1..3 --name some small -- true
said '^n=[12], .*waits again; gone1.invalid, gone2.invalid are left out: '
equal "all were done" "done done done" "$(jq -r '[.variations[].state] | join(" ")' matrix/some/matrix.json)"
failing_with no-node on_head "$MLENV" --json run --engine ssh --hosts gone1.invalid,gone2.invalid \
  --nodes 1 --matrix n=1..3 --name none small -- true

note "Ctrl-C reaches all of them; kill -9 ends them, too"
start() { # start: three variations, two at once, as $running
  rm -f "$work/shared"/up-*
  nothing_said
  ssh_matrix --resume --matrix n=1..3 --name long small -- sh wait.sh </dev/null >"$work/out" 2>"$work/err" &
  running=$!
  wait_until 60 test -e "$work/shared/up-1-1"
  wait_until 60 test -e "$work/shared/up-2-1"
}
driver() { on head pgrep -f -- '^[^ ]*/mlenv run --engine ssh'; }
if [ "$MLENV_TEST_LONG" = 1 ]; then
  ends_with 1 ssh_matrix --matrix n=1..3 --fail-fast --name long small -- sh -c '[ $n = 1 ] && exit 5; exec sh wait.sh'
  equal "the others" "failed stopped waiting" "$(jq -r '[.variations[].state] | join(" ")' matrix/long/matrix.json)"
  rm -r matrix/long
fi
nothing_said
ssh_matrix --matrix n=1..3 --name long small -- sh wait.sh </dev/null >"$work/out" 2>"$work/err" &
running=$!
wait_until 60 test -e "$work/shared/up-1-1"
wait_until 60 test -e "$work/shared/up-2-1"
on head kill -INT "$(driver)"
status=0
wait "$running" || status=$?
equal "after Ctrl-C" 130 "$status"
equal "states" "stopped stopped waiting" "$(jq -r '[.variations[].state] | join(" ")' matrix/long/matrix.json)"
wait_until 20 nothing_left_anywhere
start
on head kill -KILL "$(driver)"
wait "$running" || true
wait_until 20 nothing_left_anywhere
touch "$work/shared/quick"
ends_with 0 ssh_matrix --resume --matrix n=1..3 --name long small -- sh wait.sh
said '3 of 3 variations are left'
wait_until 20 nothing_left_anywhere

note "local: one after another, or side by side with the same addresses and ports"
rm -f "$work/shared"/*
touch "$work/shared/mended"
ends_with 0 local_matrix --matrix n=1..2 --matrix group=1+2 --parallel 2 --results "$work/results" small -- python meet.py
equal "both" "n1 n2 n1 n2" "$(jq -r '[.variations[].metrics[0].text] | join(" ")' "$work/results/matrix.json")"
ends_with 0 m --json run --nodes 2 --matrix n=1,2 small -- true
equal "alone" "1 done" "$(jq -r '"\(.at_once) \(.state)"' "$work/out")"
wait_until 20 nothing_local_left
