"""layers_archive.py FILE NAME CONFIG LAYER.tar…: an OCI archive of these layers, as they are, with busybox
below them. CONFIG is JSON."""
import gzip, hashlib, io, json, sys, tarfile

out, name, config, *layers = sys.argv[1:]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def busybox():
    data = open("/usr/bin/busybox", "rb").read()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "etc", "root", "tmp"):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(info)
        info = tarfile.TarInfo("bin/busybox")
        info.size, info.mode = len(data), 0o755
        tar.addfile(info, io.BytesIO(data))
        for link in ("sh", "mkdir", "true", "stat", "sha256sum"):
            info = tarfile.TarInfo("bin/" + link)
            info.type, info.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(info)
    return buffer.getvalue()


tars = [busybox()] + [open(layer, "rb").read() for layer in layers]
blobs = {digest(blob): blob for blob in (gzip.compress(tar, 6, mtime=0) for tar in tars)}


def add(data):
    blobs[digest(data)] = data
    return {"digest": digest(data), "size": len(data)}


settings = {"Env": ["PATH=/bin"], "Cmd": ["sh"], **json.loads(config)}
described = {"architecture": "amd64", "os": "linux", "config": settings,
             "rootfs": {"type": "layers", "diff_ids": [digest(tar) for tar in tars]}}
layer_type = "application/vnd.oci.image.layer.v1.tar+gzip"
manifest_type = "application/vnd.oci.image.manifest.v1+json"
manifest = add(json.dumps({
    "schemaVersion": 2, "mediaType": manifest_type,
    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **add(json.dumps(described).encode())},
    "layers": [{"mediaType": layer_type, **add(gzip.compress(tar, 6, mtime=0))} for tar in tars]}).encode())
index = {"schemaVersion": 2, "manifests": [
    {"mediaType": manifest_type, **manifest, "annotations": {"io.containerd.image.name": name}}]}
with tarfile.open(out, "w") as tar:
    members = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}
    members.update({"blobs/sha256/" + key.split(":")[1]: data for key, data in blobs.items()})
    for key, data in members.items():
        info = tarfile.TarInfo(key)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
