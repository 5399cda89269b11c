#!/usr/bin/env python3
"""tab.py SHELL ARGUMENT…: types at a real shell on a terminal. For each line of stdin, types it and
a Tab, and prints the line that the shell then has. The shell must have the prompt `READY>` and
Control-G bound to printing `LINE<…>` and emptying the line."""

import os
import pty
import re
import select
import sys
import time

DEADLINE_S = 30


def read_until(terminal: int, pattern: bytes, seen: bytes = b"") -> re.Match[bytes]:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        if found := re.search(pattern, seen, re.DOTALL):
            return found
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            sys.exit(f"not within {DEADLINE_S} s: {pattern!r}; the terminal showed {seen!r}")
        seen += os.read(terminal, 65536)


def main() -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    read_until(terminal, rb"READY>")
    for line in sys.stdin.read().splitlines():
        os.write(terminal, line.encode() + b"\t\x07")
        print(read_until(terminal, rb"LINE<(.*?)>.*READY>").group(1).decode())
    os.close(terminal)
    os.waitpid(child, 0)


main()
