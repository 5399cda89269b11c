#!/usr/bin/env python3
"""busybox_image.py FILE NAME [SETTING=VALUE…] [ENTRY…]: an OCI image of the static busybox as an archive
for `mlenv load`. Settings are those of the image's configuration (WorkingDir=/w, User=7, Cmd=["a","b"]).
Entries: PATH@ a folder, PATH@TARGET a link, PATH=TEXT a file (with 0755 where it begins with `#!`)."""
import gzip
import hashlib
import io
import json
import shutil
import sys
import tarfile

SETTINGS = ("WorkingDir", "User", "Cmd", "Env", "Entrypoint")


def layer(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        def add(name, kind=tarfile.REGTYPE, data=b"", target="", mode=0o755):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.size = kind, target, mode, len(data)
            tar.addfile(info, io.BytesIO(data))
        for folder in ("bin", "etc", "root"):
            add(folder, tarfile.DIRTYPE)
        with open(shutil.which("busybox"), "rb") as busybox:
            add("bin/busybox", data=busybox.read())
        for name in ("sh", "cat", "ls", "ln", "mv", "mkdir", "rmdir", "rm", "echo", "sleep", "id", "true",
                     "readlink", "stat", "chmod", "touch", "pwd", "grep", "tr", "wc", "head", "timeout"):
            add(f"bin/{name}", tarfile.SYMTYPE, target="busybox")
        add("etc/passwd", data=b"root:x:0:0:root:/root:/bin/sh\nsomebody:x:1000:1000::/home/somebody:/bin/sh\n",
            mode=0o644)
        for entry in entries:
            name, separator, rest = entry.partition("@") if "@" in entry.partition("=")[0] else entry.partition("=")
            if separator == "=":
                add(name, data=rest.encode(), mode=0o755 if rest.startswith("#!") else 0o644)
            elif rest:
                add(name, tarfile.SYMTYPE, target=rest)
            else:
                add(name, tarfile.DIRTYPE)
    return out.getvalue()


def main(file, name, *words):
    settings = {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]}
    entries = []
    for word in words:
        key, _, value = word.partition("=")
        if key in SETTINGS:
            settings[key] = json.loads(value) if value.startswith("[") else value
        else:
            entries.append(word)
    tar = layer(entries)
    blobs = {}

    def put(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"digest": "sha256:" + digest, "size": len(data)}

    oci = "application/vnd.oci.image."
    config = put(json.dumps({"architecture": "amd64", "os": "linux", "config": settings, "rootfs": {
        "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]}}).encode())
    manifest = put(json.dumps({
        "schemaVersion": 2, "mediaType": oci + "manifest.v1+json",
        "config": {"mediaType": oci + "config.v1+json", **config},
        "layers": [{"mediaType": oci + "layer.v1.tar+gzip", **put(gzip.compress(tar, 1, mtime=0))}]}).encode())
    index = json.dumps({"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": [
        {"mediaType": oci + "manifest.v1+json", **manifest,
         "annotations": {"io.containerd.image.name": name}}]}).encode()
    with tarfile.open(file, "w") as archive:
        for path, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index)] + [
                ("blobs/sha256/" + digest, data) for digest, data in blobs.items()]:
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main(*sys.argv[1:])
