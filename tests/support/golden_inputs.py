"""golden_inputs.py FOLDER: a base image, two wheels and project files, the same bytes wherever Python runs.

What an image is made of must not hang on this machine's zlib, so nothing here is compressed by it: wheels hold
stored members and hand-made DEFLATE streams, the base is a plain tar."""
import base64
import hashlib
import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile
import zlib

DATE = (2020, 1, 1, 0, 0, 0)
WHEEL = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def noise(size):
    """Bytes that nothing compresses."""
    parts, block = [], b"mlenv"
    while len(parts) * 32 < size:
        block = hashlib.sha256(block).digest()
        parts.append(block)
    return b"".join(parts)[:size]


def runs(pairs):
    """Text of (byte, count), and its DEFLATE stream in the fixed Huffman code (RFC 1951, 3.2.6)."""
    bits = [1, 1, 0]  # last block, type 01, lowest bit first

    def code(value, width):
        bits.extend(value >> at & 1 for at in reversed(range(width)))

    text = b""
    for byte, count in pairs:
        code(0x30 + byte, 8)
        for _ in range((count - 1) // 258):
            code(0xC5, 8)  # length 258
            code(0, 5)  # distance 1
        for _ in range((count - 1) % 258):
            code(0x30 + byte, 8)
        text += bytes([byte]) * count
    code(0, 7)
    bits += [0] * (-len(bits) % 8)
    stream = bytes(sum(bit << at for at, bit in enumerate(bits[i:i + 8])) for i in range(0, len(bits), 8))
    assert zlib.decompress(stream, -15) == text
    return text, stream


def row(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def make_wheel(folder, name, files, deflated):
    """A zip of stored members and of `deflated` (name → runs)."""
    stem = name.replace("-", "_")
    info = f"{stem}-1.0.dist-info/"
    contents = {path: (text, None) for path, text in files.items()}
    contents.update({path: runs(pairs) for path, pairs in deflated.items()})
    contents[info + "METADATA"] = (f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(), None)
    contents[info + "WHEEL"] = (WHEEL, None)
    contents[info + "entry_points.txt"] = (f"[console_scripts]\n{stem}-tool = {stem}:main\n".encode(), None)
    record = "".join(row(path, text) for path, (text, _) in contents.items()) + f"{info}RECORD,,\n"
    contents[info + "RECORD"] = (record.encode(), None)
    out, directory = io.BytesIO(), b""
    for path, (text, stream) in contents.items():
        mode = 0o100755 if "/scripts/" in path else 0o100644
        body = text if stream is None else stream
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8 if stream else 0, 0, 0x5021, zlib.crc32(text), len(body), len(text),
                             len(path), 0)
        directory += (b"PK\1\2" + struct.pack("<H", 0x314) + common +
                      struct.pack("<HHHII", 0, 0, 0, mode << 16, out.tell()) + path.encode())
        out.write(b"PK\3\4" + common + path.encode() + body)
    start = out.tell()
    out.write(directory + b"PK\5\6" +
              struct.pack("<HHHHIIH", 0, 0, len(contents), len(contents), len(directory), start, 0))
    with zipfile.ZipFile(out) as wheel:
        assert wheel.testzip() is None
    (folder / f"{stem}-1.0-py3-none-any.whl").write_bytes(out.getvalue())


def add(folder, content):
    digest = hashlib.sha256(content).hexdigest()
    (folder / "blobs/sha256" / digest).write_bytes(content)
    return {"digest": "sha256:" + digest, "size": len(content)}


def make_base(folder):
    """An OCI layout of one layer: all that a base must tell about itself, and no program that runs."""
    (folder / "blobs/sha256").mkdir(parents=True)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        files = {"etc/os-release": b'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
                 "usr/bin/python3.11": b"\x7fELF no program \x003.11.2\0",
                 "usr/lib/x86_64-linux-gnu/libc.so.6": b"GNU C Library (Debian GLIBC 2.36) stable release version 2.36.\n"}
        seen = set()
        for path, content in files.items():
            for parent in reversed(pathlib.PurePosixPath(path).parents[:-1]):
                if parent in seen:
                    continue
                seen.add(parent)
                entry = tarfile.TarInfo(str(parent))
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("usr/bin/python3")
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, "python3.11", 0o777
        tar.addfile(link)
    layer = add(folder, out.getvalue())
    config = {"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/bin:/bin"]},
              "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
    media = "application/vnd.oci.image."
    manifest = {"schemaVersion": 2, "mediaType": media + "manifest.v1+json",
                "config": {"mediaType": media + "config.v1+json", **add(folder, json.dumps(config).encode())},
                "layers": [{"mediaType": media + "layer.v1.tar", **layer}]}
    entry = {"mediaType": media + "manifest.v1+json", **add(folder, json.dumps(manifest).encode()),
             "platform": {"os": "linux", "architecture": "amd64"}}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def main():
    folder = pathlib.Path(sys.argv[1])
    make_base(folder / "base")
    (folder / "wheels").mkdir()
    small = {"golden_small/__init__.py": b"def main():\n    print('small')\n", "golden_small/empty": b"",
             "golden_small-1.0.data/scripts/golden": b"#!python\nimport golden_small\n",
             "golden_small-1.0.data/data/share/golden/x.conf": b"x\n"}
    make_wheel(folder / "wheels", "golden-small", small, {"golden_small/runs.txt": [(97, 1000), (98, 1), (10, 70000)]})
    make_wheel(folder / "wheels", "golden-large", {"golden_large/noise.bin": noise(5 << 20)},
               {"golden_large/runs.bin": [(0, 3 << 20), (55, 99)]})
    source = folder / "src"
    (source / "deep").mkdir(parents=True)
    (source / "train.py").write_text("".join(f"print({at} ** 2)\n" for at in range(20000)))
    (source / "start.sh").write_text("#!/bin/sh\nexec python train.py\n")
    (source / "start.sh").chmod(0o755)
    (source / "deep/noise.bin").write_bytes(noise(2 << 20))
    (source / "deep/link").symlink_to("../train.py")


if __name__ == "__main__":
    main()
