"""Runs in a container: what `ldd -v` does not find, for every ELF file there.

Prints `library NAME`, and `version LIBRARY VERSION`, sorted; at the end `files COUNT`.
"""

import concurrent.futures
import os
import re
import subprocess

NOT_THERE = {"/proc", "/sys", "/dev", "/tmp", "/run", "/usr/lib/debug"}
VERSION = re.compile(r": (\S+): version `(\S+)' not found \(required by (\S+)\)")


def elf_files():
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in NOT_THERE]
        for name in files:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            with open(path, "rb") as file:
                head = file.read(20)
            # Programs and libraries for x86-64.
            if head[:4] == b"\x7fELF" and head[18:20] == b"\x3e\0" and head[16] in (2, 3):
                yield path


def ldd(path):
    result = subprocess.run(["ldd", "-v", path], capture_output=True, text=True, errors="replace")
    return result.stdout + result.stderr


missing = set()
count = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for text in pool.map(ldd, sorted(elf_files())):
        count += 1
        for line in text.splitlines():
            name, arrow, where = line.strip().partition(" => ")
            # `NAME (VERSION) => not found` says the same again.
            if arrow and where == "not found" and " " not in name:
                missing.add(f"library {name}")
            found = VERSION.search(line)
            if found:
                missing.add(f"version {os.path.basename(found[1])} {found[2]}")
print("\n".join(sorted(missing)))
print("files", count)
