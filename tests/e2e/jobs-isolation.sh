#!/usr/bin/env bash
# Two jobs at a time on the same nodes, by engine local and ssh: each empties /tmp, listens at the port
# that it is told, writes checkpoints of the same name and has a name of its own. Neither
# sees the other, nor do their logs and records. Either way of it by one engine; with MLENV_TEST_LONG=1 by both.
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
# Both jobs are there in every step, by files that they share on purpose.
cat >"$work/project/beside.py" <<'PYTHON'
import glob, os, shutil, socket, sys, time

me, other = sys.argv[1:]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def both(step):
    """All ranks of both jobs have come this far."""
    open(f"/shared/{step}-{me}-{rank}", "w").close()
    while len(glob.glob(f"/shared/{step}-*")) < 2 * world:
        time.sleep(0.02)

for name in ["/tmp/mine", "/workspace/mine", "/dev/shm/mine", os.path.expanduser("~/mine")]:
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w") as file:
        file.write(me)
both("written")
if me == "one":
    for name in os.listdir("/tmp"):
        path = "/tmp/" + name
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
both("emptied")
# The rendezvous that mlenv gave: each job has one of its own, though on the same address.
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    server = socket.create_server(where)
    both("listening")
    for _ in range(world - 1):
        peer, _ = server.accept()
        said = peer.makefile().read()
        assert said == me, f"{said} came to {me}"
else:
    both("listening")
    peer = socket.create_connection(where)
    peer.sendall(me.encode())
    peer.close()
state = os.path.join(os.environ["MLENV_CHECKPOINTS"], "state")
if rank == 0:
    with open(state + ".new", "w") as file:
        file.write(me)
    os.replace(state + ".new", state)
both("kept")
for name in ["/workspace/mine", "/dev/shm/mine", os.path.expanduser("~/mine"), state]:
    found = open(name).read()
    assert found == me, f"{name} is {found}'s, not {me}'s"
assert os.path.exists("/tmp/mine") == (me == "two"), os.listdir("/tmp")
pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
seen = b" ".join(open(f"/proc/{pid}/cmdline", "rb").read() for pid in pids)
assert b"beside.py\0" + other.encode() not in seen, seen
print("alone:", me, flush=True)
PYTHON

# by ENGINE: whether what follows is for the one that is used now, or for all.
by() { [ "$MLENV_TEST_LONG" = 1 ] || [ "$engine" = "$1" ]; }

for engine in ssh local; do
  engine "$engine"
  job small -- true </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
  if [ "$engine" = ssh ]; then note_census; fi
  if by ssh; then
    note "$engine: two jobs beside each other"
    rm -rf "$work/shared" "$work/one" "$work/two"
    mkdir -p "$work/shared" "$work/one" "$work/two"
    for me in one two; do
      other=$([ "$me" = one ] && echo two || echo one)
      job --name "$me" -v "$work/shared:/shared" --checkpoints "$work/$me:/checkpoints" small -- \
        python beside.py "$me" "$other" </dev/null >"$work/out-$me" 2>"$work/err-$me" &
      started+=($!)
      declare "job_$me=$!"
    done
    for me in one two; do
      status=0
      running=job_$me
      wait "${!running}" || status=$?
      [ "$status" = 0 ] || fail "$engine: status $status of $me: $(cat "$work/out-$me" "$work/err-$me")"
      equal "$engine: output of $me" "$(printf '%d: alone: '"$me"'\n' 0 1 2)" "$(LC_ALL=C sort "$work/out-$me")"
    done
    equal "$engine: checkpoints" "one two" "$(cat "$work/one/state") $(cat "$work/two/state")"
    nothing_left "two jobs, by $engine"
  fi

  if by local; then
    note "$engine: one of two is stopped, the other goes on"
    rm -f "$work/shared"/*
    for me in one two; do
      job --name "$me" -v "$work/shared:/shared" small -- \
        sh -c 'touch /shared/'"$me"'-$RANK; while [ ! -e /shared/end-'"$me"' ]; do sleep 0.1; done; echo "ended by itself"' \
        </dev/null >"$work/out-$me" 2>"$work/err-$me" &
      declare "job_$me=$!"
    done
    for me in one two; do
      for rank in 0 1 2; do wait_until 60 test -e "$work/shared/$me-$rank"; done
    done
    on_head "$MLENV" stop --time 1 one </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
    status=0
    # shellcheck disable=SC2154 # by declare
    wait "$job_one" || status=$?
    [ "$status" -ne 0 ] || fail "$engine: stopped, and all is well"
    touch "$work/shared/end-two"
    status=0
    # shellcheck disable=SC2154
    wait "$job_two" || status=$?
    equal "$engine: the other" 0 "$status"
    equal "$engine: its ranks" 3 "$(grep -c 'ended by itself$' "$work/out-two")"
    nothing_left "one was stopped, by $engine"
  fi
done
