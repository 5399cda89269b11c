#!/usr/bin/env python3
"""shell_image.py OUT.tar NAME SHELL [PROGRAM…]: an OCI archive of one layer: SHELL (a static busybox) as
/bin/busybox with its applets, a /tmp for everybody, and the programs in /opt."""
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

out, name, shell, *programs = sys.argv[1:]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as tar:
    def add(path, data=b"", mode=0o755, **more):
        entry = tarfile.TarInfo(path)
        entry.size, entry.mode = len(data), mode
        for key, value in more.items():
            setattr(entry, key, value)
        tar.addfile(entry, io.BytesIO(data))

    for folder, mode in (("bin", 0o755), ("etc", 0o755), ("opt", 0o755), ("root", 0o700), ("tmp", 0o1777)):
        add(folder, mode=mode, type=tarfile.DIRTYPE)
    with open(shell, "rb") as file:
        add("bin/busybox", file.read())
    for applet in subprocess.run([shell, "--list"], check=True, capture_output=True, text=True).stdout.split():
        if applet != "busybox":
            add(f"bin/{applet}", type=tarfile.SYMTYPE, linkname="busybox")
    add("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/:/bin/sh\n", 0o644)
    add("etc/group", b"root:x:0:\nuser:x:1000:\n", 0o644)
    for program in programs:
        with open(program, "rb") as file:
            add("opt/" + os.path.basename(program), file.read())
layer = layer.getvalue()
config = json.dumps({
    "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux",
    "config": {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]},
    "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}).encode()
manifest = json.dumps({
    "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config),
               "size": len(config)},
    "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(layer),
                "size": len(layer)}]}).encode()
index = json.dumps({
    "schemaVersion": 2,
    "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(manifest),
                   "size": len(manifest),
                   "annotations": {"io.containerd.image.name": name,
                                   "org.opencontainers.image.ref.name": name}}]}).encode()
with tarfile.open(out, "w") as tar:
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
    files.update({"blobs/sha256/" + digest(data)[7:]: data for data in (layer, config, manifest)})
    for path, data in files.items():
        entry = tarfile.TarInfo(path)
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
