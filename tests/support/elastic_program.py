"""Training in small, for tests: sums over a batch by all ranks, in whole numbers, so that the result does not
depend on how many there are. Rank 0 keeps checkpoints every five steps, and all keep one at SIGTERM.
"""
import os
import pathlib
import signal
import socket
import sys
import time

BATCH = 12
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
steps, pause = int(os.environ.get("STEPS", "40")), float(os.environ.get("PAUSE", "0"))
place = pathlib.Path(os.environ["MLENV_CHECKPOINTS"])
told_to_end = []
signal.signal(signal.SIGTERM, lambda *_: told_to_end.append(1))


def read_line(file):
    line = file.readline()
    if not line:
        sys.exit(f"rank {rank}: a peer is gone")
    return [int(word) for word in line.split()]


def connect():
    """Rank 0: a file of each other; the others: that of rank 0."""
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        server = socket.create_server(where)
        return [server.accept()[0].makefile("rw") for _ in range(world - 1)]
    while True:
        try:
            return [socket.create_connection(where).makefile("rw")]
        except OSError:
            time.sleep(0.02)


def all_sum(peers, *numbers):
    if rank == 0:
        for peer in peers:
            numbers = [a + b for a, b in zip(numbers, read_line(peer))]
    for peer in peers:
        peer.write(" ".join(map(str, numbers)) + "\n")
        peer.flush()
    return numbers if rank == 0 else read_line(peers[0])


def save(step, weight):
    if rank != 0:
        return
    with open(place / "state.new", "w") as file:
        file.write(f"{step} {weight}")
        file.flush()
        os.fsync(file.fileno())
    os.replace(place / "state.new", place / "state")


def note_samples(step, part):
    (place / "samples").mkdir(exist_ok=True)
    with open(place / "samples" / f"{os.environ['MLENV_RESTARTS']}.{rank}", "a") as file:
        file.write(f"{step} {part[0]} {part[-1] + 1}\n")


peers = connect()
state = (place / "state").read_text().split() if rank == 0 and (place / "state").exists() else (0, 1)
begin, weight = all_sum(peers, *(map(int, state) if rank == 0 else (0, 0)))
print(f"begins at {begin} of {world} ranks, attempt {os.environ['MLENV_RESTARTS']}", flush=True)
for step in range(begin, steps):
    size = BATCH // world
    part = range(step * BATCH + rank * size, step * BATCH + (rank + 1) * size)
    gradient, ends = all_sum(peers, sum(weight * one % 1009 for one in part), len(told_to_end))
    note_samples(step, part)
    weight = (weight * 31 + gradient) % 1000003
    time.sleep(pause)
    if ends or (step + 1) % 5 == 0:
        save(step + 1, weight)
        if rank == 0:
            print(f"step {step + 1} of {world} ranks", flush=True)
    if ends:
        sys.exit("told to end, and the state is kept")
save(steps, weight)
print("weights", weight, flush=True)
