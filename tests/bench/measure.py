"""Measures one command: wall time, processor time, peak memory and bytes written, of the command's
processes and of a daemon's that does its work.

Processor time and bytes written are exact for what has ended when the command ends (Linux adds a
reaped child's to its parent's: wait4(2), proc(5) `io`); memory is sampled: the largest sum of
resident sets, file pages included. What a daemon leaves to init (containerd's shims, each with a container) comes to
this process instead (prctl(2), PR_SET_CHILD_SUBREAPER), and is counted when it has ended.
"""
import ctypes
import dataclasses
import os
import resource
import subprocess
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SAMPLE_SECONDS = 0.2  # less at first, so that short steps are seen
PR_SET_CHILD_SUBREAPER = 36
SHIM = "containerd-shim"  # the beginning of its name, as comm(5) has it


@dataclasses.dataclass
class Measurement:
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    written_bytes: int
    status: int
    output: str


def _children(process):
    found = []
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:  # ended meanwhile
        return found
    for thread in threads:
        try:
            with open(f"/proc/{process}/task/{thread}/children", encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
        except OSError:
            pass
    return found


def _tree(roots):
    """Process ids of `roots` and all that descends from them. Only these are looked at: a sample of all processes
    of the machine would take processors from a step that uses all of them."""
    found, todo = set(), list(roots)
    while todo:
        process = todo.pop()
        if process not in found:
            found.add(process)
            todo += _children(process)
    return found


def _resident(processes):
    total = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/statm", encoding="ascii") as file:
                total += int(file.read().split()[1]) * PAGE
        except OSError:
            pass
    return total


def _cpu_of_tree(root):
    total = 0.0
    for process in _tree([root]):
        try:
            with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15]) / TICK
    return total


def _written_by(process):
    with open(f"/proc/{process}/io", encoding="ascii") as file:
        values = dict(line.split(": ") for line in file.read().splitlines())
    return int(values["write_bytes"]) - int(values["cancelled_write_bytes"])


def _written_by_tree(root):
    total = 0
    for process in _tree([root]):
        try:
            total += _written_by(process)
        except OSError:
            pass
    return total


def _shims():
    found = []
    for process in _children(os.getpid()):
        try:
            with open(f"/proc/{process}/comm", encoding="ascii") as file:
                if file.read().startswith(SHIM):
                    found.append(process)
        except OSError:
            pass
    return found


def _reap_shims():
    """Those that end soon: containerd ends each with its container."""
    deadline = time.monotonic() + 5
    while (shims := _shims()) and time.monotonic() < deadline:
        for shim in shims:
            os.waitpid(shim, os.WNOHANG)
        time.sleep(0.02)


def measure(argv, daemons=(), env=None, folder=None):
    """Runs `argv` to its end; `daemons` are the process ids of those that work for it."""
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        raise RuntimeError("this kernel does not tell children (CONFIG_PROC_CHILDREN)")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _reap_shims()  # of what came before
    cpu_before = sum(map(_cpu_of_tree, daemons))
    written_before = sum(map(_written_by_tree, daemons))
    own_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_written = _written_by(os.getpid())
    peak = [0]
    done = threading.Event()
    begin = time.monotonic()
    with subprocess.Popen(argv, env=env, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True) as process:
        roots = [process.pid, *daemons]

        def sample():
            pause = SAMPLE_SECONDS / 32
            while not done.wait(pause):
                peak[0] = max(peak[0], _resident(_tree(roots + _shims())))
                pause = min(2 * pause, SAMPLE_SECONDS)

        sampler = threading.Thread(target=sample)
        sampler.start()
        output = process.communicate()[0]
        wall = time.monotonic() - begin
        done.set()
        sampler.join()
    _reap_shims()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime - own_before.ru_utime - own_before.ru_stime
    written = _written_by(os.getpid()) - own_written
    cpu += sum(map(_cpu_of_tree, daemons)) - cpu_before
    written += sum(map(_written_by_tree, daemons)) - written_before
    return Measurement(wall, cpu, peak[0], written, process.returncode, output)
