"""busybox_image.py OUT.tar NAME [--config JSON] [--passwd TEXT] [FILE…]: an OCI archive of one layer: this machine's
static busybox under the names of its own programs, an /etc/passwd, and the files in /opt. Needs no package source."""
import argparse, hashlib, io, json, os, shutil, subprocess, sys, tarfile

arguments = argparse.ArgumentParser()
arguments.add_argument("out")
arguments.add_argument("name")
arguments.add_argument("--config", default="{}")
arguments.add_argument("--passwd", default="root:x:0:0:root:/root:/bin/sh\n")
arguments.add_argument("--group", default="root:x:0:\n")
arguments.add_argument("files", nargs="*")
given = arguments.parse_args()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as tar:

    def put(name, data=b"", mode=0o644, **more):
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), mode
        for key, value in more.items():
            setattr(entry, key, value)
        tar.addfile(entry, io.BytesIO(data))

    busybox = shutil.which("busybox")
    for folder in ("bin", "etc", "opt", "root", "tmp", "proc", "sys", "dev", "run"):
        put(folder, mode=0o1777 if folder == "tmp" else 0o755, type=tarfile.DIRTYPE)
    put("bin/busybox", open(busybox, "rb").read(), 0o755)
    for name in sorted(set(subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split())):
        if name != "busybox":
            put("bin/" + name, type=tarfile.SYMTYPE, linkname="busybox")
    put("etc/passwd", given.passwd.encode())
    put("etc/group", given.group.encode())
    for file in given.files:
        put("opt/" + os.path.basename(file), open(file, "rb").read(), 0o755)
layer = layer.getvalue()
config = {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"], **json.loads(given.config)}
config = json.dumps({"architecture": "amd64", "os": "linux", "config": config,
                     "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}).encode()
kind = "application/vnd.oci.image."
manifest = json.dumps({
    "schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
    "config": {"mediaType": kind + "config.v1+json", "digest": digest(config), "size": len(config)},
    "layers": [{"mediaType": kind + "layer.v1.tar", "digest": digest(layer), "size": len(layer)}]}).encode()
index = json.dumps({"schemaVersion": 2, "manifests": [{
    "mediaType": kind + "manifest.v1+json", "digest": digest(manifest), "size": len(manifest),
    "annotations": {"io.containerd.image.name": given.name, "org.opencontainers.image.ref.name": given.name}}]}).encode()
with tarfile.open(given.out, "w") as tar:
    files = [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index)]
    files += [("blobs/sha256/" + digest(data)[7:], data) for data in (layer, config, manifest)]
    for name, data in files:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
