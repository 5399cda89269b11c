#!/usr/bin/env bash
# What can go wrong with ranks of a job, on three nodes, by engine local and ssh: whichever it is, the
# rank that failed first is named first, the status is the documented one, and neither a process nor a
# mount, namespace, control group, port, socket or temporary file is left on any node. Each by one of the engines;
# with MLENV_TEST_LONG=1 by both, and jobs-faults-slurm.sh has Slurm.
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
# Rank 1 does what is asked for; the others wait for something that never comes, as in a collective.
cat >fault.py <<'PYTHON'
import os, signal, socket, sys, time

def taken():
    server = socket.create_server(("0.0.0.0", 29500))
    time.sleep(600)

def memory():
    kept = []
    while True:
        kept.append(bytearray(16 << 20))

faults = {
    "exit": lambda: sys.exit("rank one gives up"),
    "segv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "memory": memory,
    "import": lambda: __import__("nothing_of_that_name"),
    "taken": taken,
    "child": lambda: os.fork() or time.sleep(600),
}
if os.environ["RANK"] == os.environ.get("WHO", "1") or sys.argv[1] == "taken":
    faults[sys.argv[1]]()
else:
    time.sleep(600)
PYTHON
cat >hang_up.py <<'PYTHON'
"""hang_up.py STATUS COMMAND…: with a terminal of its own, which closes when all ranks are up."""
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shared = os.environ["work"] + "/shared/up-"
while not all(os.path.exists(shared + str(rank)) for rank in range(3)):
    time.sleep(0.05)
os.close(terminal)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
open(sys.argv[1], "w").write(str(status))
PYTHON

# by ENGINE TEXT: whether what follows is for the one that is used now, or for all; notes it.
by() {
  [ "$MLENV_TEST_LONG" = 1 ] || [ "$engine" = "$1" ] || return 1
  note "$engine: $2"
}

for engine in ssh local; do
  engine "$engine"
  note "$engine: all is well"
  # With what stays by right: programs, images, what programs' versions are.
  job small -- true </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
  if [ "$engine" = ssh ]; then note_census; fi
  nothing_left "a job that does well"

  if by ssh "a rank exits 1"; then
    ends 1 "rank 1 on ${names[1]} ended with status 1" small -- python fault.py exit
    said '^    rank one gives up$'
  fi
  if by local "a rank segfaults"; then
    ends 139 "rank 1 on ${names[1]} was ended by signal 11 \(SIGSEGV\)" small -- python fault.py segv
  fi
  if by ssh "a rank wants more memory than it may have"; then
    ends 137 "rank 1 on ${names[1]} was killed for want of memory" --memory 64m small -- python fault.py memory
  fi
  if by local "a rank cannot import a module"; then
    ends 1 "rank 1 on ${names[1]} ended with status 1" small -- python fault.py import
    said '^    ModuleNotFoundError: No module named .nothing_of_that_name'
  fi
  if by ssh "a command that is not there"; then
    ends 127 'rank [0-2] on .* (could not be run|ended with status 127)' small -- no-such-program
    said 'no-such-program'
  fi
  if by local "a port that another rank of the node has"; then
    ends 1 'rank [0-5] on .* ended with status 1' --ranks-per-node 2 small -- python fault.py taken
    said '^    OSError: .*Address already in use'
  fi
  if by ssh "ranks hang, and the job has a deadline"; then
    ends 124 "the job.s deadline of 3 s is over" --timeout 3s --stop-timeout 1s small -- sh -c 'trap "" TERM; sleep 600'
  fi
  if by local "a rank ends, and leaves a child behind that holds its output"; then
    ends 0 '' --timeout 60s small -- sh -c 'sleep 7781 & exit 0'
  fi
  if by ssh "the controller is killed"; then
    begun small -- sh -c "trap '' TERM HUP; $waits"
    on head pkill -9 -f -- "[r]un --nodes 3 --engine $engine"
    # Its own unfinished work goes when its store is next used.
    wait "$running" || true
    on_head "$MLENV" inspect small >"$work/runs"
    nothing_left "the controller was killed, by $engine"
    equal "$engine: its record" lost "$(on_head "$MLENV" --json runs show last | jq -r .state)"
  fi
  if by local "its terminal hangs up"; then
    rm -f "$work/shared"/*
    on_head env work="$work" python3 hang_up.py "$work/status" \
      "$MLENV" run --nodes 3 "${engine_words[@]}" -v "$work/shared:/shared" small -- sh -c "$waits" </dev/null >"$work/out" 2>"$work/err"
    equal "$engine: status" 129 "$(cat "$work/status")"
    nothing_left "a terminal that hung up, by $engine"
  fi
done
