#!/usr/bin/env bash
# `mlenv preflight` and `mlenv run --preflight`: links between nodes are measured, and the slow or
# broken one is named: real links, shaped by tc and cut by iptables, on engine ssh; engine local.
# Ranks that hang, or that others wait for, are told; for the latter, and some ways in which a link is broken or a job
# ends, with MLENV_TEST_LONG=1 (tests/unit/runner/job/{activity,preflight}_test.cpp have the same of what is measured).
# packages: iperf3 iptables
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq python3 git iperf3 iptables
need_node_agent

small_tree
nodes_up 3
nodes_have_small
with_ssh
mkdir -p "$work/project"
cd "$work/project"

# shellcheck disable=SC2016  # for that shell
preflight() { on_head "$MLENV" --json preflight --engine ssh --hosts node1,node2,node3 --nodes 3 "$@"; }
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
found() { jq -r "$1" "$work/out"; }
findings() { found '[.findings[] | "\(.standing) \(.kind) \(.nodes | map(tostring) | join("-"))"] | join(", ")'; }
fits_schema() { equal "schema" mlenv.preflight/1 "$(python3 "$root/tests/schema/check.py" <"$work/out")"; }
megabits() { found ".links[] | select(.from == $1 and .to == $2) | .bits_per_second / 1e6 | round"; }
# near WHAT EXPECTED FOUND: within 30 %.
near() {
  awk -v a="$2" -v b="$3" 'BEGIN { exit !(b > a * 0.7 && b < a * 1.3) }' || fail "$1: $3 is far from $2"
}
# slow_to NODE ADDRESS RATE: only that way.
slow_to() {
  shape "$1" off
  on "$1" tc qdisc add dev eth0 root handle 1: htb default 10
  on "$1" tc class add dev eth0 parent 1: classid 1:10 htb rate 100mbit quantum 20000
  on "$1" tc class add dev eth0 parent 1: classid 1:20 htb rate "$3" quantum 2000
  on "$1" tc filter add dev eth0 parent 1: protocol ip u32 match ip dst "$2/32" flowid 1:20
}
all_shaped() {
  local node
  for node in node1 node2 node3; do shape "$node" 100mbit; done
}

note "links that are alike, and what another program says of one"
all_shaped
ends_with 0 preflight small
fits_schema
equal "findings" "" "$(findings)"
equal "links" 6 "$(found '[.links[] | select(.standing == "fine")] | length')"
equal "sums" true "$(found .ring.sums_right)"
on node2 timeout 20 iperf3 -s -1 -B "${bed_address[node2]}" >"$work/iperf-server" 2>&1 &
started+=($!)
listens() { on node2 ss -Hltn 'sport = 5201' | grep -q 5201; }
wait_until 10 listens
on node1 timeout 20 iperf3 -J -t 2 -O 1 -c "${bed_address[node2]}" >"$work/iperf"
near "node1 to node2 by iperf3" "$(jq '.end.sum_received.bits_per_second / 1e6 | round' "$work/iperf")" "$(megabits 0 1)"
near "the all-reduce" "$(found '.ring.expected_bus_bits_per_second | round')" "$(found '.ring.bus_bits_per_second | round')"

note "a slow interface is named, and not each of its links"
shape node2 20mbit
ends_with 3 preflight
fits_schema
equal "findings" "slow node 1" "$(findings)"
found '.findings[].text' >"$work/text"
grep -qE '^node2 \(eth0\) sends and receives slowly with all others: (1[0-9]|2[0-5]) Mbit/s; expected [0-9]+ Mbit/s$' "$work/text" ||
  fail "not named: $(cat "$work/text")"
if [ "$MLENV_TEST_LONG" = 1 ]; then
  on_head "$MLENV" preflight --hosts node1,node2,node3 --nodes 3 >"$work/out" 2>"$work/err" || true
  grep -qE '^slow: node2 \(eth0\) sends and receives slowly with all others: ' "$work/out" || fail "not named: $(cat "$work/out")"
fi

note "a link that is slow one way: a job runs over it, and says so"
all_shaped
slow_to node2 "${bed_address[node3]}" 20mbit
ends_with 0 on_head "$MLENV" run --engine ssh --hosts node1,node2,node3 --nodes 3 --preflight small -- echo ran
said '^mlenv: preflight: 3 nodes, .* each way, round trips of .*, an all-reduce of'
said '^mlenv: preflight: slow: node2 → node3: '
equal "ranks" 3 "$(grep -c 'ran$' "$work/out")"
on_head "$MLENV" --json runs show last >"$work/show.json"
jq .preflight "$work/show.json" >"$work/out"
equal "in its record" "6 slow" "$(found '"\(.links|length) \(.verdict)"')"
equal "findings" "slow link 1-2" "$(findings)"
near "node2 to node3" 19 "$(megabits 1 2)"
on_head "$MLENV" runs show last >"$work/show"
grep -qE '^preflight +3 nodes, .* each way, .*: slow$' "$work/show" || fail "not shown: $(cat "$work/show")"
grep -qE '^ +slow: node2 → node3: ' "$work/show" || fail "no finding: $(cat "$work/show")"

note "a link that a firewall drops, and one that it rejects"
all_shaped
on node3 iptables -A INPUT -p tcp -s "${bed_address[node1]}" -j DROP
failing_with links-broken on_head "$MLENV" --json run --engine ssh --hosts node1,node2,node3 --nodes 3 --preflight small -- touch ran
said 'a firewall drops it'
on_head "$MLENV" --json runs show last >"$work/show.json"
equal "kept of a job that it refused" "refused broken" "$(jq -r '"\(.state) \(.preflight.verdict)"' "$work/show.json")"
jq .preflight "$work/show.json" >"$work/out"
equal "findings" "broken link 0-2" "$(findings)"
equal "how" silent "$(found '.links[] | select(.from == 0 and .to == 2) | .reached')"
on node3 iptables -F
on node3 iptables -A INPUT -p tcp -s "${bed_address[node1]}" -j REJECT --reject-with tcp-reset
ends_with 3 preflight
equal "how" refused "$(found '.links[] | select(.from == 0 and .to == 2) | .reached')"
on node3 iptables -F
if [ "$MLENV_TEST_LONG" = 1 ]; then
  on node3 iptables -A INPUT -p tcp -s "${bed_address[node1]}" -j REJECT --reject-with icmp-admin-prohibited
  ends_with 3 preflight
  equal "how" unreachable "$(found '.links[] | select(.from == 0 and .to == 2) | .reached')"
  on node3 iptables -F
fi

note "data that does not come through though connections do"
on node3 iptables -A INPUT -p tcp -s "${bed_address[node1]}" -m length --length 500:65535 -j DROP
ends_with 3 preflight
equal "findings" "broken link 0-2" "$(findings)"
grep -q 'MTU' "$work/out" || fail "not told: $(cat "$work/out")"
on node3 iptables -F
nothing_left() { [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node" || true')" ]; }
for node in node1 node2 node3; do wait_until 20 nothing_left "$node"; done

m() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"; }
note "engine local; one node has no links"
ends_with 0 m --json preflight --nodes 1
fits_schema
status=0
m --json preflight --nodes 3 >"$work/out" 2>"$work/err" || status=$?
fits_schema
equal "reached" 6 "$(found '[.links[] | select(.reached == "reached" and .bits_per_second > 0)] | length')"
equal "verdict" "$([ "$status" = 0 ] && echo fine || echo slow)" "$(found .verdict)"
failing_with usage m --json preflight --nodes 2 --engine slurm
said 'salloc'

note "a rank that is stopped: all hang, and are started again"
cat >hang.py <<'PYTHON'
import os, signal, socket, time
rank = int(os.environ["RANK"])
print("begins", os.environ["MLENV_RESTARTS"], flush=True)
if os.environ["MLENV_RESTARTS"] == "0":
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    quiet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    quiet.bind(("127.0.0.1", 0))
    quiet.recv(1)
PYTHON
ends_with 0 m run --nodes 3 --stall-timeout 10s --stop-timeout 1s --restarts 1 small -- python hang.py
said '^mlenv: stalled: ranks 0-2 have done nothing for 5 s: '
said '^mlenv: stalled: ranks 0-2 have done nothing for 10 s: .*1 stopped by a signal.*\(rank 1 on n2 is what the others wait for\); all ranks are ended$'
said '^mlenv: restart 1 of 1$'
equal "begun again" 3 "$(grep -c 'begins 1$' "$work/out")"
m --json runs show last >"$work/out"
equal "record" "1 n2" "$(jq -r '.ranks.attempts[0].failure | "\(.rank) \(.node)"' "$work/out")"
jq -r '.ranks.attempts[0].failure.why' "$work/out" >"$work/why"
grep -q '^stalled: ' "$work/why" || fail "not in the record: $(cat "$work/why")"

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "where it may not be started again the job is ended, and the report leads with it"
ends_with 124 m run --nodes 3 --stall-timeout 10s --stop-timeout 1s small -- python hang.py
said '^mlenv: first, rank 1 on n2 stalled: '

note "a node for which the others wait is named, once"
cat >behind.py <<'PYTHON'
import os, sys, time
until = time.time() + 34
if os.environ["RANK"] == "1":
    while time.time() < until:
        pass
else:
    time.sleep(until - time.time())
PYTHON
ends_with 0 m run --nodes 3 --strategy allreduce small -- python behind.py
equal "told" 1 "$(grep -c '^mlenv: node n2 is behind: ' "$work/err")"
if grep -q 'node n[13] is behind' "$work/err"; then fail "others are named: $(cat "$work/err")"; fi
