#!/usr/bin/env python3
"""busybox_image.py OUT.tar NAME [PATH=FILE…]: an OCI archive of one layer: a static busybox with its links in /bin, and those files."""
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile

out, name, *files = sys.argv[1:]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as tar:

    def put(path, source):
        entry = tarfile.TarInfo(path)
        entry.size = os.path.getsize(source)
        entry.mode = 0o755
        with open(source, "rb") as data:
            tar.addfile(entry, data)

    put("bin/busybox", shutil.which("busybox"))
    for link in "sh cat echo env grep head id kill ls mkdir ps rm sleep touch true".split():
        entry = tarfile.TarInfo("bin/" + link)
        entry.type = tarfile.SYMTYPE
        entry.linkname = "busybox"
        tar.addfile(entry)
    for one in files:
        put(*one.split("=", 1))
layer = layer.getvalue()
architecture = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
config = json.dumps(
    {
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
    }
).encode()
oci = "application/vnd.oci.image."
manifest = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": oci + "manifest.v1+json",
        "config": {"mediaType": oci + "config.v1+json", "digest": digest(config), "size": len(config)},
        "layers": [{"mediaType": oci + "layer.v1.tar", "digest": digest(layer), "size": len(layer)}],
    }
).encode()
index = json.dumps(
    {
        "schemaVersion": 2,
        "manifests": [
            {
                "mediaType": oci + "manifest.v1+json",
                "digest": digest(manifest),
                "size": len(manifest),
                "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
            }
        ],
    }
).encode()
with tarfile.open(out, "w") as tar:
    blobs = [("blobs/sha256/" + digest(data)[7:], data) for data in (layer, config, manifest)]
    for path, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index), *blobs]:
        entry = tarfile.TarInfo(path)
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
