"""odd_wheels.py GOOD LIES: wheels that hold all that a wheel may hold, and wheels that lie, with what is
said of each in LIES/words (NAME TAB WORDS).
odd_wheels.py --huge GOOD: one with a file of more than 4 GiB, in a few megabytes."""
import base64
import hashlib
import io
import pathlib
import struct
import sys
import warnings
import zipfile
import zlib

warnings.simplefilter("ignore")  # of duplicate names, which are meant
DATE = (2020, 1, 1, 0, 0, 0)


def metadata(name, version="1.0"):
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()


WHEEL = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def row(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    quoted = '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name
    return f"{quoted},sha256={digest},{len(content)}\n"


class Unseekable(io.BytesIO):
    """What makes zipfile write data descriptors."""

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation

    def tell(self):
        raise io.UnsupportedOperation


def odd(folder):
    info, data = "mlenv_odd-1.0.dist-info/", "mlenv_odd-1.0.data/"
    body = b"import odd\nprint('it is', odd.value)\n"
    files = {
        "odd/__init__.py": b"value = 42\n",
        "odd/deep.py": b"-" * 7000 + b"1\n",  # MemoryError in CPython 3.11's parser
        "odd/python2.py": b"print 'x'\n",
        "odd/nul.py": b"x = 1\0\n",
        "odd/empty": b"",
        "odd/Case.txt": b"upper",
        "odd/case.txt": b"lower",
        "odd/a b,c\"d'.txt": b"quoted in RECORD",
        "odd/n\u00e4ive \u65e5\u672c.txt": b"utf-8",
        "odd/" + "long" * 50 + ".txt": b"long",
        "odd/stored.bin": bytes(range(256)) * 1000,  # more than one stored block
        "odd/not-in-record.txt": b"x",
        data + "purelib/odd_pure.py": b"x = 1\n",
        data + "platlib/odd_plat.py": b"x = 2\n",
        data + "platlib/odd/inside.py": b"x = 3\n",
        data + "headers/odd.h": b"h",
        data + "headers/deep/odd.h": b"hh",
        data + "data/lib64/odd.txt": b"data\n",
        data + "data/share/odd/x.conf": b"c\n",
        data + "data/etc/odd.conf": b"c\n",
        data + "scripts/odd-plain": b"#!python\n" + body,
        data + "scripts/odd-gui": b"#!pythonw\n" + body,
        data + "scripts/odd-shell": b"#!/bin/sh\necho shell\n",
        data + "scripts/odd-binary": b"\x7fELF\0\1\2\3" + bytes(range(256)),
        data + "scripts/odd-empty": b"",
        data + "scripts/odd-short": b"#!py",
        info + "WHEEL": WHEEL,
        info + "METADATA": metadata("mlenv-odd"),
        info + "entry_points.txt": b"[console_scripts]\nodd-entry = odd:main\n[gui_scripts]\nodd-window = odd:main\n",
        info + "licenses/LICENSE": b"free\n",
    }
    # What the interpreter of a script is called with is an installer's own affair.
    files[data + "scripts/odd-arguments"] = b"#!python -I\n" + body
    files[data + "scripts/odd-windows"] = b"#!python\n" + body.replace(b"\n", b"\r\n")
    record = "".join(row(name, text) for name, text in files.items() if "not-in-record" not in name)
    record = record.replace(row("odd/case.txt", b"lower"), "odd/case.txt,sha256=AAAA,7\n")  # of another file
    files[info + "RECORD"] = (record + f"{info}RECORD,,\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for at, (name, text) in enumerate(files.items()):
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(("stored.bin", "Case.txt")) else zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(("odd-shell", "deep.py")) else 0o640) << 16
            with wheel.open(entry, "w", force_zip64=at % 3 == 0) as member:
                member.write(text)
    (folder / "mlenv_odd-1.0-py3-none-any.whl").write_bytes(out.getvalue())


def streamed(folder):
    """Written in one go: sizes and checksums behind the data."""
    info = "mlenv_streamed-1.0.dist-info/"
    files = {"streamed.py": b"value = 43\n" * 2000, "streamed.txt": b"x" * 100000, info + "WHEEL": WHEEL,
             info + "METADATA": metadata("mlenv-streamed")}
    files[info + "RECORD"] = ("".join(row(*file) for file in files.items()) + f"{info}RECORD,,\n").encode()
    out = Unseekable()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name, DATE), text, zipfile.ZIP_DEFLATED)
    (folder / "mlenv_streamed-1.0-py3-none-any.whl").write_bytes(out.getvalue())


def lie(folder, name, files=(), words="", change=None, record=None, said=None, **more):
    """`change` gets the bytes of the whole wheel."""
    stem = name.replace("-", "_")
    info = f"{more.get('stem', stem)}-1.0.dist-info/"
    everything = [(f"{stem}.py", b"x = 1\n" * 1000), *files, (info + "WHEEL", more.get("wheel", WHEEL)), (info + "METADATA", metadata(said or name))]
    rows = "".join(row(path, text) for path, text in everything) + f"{info}RECORD,,\n"
    if record is not False:
        everything.append((info + "RECORD", rows.encode() if record is None else record))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in everything:
            entry = zipfile.ZipInfo(path, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = more.get("modes", {}).get(path, 0o100644) << 16
            wheel.writestr(entry, text)
    data = out.getvalue()
    (folder / f"{stem}-1.0-py3-none-any.whl").write_bytes(change(bytearray(data)) if change else data)
    with open(folder / "words", "a", encoding="utf-8") as words_file:
        words_file.write(f"{name}\t{words}\n")


def headers(data, name):
    """Offsets of a member's local header and its entry in the directory."""
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as wheel:
        local = wheel.getinfo(name).header_offset
    return local, data.rindex(b"PK\1\2", 0, data.rindex(name.encode()))


def changed(name, at_local, at_central, pattern, value):
    def change(data):
        local, central = headers(data, name)
        for place in (local + at_local, central + at_central):
            struct.pack_into(pattern, data, place, value(struct.unpack_from(pattern, data, place)[0]))
        return data

    return change


def lies(folder):
    lie(folder, "lie-crc", words="CRC", change=changed("lie_crc.py", 14, 16, "<I", lambda crc: crc ^ 1))
    lie(folder, "lie-size", words="size", change=changed("lie_size.py", 22, 24, "<I", lambda size: size + 1))
    lie(folder, "lie-small", words="size", change=changed("lie_small.py", 22, 24, "<I", lambda size: size - 1))
    lie(folder, "lie-bomb", words="size", change=changed("lie_bomb.py", 22, 24, "<I", lambda size: 0xFFFFFFF0))
    lie(folder, "lie-slip", files=[("../../slip.py", b"x")], words="slip.py` is not a plain relative path")
    lie(folder, "lie-link", files=[("link", b"/etc/passwd")], modes={"link": 0o120777}, words="`link` is a symbolic link")
    lie(folder, "lie-twice", files=[("lie_twice.py", b"other")], words="lie_twice.py")
    # uv notices it or not, as its threads happen to meet; mlenv always does.
    lie(folder, "lie-name", said="somebody-else", words="somebody-else")
    lie(folder, "lie-info", stem="somebody_else", words="lie-info")
    lie(folder, "lie-control", files=[("new\nline \x1b[31m.txt", b"x")], words="filename")
    lie(folder, "lie-record", record=False, words="RECORD")
    lie(folder, "lie-fields", record=b"a,b\n", words="RECORD")
    lie(folder, "lie-version", wheel=WHEEL.replace(b"1.0", b"2.0", 1), words="its Wheel-Version is not 1.x")


def huge(folder):
    """A deflate stream by hand: one block of 1 MiB of zeros, ended at a byte, again and again."""
    name, info = "huge.bin", "mlenv_huge-1.0.dist-info/"
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = compressor.compress(bytes(1 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)
    stream = block * 4096
    stream += compressor.compress(b"end!\n") + compressor.flush()
    crc, zeros = 0, bytes(1 << 20)
    for _ in range(4096):
        crc = zlib.crc32(zeros, crc)
    crc = zlib.crc32(b"end!\n", crc)
    size = (4096 << 20) + 5
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in ((info + "WHEEL", WHEEL), (info + "METADATA", metadata("mlenv-huge")),
                           (info + "RECORD", f"{name},,\n{info}RECORD,,\n".encode())):
            wheel.writestr(zipfile.ZipInfo(path, DATE), text)
        extra = struct.pack("<HHQQ", 1, 16, size, len(stream))
        entry = zipfile.ZipInfo(name, DATE)
        entry.compress_type, entry.CRC, entry.file_size, entry.compress_size = zipfile.ZIP_DEFLATED, crc, size, len(stream)
        entry.header_offset = out.tell()
        out.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 8, 0, 0x5021, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(extra)))
        out.write(name.encode() + extra + stream)
        wheel.start_dir = out.tell()
        wheel.filelist.append(entry)
        wheel.NameToInfo[name] = entry
        wheel._didModify = True
    (folder / "mlenv_huge-1.0-py3-none-any.whl").write_bytes(out.getvalue())


if sys.argv[1] == "--huge":
    huge(pathlib.Path(sys.argv[2]))
else:
    odd(pathlib.Path(sys.argv[1]))
    streamed(pathlib.Path(sys.argv[1]))
    lies(pathlib.Path(sys.argv[2]))
