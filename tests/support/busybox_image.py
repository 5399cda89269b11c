#!/usr/bin/env python3
"""busybox_image.py FILE NAME [OPTION…] [WORD…]: an OCI image of this machine's static busybox, as an archive for `mlenv load`.

It has busybox under all its names in /bin, /etc/passwd and /etc/group, and the usual empty folders. No package source is needed.
Options: --config JSON over the image's configuration; --annotations JSON of its manifest; --passwd TEXT; --group TEXT; --file TARGET=PATH, a file of this machine.
Words: SETTING=VALUE of the configuration (WorkingDir=/w, User=7, Cmd=["a","b"]); PATH@ a folder; PATH@TARGET a link; PATH=TEXT a file
(0755 where it begins with `#!`); PATH alone, a program of this machine in /opt.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

SETTINGS = ("WorkingDir", "User", "Cmd", "Env", "Entrypoint")
FOLDERS = ("bin", "dev", "etc", "opt", "proc", "root", "run", "sys", "tmp")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def layer(given, entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        def add(name, data=b"", mode=0o755, kind=tarfile.REGTYPE, target=""):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.size = kind, target, mode, len(data)
            tar.addfile(info, io.BytesIO(data))

        for folder in sorted(set(FOLDERS) - {entry.partition("@")[0] for entry in entries}):  # podman takes no two of a name
            add(folder, mode=0o1777 if folder == "tmp" else 0o755, kind=tarfile.DIRTYPE)
        busybox = shutil.which("busybox")
        add("bin/busybox", read(busybox))
        names = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
        for name in sorted(set(names) - {"busybox"}):
            add(f"bin/{name}", kind=tarfile.SYMTYPE, target="busybox")
        texts = {"etc/passwd": given.passwd.encode(), "etc/group": given.group.encode()}
        for word in given.file:
            target, _, path = word.partition("=")
            texts[target.lstrip("/")] = read(path)
        for name, text in texts.items():
            add(name, text, 0o644 if name.startswith("etc/") else 0o755)
        for entry in entries:
            name, separator, rest = entry.partition("@") if "@" in entry.partition("=")[0] else entry.partition("=")
            if separator == "=":
                add(name, rest.encode(), 0o755 if rest.startswith("#!") else 0o644)
            elif separator == "":
                add("opt/" + os.path.basename(name), read(name))
            elif rest:
                add(name, kind=tarfile.SYMTYPE, target=rest)
            else:
                add(name, kind=tarfile.DIRTYPE)
    return out.getvalue()


def image(tar, settings, annotations):
    """Its blobs by digest, and the descriptor of its manifest."""
    blobs = {}

    def put(data):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"digest": digest, "size": len(data)}

    oci = "application/vnd.oci.image."
    config = put(json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux", "config": settings,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]}}).encode())
    manifest = put(json.dumps({
        "schemaVersion": 2, "mediaType": oci + "manifest.v1+json", **({"annotations": annotations} if annotations else {}),
        "config": {"mediaType": oci + "config.v1+json", **config},
        "layers": [{"mediaType": oci + "layer.v1.tar+gzip", **put(gzip.compress(tar, 1, mtime=0))}]}).encode())
    return blobs, {"mediaType": oci + "manifest.v1+json", **manifest}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out")
    arguments.add_argument("name")
    arguments.add_argument("--config", default="{}")
    arguments.add_argument("--annotations", default="{}")
    arguments.add_argument("--passwd",
                           default="root:x:0:0:root:/root:/bin/sh\nsomebody:x:1000:1000::/home/somebody:/bin/sh\n")
    arguments.add_argument("--group", default="root:x:0:\nsomebody:x:1000:\n")
    arguments.add_argument("--file", action="append", default=[])
    given, words = arguments.parse_known_args()
    settings, entries = {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"], **json.loads(given.config)}, []
    for word in words:
        key, separator, value = word.partition("=")
        if separator and key in SETTINGS:
            settings[key] = json.loads(value) if value.startswith("[") else value
        else:
            entries.append(word)
    blobs, manifest = image(layer(given, entries), settings, json.loads(given.annotations))
    index = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        {**manifest, "annotations": {"io.containerd.image.name": given.name,
                                     "org.opencontainers.image.ref.name": given.name}}]}).encode()
    with tarfile.open(given.out, "w") as archive:
        for path, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index)] + [
                ("blobs/sha256/" + digest[7:], data) for digest, data in blobs.items()]:
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
