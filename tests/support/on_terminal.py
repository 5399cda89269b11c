#!/usr/bin/env python3
"""on_terminal.py TYPED COMMAND…: runs it on a terminal of its own, types TYPED once `READY` is shown, prints what the
terminal shows, and ends with the command's status."""
import os
import pty
import sys

pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
typed = sys.argv[1].encode().decode("unicode_escape").encode()
while True:
    try:
        more = os.read(master, 65536)
    except OSError:
        break
    if not more:
        break
    shown += more
    if typed and b"READY" in shown:
        os.write(master, typed)
        typed = b""
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
