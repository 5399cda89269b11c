#!/usr/bin/env python3
"""archive.py ROOT SUITE [Field=Value…] [--key HOME] COMPONENT:FOLDER…

Writes ROOT/dists/SUITE and ROOT/pool for the packages that lie in each FOLDER (*.deb), amd64 and all
together, signed with the only secret key of the GnuPG home HOME; without --key InRelease is left
unsigned. Fields go into the Release, in place of what would stand there: `Date=@SECONDS` and
`Valid-Until=@SECONDS` are written as dates.
"""
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import time


def control(deb):
    return subprocess.run(["dpkg-deb", "-f", deb], check=True, capture_output=True, text=True).stdout.rstrip("\n")


def index(root, component, folder):
    stanzas = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".deb"):
            continue
        path = f"pool/{component}/{name}"
        os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
        shutil.copy(f"{folder}/{name}", f"{root}/{path}")
        with open(f"{root}/{path}", "rb") as file:
            data = file.read()
        stanzas.append(f"{control(f'{folder}/{name}')}\nFilename: {path}\nSize: {len(data)}\n"
                       f"SHA256: {hashlib.sha256(data).hexdigest()}\n")
    return "\n".join(stanzas).encode()


def date(text):
    if not text.startswith("@"):
        return text
    return time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime(int(text[1:])))


def main(root, suite, *words):
    fields = {"Origin": "Test", "Label": "Test", "Suite": suite, "Codename": suite, "Date": f"@{int(time.time())}",
              "Architectures": "amd64 all", "No-Support-for-Architecture-all": "Packages"}
    parts, key, words = [], None, list(words)
    while words:
        word = words.pop(0)
        if word == "--key":
            key = words.pop(0)
        elif "=" in word.split(":")[0]:
            name, value = word.split("=", 1)
            fields[name] = date(value)
        else:
            parts.append(word.split(":", 1))
    fields["Date"] = date(fields["Date"])
    fields["Components"] = " ".join(component for component, _ in parts)
    dists = f"{root}/dists/{suite}"
    shutil.rmtree(dists, ignore_errors=True)
    sums = []
    for component, folder in parts:
        text = index(root, component, folder)
        for ending, data in (("", text), (".gz", gzip.compress(text, mtime=0))):
            path = f"{component}/binary-amd64/Packages{ending}"
            os.makedirs(os.path.dirname(f"{dists}/{path}"), exist_ok=True)
            with open(f"{dists}/{path}", "wb") as file:
                file.write(data)
            sums.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {path}")
    release = "".join(f"{name}: {value}\n" for name, value in fields.items())
    release += "SHA256:\n" + "\n".join(sums) + "\n"
    with open(f"{dists}/Release", "w", encoding="utf-8") as file:
        file.write(release)
    if key is None:
        shutil.copy(f"{dists}/Release", f"{dists}/InRelease")
        return
    subprocess.run(["gpg", "--homedir", key, "--batch", "--quiet", "--clearsign", "--output", f"{dists}/InRelease",
                    f"{dists}/Release"], check=True)


main(*sys.argv[1:])
