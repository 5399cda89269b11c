"""A Python package index as static files: `simple/PROJECT/index.html` with `#sha256=` links (PEP 503)
and each wheel's METADATA beside it (PEP 658), so that a resolver need not open wheels."""
import hashlib
import html
import pathlib
import re
import zipfile


def normalise(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def _sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_index(wheels, folder):
    """`wheels`: paths of wheel files; they are linked into `folder`/wheels. Answers file name →
    SHA-256."""
    files, projects, digests = folder / "wheels", {}, {}
    files.mkdir(parents=True)
    for wheel in sorted(wheels):
        (files / wheel.name).symlink_to(wheel.resolve())
        with zipfile.ZipFile(wheel) as archive:
            name = next(n for n in archive.namelist()
                        if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
            metadata = archive.read(name)
        (files / (wheel.name + ".metadata")).write_bytes(metadata)
        digests[wheel.name] = _sha256(wheel)
        project = normalise(wheel.name.split("-")[0])
        projects.setdefault(project, []).append(
            f'<a href="../../wheels/{html.escape(wheel.name)}#sha256={digests[wheel.name]}" '
            f'data-core-metadata="sha256={hashlib.sha256(metadata).hexdigest()}">'
            f"{html.escape(wheel.name)}</a><br>")
    page = "<!DOCTYPE html><html><body>\n{}\n</body></html>\n"
    (folder / "simple").mkdir()
    (folder / "simple" / "index.html").write_text(page.format(
        "\n".join(f'<a href="{name}/">{name}</a><br>' for name in projects)))
    for project, links in projects.items():
        place = folder / "simple" / project
        place.mkdir()
        (place / "index.html").write_text(page.format("\n".join(links)))
    return digests
