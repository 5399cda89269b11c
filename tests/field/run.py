#!/usr/bin/env python3
"""Holds what mlenv makes of each case's files against its `expect` (README.md has the format).

    tests/field/run.py                      # converts all (init)
    tests/field/run.py --lock               # and locks those that say what of it
    tests/field/run.py --lock 10            # one in ten of those
    tests/field/run.py --only 'conda/*'     # by KIND/NAME

A line for each case that is wrong, with the difference; the share of right ones at the end. 1 where a case is wrong
without `wrong-today`, or right with it. $MLENV is the program.
"""

import argparse
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from expectation import Expectation, bad_expectation
from outcome import conversion_differences, lock_differences

HERE = pathlib.Path(__file__).resolve().parent


def all_cases(only):
    found = sorted(path.parent for path in HERE.glob("*/*/expect"))
    names = {path: f"{path.parent.name}/{path.name}" for path in found}
    return [(names[path], path) for path in found if fnmatch.fnmatch(names[path], only)]


def mlenv(folder, *words):
    program = os.environ.get("MLENV") or str(HERE.parent.parent / "build" / "mlenv")
    return subprocess.run([program, *words], cwd=folder, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          capture_output=True, check=False)


def differences(name, path, expected, lock, scratch):
    """What differs from `expected`, of init and, where `lock`, of the lock."""
    folder = pathlib.Path(scratch) / path.name
    shutil.copytree(path, folder, ignore=shutil.ignore_patterns("expect"), symlinks=True)
    # What version control cannot hold, or would take for its own.
    for file in sorted(folder.rglob("*.hex")):
        file.with_suffix("").write_bytes(bytes.fromhex(file.read_text()))
        file.unlink()
    before = {file.relative_to(folder) for file in folder.rglob("*")}
    wrong = []
    if expected.source_file is not None:
        ended = mlenv(folder, "init", "--from", expected.source_file)
        wrong += conversion_differences(expected, folder, ended)
        more = {file.relative_to(folder) for file in folder.rglob("*")} - before - {pathlib.Path("recipe.yaml")}
        if more:
            wrong.append(f"init left {', '.join(sorted(map(str, more)))}")
    if lock and (folder / "recipe.yaml").exists():
        wrong += lock_differences(expected, folder, mlenv(folder, "--json", "lock", "recipe.yaml"))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convert", action="store_true", help="converts all: what is done anyway")
    parser.add_argument("--lock", nargs="?", type=int, const=1, metavar="N", help="locks too, one in N")
    parser.add_argument("--only", default="*", metavar="GLOB")
    parser.add_argument("--list", action="store_true", help="names the cases")
    parser.add_argument("--times", action="store_true", help="says how long each took")
    options = parser.parse_args()

    cases = all_cases(options.only)
    locking = 0
    counts = {"right": 0, "wrong": 0, "wrong today": 0, "no longer wrong": 0}
    looked = {"converted": 0, "locked": 0}
    for name, path in cases:
        try:
            expected = Expectation((path / "expect").read_text())
        except bad_expectation as mistake:
            sys.exit(f"{name}/expect: {mistake}")
        if options.list:
            print(name, expected.source, sep="\t")
            continue
        lock = False
        if expected.is_locked and options.lock:
            lock = locking % options.lock == 0
            locking += 1
        if expected.source_file is None and not lock:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mlenv-field.") as scratch:
            wrong = differences(name, path, expected, lock, scratch)
        looked["converted"] += expected.source_file is not None
        looked["locked"] += lock
        marked = expected.wrong_today is not None
        unseen = marked and expected.wrong_today_in == "lock" and not lock
        if not wrong:
            counts["no longer wrong" if marked and not unseen else "right"] += 1
        else:
            counts["wrong today" if marked else "wrong"] += 1
        if wrong:
            text = re.sub(r"\s+", " ", "; ".join(wrong))
            print(f"{'wrong today' if marked else 'wrong'}: {name}: {text}", flush=True)
        elif marked and not unseen:
            print(f"right, take its `wrong-today` out: {name}", flush=True)
        if options.times:
            print(f"{time.monotonic() - began:6.2f} s  {name}", flush=True)
    total = sum(counts.values())
    if options.list:
        return 0
    if total == 0:
        sys.exit("no such case")
    right = counts["right"] + counts["no longer wrong"]
    print(f"{total} cases ({looked['converted']} converted, {looked['locked']} locked): {right} right "
          f"({100 * right / total:.1f} %), {counts['wrong today']} wrong today, {counts['wrong']} wrong")
    return 1 if counts["wrong"] or counts["no longer wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
