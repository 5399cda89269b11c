#!/usr/bin/env python3
"""Ranks sum a vector again and again, around a ring or at a server, with the standard library alone.

    exchange.py ring|server BYTES STEPS [RESULT]

Each rank finds the others by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (or Slurm's own variables).
`ring`: reduce-scatter and all-gather, 2(n-1)/n of the vector out of and into each rank. `server`: rank 0
adds up what n-1 workers send and sends the sum back: n-1 vectors in, then n-1 out, by one link. Every
step's sum is checked. Rank 0 of a ring, or the last worker, prints when its first step was over (seconds
since 1970) and how long each step took, as JSON; into RESULT where that is given.

A vector is 32-bit numbers below 2^16, added as one large number: no lane carries over.
"""
import json
import os
import socket
import struct
import sys
import threading
import time

LANE = 4


def add(one, other):
    return (int.from_bytes(one, "little") + int.from_bytes(other, "little")).to_bytes(len(one), "little")


def receive(peer, count):
    data = bytearray(count)
    view = memoryview(data)
    while count:
        got = peer.recv_into(view[-count:], count)
        if got == 0:
            raise SystemExit("a peer is gone")
        count -= got
    return data


def both(out, out_data, into, count):
    """Sends and receives at a time."""
    sender = threading.Thread(target=out.sendall, args=(out_data,))
    sender.start()
    data = receive(into, count)
    sender.join()
    return data


def connect(where):
    while True:
        try:
            peer = socket.create_connection(where, timeout=60)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return peer
        except ConnectionRefusedError:
            time.sleep(0.02)


def accept(listener):
    peer, _ = listener.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def meet(rank, world, master):
    """All ranks' listening sockets: ours, and the addresses of all."""
    listener = socket.create_server(("", 0))
    port = listener.getsockname()[1]
    if rank == 0:
        door = socket.create_server(("", master[1]))
        places = {0: (master[0], port)}
        peers = []
        for _ in range(world - 1):
            peer = accept(door)
            other, at = struct.unpack("!II", receive(peer, 8))
            places[other] = (peer.getpeername()[0], at)
            peers.append(peer)
        text = json.dumps([places[i] for i in range(world)]).encode()
        for peer in peers:
            peer.sendall(struct.pack("!I", len(text)) + text)
            peer.close()
        return listener, json.loads(text)
    peer = connect(master)
    peer.sendall(struct.pack("!II", rank, port))
    size = struct.unpack("!I", receive(peer, 4))[0]
    return listener, json.loads(receive(peer, size))


class Ring:
    def __init__(self, rank, world, listener, places):
        self.rank, self.world = rank, world
        self.next = connect(tuple(places[(rank + 1) % world]))
        self.previous = accept(listener)
        self.speaks = rank == 0
        self.parts = world

    def step(self, vector):
        size = len(vector) // self.world // LANE * LANE
        parts = [bytes(vector[i * size:(i + 1) * size if i + 1 < self.world else len(vector)])
                 for i in range(self.world)]
        for i in range(self.world - 1):
            out, into = (self.rank - i) % self.world, (self.rank - i - 1) % self.world
            parts[into] = add(parts[into], both(self.next, parts[out], self.previous, len(parts[into])))
        for i in range(self.world - 1):
            out, into = (self.rank - i + 1) % self.world, (self.rank - i) % self.world
            parts[into] = bytes(both(self.next, parts[out], self.previous, len(parts[into])))
        return b"".join(parts)


class Server:
    """Rank 0; the others are its workers."""

    def __init__(self, rank, world, listener, places):
        self.rank = rank
        self.workers = [accept(listener) for _ in range(world - 1)] if rank == 0 else []
        self.server = connect(tuple(places[0])) if rank else None
        self.speaks = rank == world - 1
        self.parts = world - 1

    def step(self, vector):
        if self.server:
            self.server.sendall(vector)
            return bytes(receive(self.server, len(vector)))
        data = [None] * len(self.workers)

        def take(i):
            data[i] = receive(self.workers[i], len(vector))
        self.each(take)
        total = data[0]
        for one in data[1:]:
            total = add(total, one)
        self.each(lambda i: self.workers[i].sendall(total))
        return None

    def each(self, work):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(self.workers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def variable(*names):
    for name in names:
        if name in os.environ:
            return os.environ[name]
    raise SystemExit(f"none of {', '.join(names)} is set")


def main():
    how, size, steps = sys.argv[1], int(sys.argv[2]) // LANE * LANE, int(sys.argv[3])
    rank, world = int(variable("RANK", "SLURM_PROCID")), int(variable("WORLD_SIZE", "SLURM_NTASKS"))
    master = (variable("MASTER_ADDR"), int(variable("MASTER_PORT")))
    listener, places = meet(rank, world, master)
    group = {"ring": Ring, "server": Server}[how](rank, world, listener, places)
    vector = struct.pack("<I", 3) * (size // LANE)
    expected = struct.pack("<I", 3 * group.parts) * (size // LANE)
    took, first = [], 0.0
    for _ in range(steps):
        begin = time.monotonic()
        total = group.step(vector)
        took.append(time.monotonic() - begin)
        first = first or time.time()
        if total is not None and total != expected:
            raise SystemExit("a wrong sum")
    if not group.speaks:
        return
    line = json.dumps({"first_step_at": first, "step_seconds": took})
    if len(sys.argv) > 4:
        with open(sys.argv[4], "w", encoding="ascii") as file:
            file.write(line)
    print(line, flush=True)


main()
