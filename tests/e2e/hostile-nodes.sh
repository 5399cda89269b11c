#!/usr/bin/env bash
# Nodes that lie: an agent that lives and whose rank never ends ends no later than the deadline and the
# grace say, or the second signal; what a node says of itself becomes no line of other nodes' files, no
# status that it is not, no text in mlenv's name. ssh is a stand-in: the agent runs here.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
beside=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need busybox python3 runc
need_node_agent

python3 "$root/tests/support/busybox_image.py" "$work/base.tar" base:v1
"$MLENV" load "$work/base.tar" >/dev/null
mkdir -p "$work/bin" "$work/project"
cat >"$work/bin/ssh" <<SSH
#!/bin/sh
# The last word is for the node, the host before it.
for last; do :; done
for host; do [ -d "$work/nodes/\$host" ] && break; done
HOME=$work/nodes/\$host XDG_CACHE_HOME=\$HOME/cache MLENV_STORE=\$HOME/store
export HOME XDG_CACHE_HOME MLENV_STORE
lie=\$(cat "\$HOME/lie" 2>/dev/null)
case \$last in *'" agent'*) [ -z "\$lie" ] || exec python3 "$root/tests/support/lying_node.py" "\$lie" "\$last" ;; esac
exec sh -c "\$last"
SSH
chmod +x "$work/bin/ssh"
export PATH=$work/bin:$PATH
mkdir -p "$work/nodes/n1" "$work/nodes/n2"
cd "$work/project"

# job LIE WORD…: `mlenv run` on n1, which lies so; its words are in $work/out and $work/err, its status is $status.
job() {
  echo "$1" >"$work/nodes/n1/lie"
  shift
  status=0
  "$MLENV" run --engine ssh --hosts n1 --nodes 1 --no-project --no-check "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
}
began() { SECONDS=0; }
within() { [ "$SECONDS" -le "$1" ] || fail "$2: $SECONDS s: $(tail -n 5 "$work/err")"; }
# said WHAT TEXT: as a part of what went to standard error.
said() { grep -qF -- "$2" "$work/err" || fail "$1: $(tail -n 20 "$work/err")"; }
# no_forged_line: none that a node wrote into mlenv's own.
no_forged_line() {
  if grep -nE '^(hint: run|mlenv: all)' "$work/err" "$work/out"; then fail "a node spoke for mlenv"; fi
  [ "$(wc -c <"$work/err")" -lt 20000 ] || fail "$(wc -c <"$work/err") bytes of words"
}

note "an honest node"
job "" base:v1 -- sh -c 'echo fine; exit 3'
equal "its status" 3 "$status"
equal "its output" fine "$(cat "$work/out")"

lies=(never_ends)
[ "$who" = root ] || lies=(drips)
for lie in "${lies[@]}"; do
  note "$lie: the deadline"
  began
  job "$lie" --timeout 6s --stop-timeout 1s base:v1 -- sh -c 'echo begun'
  equal "$lie: the status" 124 "$status"
  within 20 "$lie: the deadline, the grace, and no more"
  said "$lie: it is named" "node n1 is given up"
done

# signalled FIRST SECOND: while a rank runs that never ends.
signalled() {
  echo never_ends >"$work/nodes/n1/lie"
  nothing_said
  env --default-signal=INT "$MLENV" run --engine ssh --hosts n1 --nodes 1 --no-project --no-check --stop-timeout 60s base:v1 -- \
    sh -c 'echo begun' </dev/null >"$work/out" 2>"$work/err" &
  local pid=$!
  started+=("$pid")
  wait_until 30 grep -q begun "$work/out"
  kill -s "$1" "$pid"
  read -rt 1 <> <(:) || true
  kill -0 "$pid" || fail "the first signal ended it, without the grace"
  began
  kill -s "$2" "$pid"
  status=0
  wait "$pid" || status=$?
}
note "the second signal"
if [ "$who" = root ]; then
  signalled INT INT
  equal "the status" 130 "$status"
else
  signalled TERM INT
  equal "the status" 143 "$status"
fi
within 8 "the second signal"
said "it is named" "node n1 is given up"

note "what a node says of itself"
for lie in hosts before_hello controller sizes status quiet_failure two_lines; do
  job "$lie" --timeout 20s --stop-timeout 1s base:v1 -- sh -c 'cat /etc/hosts'
  equal "$lie: the status" 125 "$status"
  said "$lie: which node" n1
  said "$lie: why" "misunderstood each other"
  no_forged_line
  if grep -q 6.6.6.6 "$work/out"; then fail "$lie: $(cat "$work/out")"; fi
done

note "a host's name, on two nodes"
echo host_name >"$work/nodes/n1/lie"
echo other >"$work/nodes/n2/lie"
ends_with 0 "$MLENV" run --engine ssh --hosts n1,n2 --nodes 2 --interface net0 --no-project --no-check --timeout 30s base:v1 -- cat /etc/hosts
grep -q n2 "$work/out" || fail "no names: $(cat "$work/out")"
if grep -q 6.6.6.6 "$work/out"; then fail "$(cat "$work/out")"; fi

note "many words"
job huge --timeout 20s --stop-timeout 1s base:v1 -- true
[ "$status" != 0 ] || fail "it worked"
no_forged_line
if pgrep -f "$work/nodes" >/dev/null; then fail "agents are left: $(pgrep -af "$work/nodes")"; fi
both_done
