#!/usr/bin/env python3
"""usage: nodes.py MLENV

Holds what `mlenv check --nodes 2` says of hosts that work together against nodes.toml, and that
nothing of it is said of one node. Prints each difference; status 1 where there is one."""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import make
except ModuleNotFoundError as absent:  # tomllib: Python before 3.11
    print(f"nodes.toml is not held against anything: {absent}")
    sys.exit(0)

BETWEEN_NODES = {"host-name-loopback", "interface-choice", "nccl-differs", "drivers-differ"}


def answer(mlenv, folder, nodes):
    images = sorted(str(path) for path in (folder / "images").iterdir())
    done = subprocess.run(
        [mlenv, "check", *images, "--fleet", folder / "hosts", "--nodes", str(nodes), "--json"],
        capture_output=True, text=True)  # fmt: skip
    if done.returncode not in (0, 3):
        sys.exit(f"mlenv check: status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def write(folder, entry):
    hosts, images = make.load("hosts.toml"), make.load("images.toml")
    for part in ("hosts", "images"):
        (folder / part).mkdir(parents=True)
    for name in entry["hosts"]:
        host = make.host_of(hosts[name])
        for path, value in entry.get("set", {}).get(name, {}).items():
            make.put(host, path, value)
        (folder / "hosts" / f"{name}.json").write_text(make.facts_json(host))
    for name in entry["images"]:
        (folder / "images" / f"{name}.json").write_text(make.image_json(name, images[name]))


def rules_of(one, severities=("blocks", "risks", "slows", "note")):
    return {found["rule"] for found in one["findings"] if found["severity"] in severities}


def told(name, what, expected, found):
    return [] if expected == found else [f"{name}: {what}: {sorted(found)}, expected {sorted(expected)}"]


def differences(name, entry, one_node, nodes):
    wrong = told(name, "between one", set(), rules_of(one_node["together"]))
    wrong += told(name, "between", set(entry.get("together", [])), rules_of(nodes["together"]))
    for before, cell in zip(one_node["verdicts"], nodes["verdicts"]):
        host = cell["host"]
        where = f"{host} × {pathlib.PurePath(cell['subject']).name}"
        more = rules_of(cell) - rules_of(before)
        wrong += told(name, where, set(entry.get("here", {}).get(host, [])), more)
        wrong += told(name, f"{where} alone", set(), rules_of(before) & BETWEEN_NODES)
        wrong += told(name, f"{where} alone has what two have not", set(),
                      rules_of(before) - rules_of(cell))  # fmt: skip
        for key in ("notes", "on_one"):
            there = set(entry.get(key, {}).get(host, []))
            wrong += told(name, where, there, there & rules_of(before) & rules_of(cell))
    for found in nodes["together"]["findings"]:
        for text in entry.get("names", {}).get(found["rule"], []):
            if text not in found["found"]:
                wrong.append(f"{name}: {found['rule']} names no `{text}`: {found['found']}")
    return wrong


def main():
    wrong, entries = [], make.load("nodes.toml")
    with tempfile.TemporaryDirectory() as folder:
        for name, entry in entries.items():
            place = pathlib.Path(folder) / name
            write(place, entry)
            wrong += differences(name, entry, *(answer(sys.argv[1], place, one) for one in (1, 2)))
    for line in wrong:
        print(line)
    print(f"{len(entries)} groups of hosts, {len(wrong)} differences")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
