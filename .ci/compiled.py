"""What a build folder compiles, source by source, and what each source sees; for .ci/tidy and
.ci/sources."""
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
FOLDERS = ("base", "images", "recipes", "builder", "runner", "cli", "tests")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def commands(root, build):
    """Source (below root) → its compiler's words; those of a unit for each of its sources."""
    answer = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        words = shlex.split(entry["command"])
        if path.parent.name == "Unity" and path.exists():
            members = [pathlib.Path(name.decode()) for name in INCLUDE.findall(path.read_bytes())]
        else:
            members = [path]
        for member in members:
            if not member.is_relative_to(root) or not member.exists():
                continue
            if member.relative_to(root).parts[0] in FOLDERS:
                answer.setdefault(member.relative_to(root), words)
    return answer


def seen_headers(root, file, memory):
    """The file, and the project's headers that it includes, whatever way."""
    if file in memory:
        return memory[file]
    memory[file] = set()
    seen = {file}
    for name in INCLUDE.findall((root / file).read_bytes()):
        header = pathlib.Path(name.decode())
        if (root / header).exists():
            seen |= {header} | seen_headers(root, header, memory)
    memory[file] = seen
    return seen


def world(*files):
    """Everything outside the project that can change a verdict, and the files that give it."""
    packages = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", "*-dev"],
                              capture_output=True, check=False).stdout
    return packages + b"".join(pathlib.Path(file).read_bytes() for file in (__file__, *files))


def key(root, file, arguments, outside, memory):
    """By what a verdict about the file is remembered."""
    digest = hashlib.sha256(outside)
    # What passed in one clone has passed in all.
    here = [word.replace(str(root), ".") for word in arguments]
    digest.update(repr((str(file), here)).encode())
    for header in sorted(seen_headers(root, file, memory)):
        digest.update(hashlib.sha256((root / header).read_bytes()).digest())
    return digest.hexdigest()


def git_lines(root, *argv):
    done = subprocess.run(["git", *argv], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")


def changed_since(root, commit):
    """Names of files that differ from the commit, not yet committed ones too."""
    return {*git_lines(root, "diff", "--name-only", commit, "--"),
            *git_lines(root, "ls-files", "-o", "--exclude-standard")}


def newest_first(root, commit, files):
    """By their last change since the commit, or that of the header beside them."""
    names = [*git_lines(root, "diff", "--name-only", "HEAD", "--"),
             *git_lines(root, "ls-files", "-o", "--exclude-standard"),
             *git_lines(root, "log", "--format=", "--name-only", f"{commit}..HEAD")]
    age = {}
    for place, name in enumerate(names):
        age.setdefault(name, place)
    def age_of(file):
        return min(age.get(str(one), len(names)) for one in (file, file.with_suffix(".hpp")))
    return sorted(files, key=lambda file: (age_of(file), str(file)))


def among(files, changed):
    """Those that changed, or lie beside a header of the same name that did."""
    return [file for file in files
            if str(file) in changed or str(file.with_suffix(".hpp")) in changed]
