#!/usr/bin/env python3
"""A file system with one endless file, `data`, of which every read takes a while: what a slow disk, or one of
another machine, is to a program. `slow_files.py FOLDER SECONDS` mounts it there (root alone may) and serves
until it is unmounted.

By the kernel's protocol (linux/fuse.h, version 7.31) itself, so that nothing need be installed. It cannot show
how a device's own queue behaves: readers wait in the kernel for an answer, uninterruptible or not.
"""

import ctypes
import errno
import os
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR = 1, 2, 3, 14, 15, 17, 18, 25, 26, 27
RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 29, 36, 38, 42
WITHOUT_ANSWER = {FORGET, INTERRUPT, BATCH_FORGET}
ROOT, DATA = 1, 2
SIZE = 1 << 40
DIRECT_IO = 1

folder, delay = sys.argv[1], float(sys.argv[2])
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
if libc.mount(b"slow", folder.encode(), b"fuse", 0, options) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")


def attributes(node: int) -> bytes:
    mode, size = (0o40755, 0) if node == ROOT else (0o100644, SIZE)
    return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer_to(opcode: int, node: int, body: bytes) -> bytes | int:
    if opcode == INIT:
        return struct.pack("<4I2H2I2HI7I", 7, 31, 0, 0, 4, 4, 65536, 1, 0, 0, *[0] * 8)
    if opcode == LOOKUP:
        if body != b"data\0":
            return errno.ENOENT
        return struct.pack("<4Q2I", DATA, 0, 3600, 3600, 0, 0) + attributes(DATA)
    if opcode == GETATTR:
        return struct.pack("<Q2I", 3600, 0, 0) + attributes(node)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<Q2I", 0, DIRECT_IO, 0)
    if opcode == READ:
        time.sleep(delay)
        return bytes(struct.unpack_from("<2QI", body)[2])
    if opcode == STATFS:
        return struct.pack("<5Q4I6I", 0, 0, 0, 0, 0, 4096, 255, 4096, 0, *[0] * 6)
    return b"" if opcode in (RELEASE, FLUSH, RELEASEDIR, DESTROY) else errno.ENOSYS


while True:
    try:
        request = os.read(device, 1 << 18)
    except OSError as error:
        if error.errno in (errno.EINTR, errno.ENOENT):
            continue
        break  # ENODEV: unmounted
    _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
    if opcode in WITHOUT_ANSWER:
        continue
    answer = answer_to(opcode, node, request[40:])
    status, body = (0, answer) if isinstance(answer, bytes) else (-answer, b"")
    try:
        os.write(device, struct.pack("<IiQ", 16 + len(body), status, unique) + body)
    except OSError as error:
        if error.errno != errno.ENOENT:  # whoever asked was interrupted
            raise
