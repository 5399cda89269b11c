#!/usr/bin/env python3
"""A second reader of the layer format, written from docs/layers.md and the OCI image specification alone.

usage: read_layers.py OCI_FOLDER [--wheels FOLDER] [--epoch SECONDS]

Reads every image of an OCI layout and holds it against the documents: digest and size of every blob, canonical JSON,
media types, titles, gzip members and what they are made of, diff-ids, tar headers and their order. With --wheels
(a folder with wheels under any name, such as the store's blobs) each DEFLATE stream of a wheels layer must be one
that a wheel holds, byte for byte. Prints `IMAGE LAYER-DIGEST SIZE DIFF-ID TITLE` for each layer, so that others can be
held against it; what disagrees is named on stderr, and the exit status is then 1.
"""

import argparse
import calendar
import hashlib
import json
import pathlib
import re
import struct
import sys
import time
import zipfile
import zlib

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CHUNK = 1 << 20
STORED_MOST = 65535
MEMBER_HEADER = bytes.fromhex("1f8b08000000000000ff")
SITE_PACKAGES = "opt/venv/lib/python3/site-packages"
wrong: list[str] = []


def check(claim: bool, what: str) -> None:
    if not claim:
        wrong.append(what)


# ---------------------------------------------------------------- gzip members (RFC 1952, RFC 1951)


class Member:
    """One gzip member: what it inflates to, its raw stream, and its stored blocks (None: not stored)."""

    def __init__(self, data: memoryview, at: int, where: str):
        check(bytes(data[at : at + 10]) == MEMBER_HEADER, f"{where}: the member at {at} has another header")
        begin = at + 10
        inflater = zlib.decompressobj(-15)
        self.content = inflater.decompress(data[begin:]) + inflater.flush()
        if not inflater.eof:
            raise SystemExit(f"{where}: the member at {at} does not end")
        end = len(data) - len(inflater.unused_data)
        self.raw = data[begin:end]
        crc, size = struct.unpack("<II", data[end : end + 8])
        check(crc == zlib.crc32(self.content), f"{where}: CRC-32 of the member at {at}")
        check(size == len(self.content) & 0xFFFFFFFF, f"{where}: size of the member at {at}")
        self.end = end + 8
        self.blocks = stored_blocks(self.raw)


def stored_blocks(raw: memoryview) -> list[int] | None:
    """Lengths of the stored blocks that the stream consists of; None when it does not."""
    lengths = []
    at = 0
    while True:
        if at + 5 > len(raw) or raw[at] not in (0, 1):
            return None
        length, inverse = struct.unpack("<HH", raw[at + 1 : at + 5])
        if length ^ inverse != 0xFFFF:
            return None
        lengths.append(length)
        at += 5 + length
        if raw[at - 5 - length] == 1:
            return lengths if at == len(raw) else None


def members_of(blob: bytes, where: str) -> list[Member]:
    view = memoryview(blob)
    members = []
    at = 0
    while at < len(view):
        # Each member is inflated from a window, so that what follows it is not copied for each.
        member = read_member(view, at, where)
        members.append(member)
        at = member.end
    return members


def read_member(view: memoryview, at: int, where: str) -> Member:
    size = 1 << 16
    while True:
        window = view[: min(len(view), at + size)]
        try:
            return Member(window, at, where)
        except (SystemExit, struct.error):
            if len(window) == len(view):
                raise
            size *= 8


# ---------------------------------------------------------------- tar (POSIX.1-2017, pax; ustar)


class Entry:
    def __init__(self) -> None:
        self.path = b""
        self.link = b""
        self.type = "0"
        self.mode = self.uid = self.gid = self.mtime = self.size = 0
        self.pax: dict[str, bytes] = {}


def octal(field: bytes, where: str) -> int:
    text = field.rstrip(b"\0 ")
    check(re.fullmatch(rb"[0-7]*", text) is not None, f"{where}: `{field!r}` is no octal number")
    return int(text or b"0", 8)


def records(data: bytes, where: str) -> dict[str, bytes]:
    """pax records, which must be sorted by key and count their own length."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        length = int(data[at:space])
        key, value = data[space + 1 : at + length - 1].split(b"=", 1)
        check(data[at + length - 1 : at + length] == b"\n", f"{where}: a pax record does not end")
        name = key.decode()
        check(not found or name > max(found), f"{where}: pax records are not sorted")
        found[name] = value
        at += length
    return found


def splits_into_ustar(path: bytes) -> bool:
    if len(path) <= 100:
        return True
    return any(path[i : i + 1] == b"/" and i <= 155 and 0 < len(path) - i - 1 <= 100 for i in range(1, len(path)))


def read_header(block: bytes, pax: dict[str, bytes], where: str) -> Entry:
    check(block[257:265] == b"ustar\x0000", f"{where}: no ustar header")
    unsigned = sum(block) - sum(block[148:156]) + 8 * 32
    check(octal(block[148:156], where) == unsigned, f"{where}: wrong checksum")
    entry = Entry()
    entry.pax = pax
    entry.type = chr(block[156])
    name, prefix = block[:100].rstrip(b"\0"), block[345:500].rstrip(b"\0")
    entry.path = pax.get("path", prefix + b"/" + name if prefix else name)
    entry.link = pax.get("linkpath", block[157:257].rstrip(b"\0"))
    entry.mode = octal(block[100:108], where)
    entry.uid = int(pax["uid"]) if "uid" in pax else octal(block[108:116], where)
    entry.gid = int(pax["gid"]) if "gid" in pax else octal(block[116:124], where)
    entry.size = int(pax["size"]) if "size" in pax else octal(block[124:136], where)
    entry.mtime = int(pax["mtime"]) if "mtime" in pax else octal(block[136:148], where)
    shown = f"{where}: `{entry.path.decode(errors='replace')}`"
    check(not block[265:329].strip(b"\0"), f"{shown} has names of owners")
    check(not block[500:].strip(b"\0"), f"{shown}: something behind the header")
    check_pax_is_needed(entry, shown)
    return entry


def check_pax_is_needed(entry: Entry, shown: str) -> None:
    needed = {
        "path": not splits_into_ustar(entry.path),
        "linkpath": len(entry.link) > 100,
        "size": entry.size >= 8 << 30,
        "uid": entry.uid >= 1 << 21,
        "gid": entry.gid >= 1 << 21,
        "mtime": not 0 <= entry.mtime < 1 << 33,
    }
    for key in entry.pax:
        allowed = needed.get(key, key.startswith("SCHILY.xattr."))
        check(allowed, f"{shown} has a pax record `{key}` that ustar could say")


def entries_of(tar: bytes, where: str) -> list[Entry]:
    entries = []
    at = 0
    pax: dict[str, bytes] = {}
    while tar[at : at + 512].strip(b"\0"):
        entry = read_header(tar[at : at + 512], pax, where) if tar[at + 156] != ord("x") else None
        if entry is None:
            size = octal(tar[at + 124 : at + 136], where)
            pax = records(tar[at + 512 : at + 512 + size], where)
        else:
            pax = {}
            entries.append(entry)
            size = entry.size if entry.type == "0" else 0
        padded = -(-size // 512) * 512
        check(not tar[at + 512 + size : at + 512 + padded].strip(b"\0"), f"{where}: padding that is not zero")
        at += 512 + padded
    check(len(tar) == at + 1024 and not tar[at:].strip(b"\0"), f"{where}: the archive does not end with two zero blocks")
    return entries


# ---------------------------------------------------------------- what docs/layers.md says of each layer


def check_common(entries: list[Entry], epoch: int, where: str) -> None:
    seen: dict[bytes, str] = {}
    for entry in entries:
        plain = entry.path.rstrip(b"/")
        shown = f"{where}: `{plain.decode(errors='replace')}`"
        check(entry.type in "0125346", f"{shown} is of type `{entry.type}`")
        check(entry.mtime == epoch, f"{shown} is of {entry.mtime}, not {epoch}")
        check((entry.type == "5") == entry.path.endswith(b"/"), f"{shown}: `/` at the end, and folders")
        parts = plain.split(b"/")
        check(b"" not in parts and b".." not in parts and (parts == [b"."] or b"." not in parts), f"{shown} is no plain path")
        check(not any(part.startswith(b".wh.") for part in parts), f"{shown} is a whiteout")
        check(plain not in seen, f"{shown} is there twice")
        parent = plain.rpartition(b"/")[0]
        check(not parent or seen.get(parent) == "5", f"{shown} comes before its folder, or without one")
        if entry.type == "1":
            check(seen.get(entry.link) == "0", f"{shown} is a hard link to what is not there yet")
        seen[plain] = entry.type


def check_sorted(entries: list[Entry], where: str) -> None:
    paths = [entry.path.rstrip(b"/") for entry in entries]
    for before, after in zip(paths, paths[1:]):
        check(before < after, f"{where}: `{after.decode(errors='replace')}` comes after `{before.decode(errors='replace')}`")


def check_files_sorted(entries: list[Entry], where: str) -> None:
    """Where folders come as they are needed: all else in path order, each folder right before the first entry in it."""
    check_sorted([entry for entry in entries if entry.type != "5"], where)
    for folder, entry in zip(entries, entries[1:]):
        if folder.type != "5" or entry.path.startswith(folder.path):
            continue
        # An empty folder stands for itself.
        is_empty = not any(one.path.startswith(folder.path) for one in entries if one is not folder)
        check(is_empty, f"{where}: `{folder.path.decode()}` does not stand before the first entry in it")


def check_owned_by_root(entries: list[Entry], where: str) -> None:
    for entry in entries:
        shown = f"{where}: `{entry.path.decode(errors='replace')}`"
        check((entry.uid, entry.gid) == (0, 0), f"{shown} belongs to {entry.uid}:{entry.gid}")
        check(not any(key.startswith("SCHILY.xattr.") for key in entry.pax), f"{shown} has extended attributes")
        check(entry.type in "052", f"{shown} is neither file, folder nor link")


def check_modes(entries: list[Entry], where: str, folders: tuple[int, ...] = (0o755,)) -> None:
    for entry in entries:
        allowed = {"0": (0o644, 0o755), "5": folders, "2": (0o777,)}.get(entry.type, ())
        check(entry.mode in allowed, f"{where}: `{entry.path.decode(errors='replace')}` has mode {entry.mode:o}")


def check_chunks(members: list[Member], where: str) -> None:
    """Cut into chunks of 1 MiB, each one gzip member."""
    for member in members[:-1]:
        check(len(member.content) == CHUNK, f"{where}: a chunk of {len(member.content)} bytes")
    check(0 < len(members[-1].content) <= CHUNK, f"{where}: the last chunk has {len(members[-1].content)} bytes")


def check_base(members: list[Member], entries: list[Entry], where: str) -> None:
    check_chunks(members, where)
    check_sorted(entries, where)
    for entry in entries:
        for key in entry.pax:
            known = not key.startswith("SCHILY.xattr.") or key == "SCHILY.xattr.security.capability"
            check(known, f"{where}: `{entry.path.decode()}` has `{key}`")
    paths = {entry.path.decode(errors="replace").rstrip("/"): entry for entry in entries}
    check("etc/machine-id" not in paths or paths["etc/machine-id"].size == 0, f"{where}: a machine-id")
    for path, entry in paths.items():
        gone = re.fullmatch(r"etc/ssh/ssh_host_.*|etc/ssl/private/ssl-cert-snakeoil\.key|var/log/.*\.log|.*/ldconfig/aux-cache", path)
        check(gone is None or entry.type == "5", f"{where}: `{path}` is there")


def check_spliced(members: list[Member], wheels: set[bytes] | None, where: str) -> int:
    """Glue in stored blocks, and streams of wheels between; returns how many of those."""
    streams = 0
    for member in members:
        if member.blocks is None:
            streams += 1
            known = wheels is None or hashlib.sha256(member.raw).digest() in wheels
            check(known, f"{where}: a stream of {len(member.raw)} bytes is in no wheel")
            continue
        full = all(length == STORED_MOST for length in member.blocks[:-1])
        check(full, f"{where}: stored blocks that are not full: {member.blocks[:3]}")
    return streams


def check_wheels(members: list[Member], entries: list[Entry], wheels: set[bytes] | None, where: str) -> None:
    check_files_sorted(entries, where)
    check_owned_by_root(entries, where)
    check_modes(entries, where)
    check(check_spliced(members, wheels, where) > 0, f"{where}: no stream of a wheel")
    for entry in entries:
        inside = entry.path.rstrip(b"/").startswith(b"opt/venv") or entry.path == b"opt/"
        check(inside, f"{where}: `{entry.path.decode(errors='replace')}` lies outside of the environment")
        check(b"/lib/python3." not in entry.path and b"/lib64" not in entry.path, f"{where}: a path over a link")
    tar = b"".join(member.content for member in members)
    check_records(files_of(tar, entries), where)


def files_of(tar: bytes, entries: list[Entry]) -> dict[str, bytes]:
    """Contents by path; walks again, since entries do not keep them."""
    files = {}
    at = 0
    for entry in entries:
        if tar[at + 156] == ord("x"):
            at += 512 + -(-octal(tar[at + 124 : at + 136], "") // 512) * 512
        if entry.type == "0":
            files[entry.path.decode()] = tar[at + 512 : at + 512 + entry.size]
            at += -(-entry.size // 512) * 512
        at += 512
    return files


def check_records(files: dict[str, bytes], where: str) -> None:
    """Each RECORD is sorted and tells hash and size of every installed file, its own aside (PyPA, "Recording installed")."""
    import base64
    import csv
    import posixpath

    told = set()
    for path, content in files.items():
        if not re.fullmatch(re.escape(SITE_PACKAGES) + r"/[^/]+\.dist-info/RECORD", path):
            continue
        rows = list(csv.reader(content.decode().splitlines()))
        check([row[0] for row in rows] == sorted(row[0] for row in rows), f"{where}: `{path}` is not sorted")
        check(files.get(posixpath.dirname(path) + "/INSTALLER", b"").strip() == b"mlenv", f"{where}: INSTALLER beside `{path}`")
        for name, digest, size in rows:
            target = posixpath.normpath(f"{SITE_PACKAGES}/{name}")
            told.add(target)
            if target == path:
                check((digest, size) == ("", ""), f"{where}: `{path}` tells of itself")
                continue
            if target not in files:
                check(False, f"{where}: `{name}` of `{path}` is not there")
                continue
            found = base64.urlsafe_b64encode(hashlib.sha256(files[target]).digest()).rstrip(b"=").decode()
            check(digest == f"sha256={found}", f"{where}: `{name}` has another hash in `{path}`")
            check(size == str(len(files[target])), f"{where}: `{name}` has another size in `{path}`")
    check(told == set(files), f"{where}: RECORDs and files differ: {sorted(told ^ set(files))[:3]}")


def check_environment(members: list[Member], entries: list[Entry], where: str) -> None:
    check_files_sorted(entries, where)
    check_owned_by_root(entries, where)
    check_modes(entries, where)
    check(check_spliced(members, None, where) == 0, f"{where}: something compressed")
    links = {entry.path.decode(): entry.link for entry in entries if entry.type == "2"}
    versions = [path for path in links if re.fullmatch(r"opt/venv/lib/python3\.\d+", path)]
    check([links[path] for path in versions] == [b"python3"], f"{where}: `lib/pythonX.Y` is no link to `python3`")
    folders = {entry.path.rstrip(b"/").decode() for entry in entries if entry.type == "5"}
    check(SITE_PACKAGES in folders, f"{where}: site-packages is no folder")


def check_bytecode(members: list[Member], entries: list[Entry], where: str) -> None:
    """A stored member with the folders, segments, the archive's end."""
    check_owned_by_root(entries, where)
    check_modes(entries, where)
    check(members[0].blocks is not None and members[-1].blocks is not None, f"{where}: first or last member is compressed")
    check(members[-1].content.strip(b"\0") == b"", f"{where}: the last member is not the archive's end")
    for member in members[1:-1]:
        check(0 < len(member.content) <= CHUNK, f"{where}: a chunk of {len(member.content)} bytes")
    kinds = [entry.type for entry in entries]
    check(kinds == sorted(kinds, key="50".index), f"{where}: folders behind files")
    check_sorted([entry for entry in entries if entry.type == "5"], where)
    for entry in entries:
        is_pyc = re.search(rb"/__pycache__/[^/]+\.cpython-\d+\.pyc$", entry.path) is not None
        check(entry.type == "5" or is_pyc, f"{where}: `{entry.path.decode()}` is no bytecode")
    tar = b"".join(member.content for member in members)
    for path, content in files_of(tar, entries).items():
        # PEP 552: hash-based, not checked.
        check(struct.unpack("<I", content[4:8])[0] == 1, f"{where}: `{path}` is not an unchecked-hash .pyc")


def check_files(members: list[Member], entries: list[Entry], where: str) -> None:
    check_chunks(members, where)
    check_sorted(entries, where)
    check_owned_by_root(entries, where)
    # Folders may have modes of the base.
    check_modes([entry for entry in entries if entry.type != "5"], where)


def check_layer(title: str, blob: bytes, epoch: int, wheels: set[bytes] | None, where: str) -> str:
    """Returns the diff-id."""
    members = members_of(blob, where)
    tar = b"".join(member.content for member in members)
    entries = entries_of(tar, where)
    check_common(entries, epoch, where)
    if re.fullmatch(r"debian:[a-z]+", title):
        check_base(members, entries, where)
    elif title.startswith("environment for Python "):
        check_environment(members, entries, where)
    elif title == "bytecode" or title.startswith("bytecode of "):
        check_bytecode(members, entries, where)
    elif title == "project files" or title.startswith("project files at /"):
        check_files(members, entries, where)
    elif title == "package sources":
        check_files_sorted(entries, where)
        check_owned_by_root(entries, where)
        check_modes(entries, where)
        check(check_spliced(members, None, where) == 0, f"{where}: something compressed")
    else:
        known = re.fullmatch(r"\d+ small wheels|[a-z0-9-]+ [0-9][^ ]*", title) is not None
        check(known, f"{where}: a title that docs/layers.md does not know")
        check_wheels(members, entries, wheels, where)
    return "sha256:" + hashlib.sha256(tar).hexdigest()


# ---------------------------------------------------------------- the image (OCI image-spec)


def canonical(text: bytes, what: str) -> dict:
    value = json.loads(text)
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    check(text == written, f"{what} is not canonical JSON")
    return value


class Layout:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.used: set[str] = set()
        check(json.loads((folder / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}, "oci-layout")

    def blob(self, descriptor: dict, media_type: str, what: str) -> bytes:
        check(descriptor["mediaType"] == media_type, f"{what} is of type `{descriptor['mediaType']}`")
        digest = descriptor["digest"]
        check(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) is not None, f"{what}: digest `{digest}`")
        content = (self.folder / "blobs/sha256" / digest[7:]).read_bytes()
        check(len(content) == descriptor["size"], f"{what}: {len(content)} bytes, not {descriptor['size']}")
        check("sha256:" + hashlib.sha256(content).hexdigest() == digest, f"{what}: another digest than `{digest}`")
        self.used.add(digest[7:])
        return content

    def check_nothing_else(self) -> None:
        there = {path.name for path in (self.folder / "blobs/sha256").iterdir()}
        check(there == self.used, f"blobs that no manifest names: {sorted(there ^ self.used)}")


def created_at(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def check_image(layout: Layout, descriptor: dict, wheels: set[bytes] | None, epoch: int | None) -> None:
    name = descriptor["annotations"]["org.opencontainers.image.ref.name"]
    manifest = canonical(layout.blob(descriptor, MANIFEST, f"{name}: manifest"), f"{name}: manifest")
    check(manifest["schemaVersion"] == 2 and manifest["mediaType"] == MANIFEST, f"{name}: manifest")
    config = canonical(layout.blob(manifest["config"], CONFIG, f"{name}: config"), f"{name}: config")
    created = created_at(config["created"])
    check(epoch is None or created == epoch, f"{name}: created at {created}, not {epoch}")
    check(config["rootfs"]["type"] == "layers", f"{name}: rootfs")
    diff_ids, history = config["rootfs"]["diff_ids"], config["history"]
    check(len(diff_ids) == len(manifest["layers"]) == len(history), f"{name}: numbers of layers differ")
    titles = []
    for layer, diff_id, line in zip(manifest["layers"], diff_ids, history):
        title = layer["annotations"]["dev.mlenv.title"]
        titles.append(title)
        where = f"{name}: layer `{title}`"
        check(line["comment"] == title and line["created"] == config["created"], f"{where}: history")
        blob = layout.blob(layer, LAYER, where)
        found = check_layer(title, blob, created, wheels, where)
        check(found == diff_id, f"{where}: diff-id is {found}, not {diff_id}")
        print(name, layer["digest"], layer["size"], found, title)
    check_order(titles, name)


def check_order(titles: list[str], name: str) -> None:
    order = ["debian:", "package sources", "environment ", "", "bytecode", "project files"]

    def place(title: str) -> int:
        return next((i for i, start in enumerate(order) if start and title.startswith(start)), order.index(""))

    places = [place(title) for title in titles]
    check(places == sorted(places) and places[0] == 0, f"{name}: layers in another order: {titles}")


def streams_of(folder: pathlib.Path) -> set[bytes]:
    """Digests of all DEFLATE streams in all wheels of a folder."""
    found = set()
    for path in sorted(folder.iterdir()):
        if not path.is_file() or not zipfile.is_zipfile(path):
            continue
        data = path.read_bytes()
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.infolist():
                name_length, extra_length = struct.unpack_from("<HH", data, member.header_offset + 26)
                begin = member.header_offset + 30 + name_length + extra_length
                found.add(hashlib.sha256(data[begin : begin + member.compress_size]).digest())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wheels", type=pathlib.Path)
    parser.add_argument("--epoch", type=int)
    arguments = parser.parse_args()
    layout = Layout(arguments.folder)
    index = json.loads((arguments.folder / "index.json").read_text())
    check(index["schemaVersion"] == 2 and len(index["manifests"]) > 0, "index.json")
    wheels = streams_of(arguments.wheels) if arguments.wheels else None
    for descriptor in index["manifests"]:
        check_image(layout, descriptor, wheels, arguments.epoch)
    layout.check_nothing_else()
    for line in wrong[:40]:
        print(f"disagrees: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
