#!/usr/bin/env python3
"""small_image.py OUT.tar NAME [--config JSON] [TARGET=FILE]…: an OCI archive of one layer, made without a build.

It holds a static busybox with links for its usual programs, a root user, and each FILE at TARGET (executable, but in /etc).
JSON is put over the image's configuration (`{"User": "1000"}`).
"""
import hashlib
import io
import json
import shutil
import sys
import tarfile

PROGRAMS = "sh ls cat id echo env sleep head readlink true test mkdir touch wc kill tr seq ps rm sed grep".split()


def blob(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        def add(name, data=b"", mode=0o755, **more):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            for key, value in more.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
        for folder in ("bin", "etc", "root", "tmp", "opt"):
            add(folder, type=tarfile.DIRTYPE)
        with open(shutil.which("busybox"), "rb") as program:
            add("bin/busybox", program.read())
        for name in PROGRAMS:
            add(f"bin/{name}", type=tarfile.SYMTYPE, linkname="busybox")
        texts = {"etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "etc/group": b"root:x:0:\n"}
        for target, path in files:
            with open(path, "rb") as file:
                texts[target.lstrip("/")] = file.read()
        for target, text in texts.items():
            add(target, text, 0o644 if target.startswith("etc/") else 0o755)
    return out.getvalue()


def main(out, name, *words):
    config, files, words = {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]}, [], list(words)
    while words:
        word = words.pop(0)
        if word == "--config":
            config.update(json.loads(words.pop(0)))
        else:
            files.append(word.split("=", 1))
    data = layer(files)
    settings = json.dumps({"architecture": "amd64", "os": "linux", "config": config,
                           "rootfs": {"type": "layers", "diff_ids": [blob(data)]}}).encode()
    kind = "application/vnd.oci.image."
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
        "config": {"mediaType": kind + "config.v1+json", "digest": blob(settings), "size": len(settings)},
        "layers": [{"mediaType": kind + "layer.v1.tar", "digest": blob(data), "size": len(data)}]}).encode()
    index = json.dumps({"schemaVersion": 2, "manifests": [{
        "mediaType": kind + "manifest.v1+json", "digest": blob(manifest), "size": len(manifest),
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}}]}).encode()
    with tarfile.open(out, "w") as tar:
        for path, text in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index)] + [
                ("blobs/sha256/" + blob(one)[7:], one) for one in (data, settings, manifest)]:
            info = tarfile.TarInfo(path)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))


main(*sys.argv[1:])
