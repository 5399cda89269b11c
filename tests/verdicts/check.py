#!/usr/bin/env python3
"""usage: check.py MLENV [IMAGE…]

Holds what `mlenv check` says of each host and image against expected.tsv, and expected.tsv against
derive.py and reports.tsv. Prints each difference with both reasons; status 1 where there is one."""
import csv
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
WORST = ["runs", "slows", "risks", "unknown", "blocks"]
COUNTED = {"blocks", "risks", "slows"}


def rows(name):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def words(text):
    return [] if text == "-" else text.split()


def own_table():
    """Differences between the files of this folder."""
    try:
        import derive
    except ModuleNotFoundError as absent:  # tomllib: Python before 3.11
        print(f"expected.tsv is not held against derive.py: {absent}")
        return []
    told = (HERE / "expected.tsv").read_text().splitlines()
    derived = derive.table().splitlines()
    wrong = [f"expected.tsv: `{a}`, derived: `{b}`" for a, b in zip(told, derived) if a != b]
    if len(told) != len(derived):
        wrong.append(f"expected.tsv has {len(told)} lines, derived are {len(derived)}")
    make = subprocess.run([sys.executable, HERE / "make.py", "--check"], capture_output=True,
                          text=True)  # fmt: skip
    wrong += make.stdout.splitlines()
    return wrong + [line for line in make.stderr.splitlines()[-1:] if make.returncode]


def reports(expected):
    wrong = []
    for one in rows("reports.tsv"):
        cell = expected[one["host"], one["image"]]
        named = words(one["finding"])
        if cell["verdict"] != one["verdict"] or not set(named) <= set(words(cell["findings"])):
            wrong.append(f"{one['host']} × {one['image']}: reported {one['finding']}, expected.tsv "
                         f"has {cell['verdict']} {cell['findings']}")  # fmt: skip
    return wrong


def answers(mlenv, image):
    """What mlenv says of the image on every host: {host: (verdict, [finding])}."""
    done = subprocess.run(
        [mlenv, "check", HERE / "images" / f"{image}.json", "--fleet", HERE / "hosts", "--json"],
        capture_output=True, text=True)  # fmt: skip
    if done.returncode not in (0, 3):
        sys.exit(f"mlenv check {image}: status {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    found = {}
    for one in answer["verdicts"]:
        host = pathlib.PurePath(one["host"]).name.removesuffix(".json")
        found[host] = (one["verdict"], one["findings"])
    return found


def severities():
    return {one["rule"]: one["severity"] for one in rows("rules.tsv")}


def remedies_of():
    """What a remedy has to name, by rule; nothing where Python is older than 3.11 (tomllib)."""
    try:
        import make
    except ModuleNotFoundError:
        return None
    wanted = {one["rule"]: one["remedy"] for one in rows("rules.tsv")}
    hosts = {name: make.host_of(entry) for name, entry in make.load("hosts.toml").items()}
    return wanted, hosts, make.load("images.toml")


def compare(cell, verdict, findings, usual):
    """What is wrong with an answer, in words; nothing: it is as expected. `usual`: the severity
    of each rule; no-gpu's depends on the recipe, and shows in the verdict."""
    counted = {one["rule"]: one["severity"] for one in findings if one["severity"] in COUNTED}
    must, may = words(cell["findings"]), set(words(cell["may"]))
    wrong = []
    for rule in must:
        if not counted.keys() & set(rule.split("|")):
            wrong.append(f"{rule} is not found")
        for one in counted.keys() & set(rule.split("|")) - {"no-gpu"}:
            if counted[one] != usual[one]:
                wrong.append(f"{one} {counted[one]}, expected {usual[one]}")
    named = {one for rule in must for one in rule.split("|")}
    extra = {} if "*" in may else {rule for rule in counted if rule not in named | may}
    wrong += [f"{rule} ({counted[rule]}) should not be found" for rule in sorted(extra)]
    notes = {one["rule"] for one in findings if one["severity"] == "note"}
    wrong += [f"note {rule} is not found" for rule in words(cell["notes"]) if rule not in notes]
    # Findings that may be there may also make it worse.
    allowed = [severity for rule, severity in counted.items() if rule in may or "*" in may]
    worst = max([cell["verdict"], *allowed], key=WORST.index)
    if verdict not in (cell["verdict"], worst):
        wrong.append(f"verdict {verdict}, expected {cell['verdict']}")
    return wrong


def main():
    mlenv, only = sys.argv[1], sys.argv[2:]
    expected = {(one["host"], one["image"]): one for one in rows("expected.tsv")}
    usual = severities()
    meaning = {one["rule"]: one for one in rows("rules.tsv")}
    wrong = own_table() + reports(expected)
    known = remedies_of()
    looked_at = 0
    for line in wrong:
        print(line)
    compared = differing = 0
    for image in only or sorted({image for _, image in expected}):
        found = answers(mlenv, image)
        for (host, of), cell in expected.items():
            if of != image:
                continue
            compared += 1
            if host not in found:
                complaints, findings = ["no answer"], []
            else:
                verdict, findings = found[host]
                complaints = compare(cell, verdict, findings, usual)
            if known is not None and host != "unknown-all":
                import remedies
                wanted, hosts, images = known
                complaints += remedies.complaints(findings, hosts[host], images[image], wanted)
                looked_at += sum(one["severity"] in ("blocks", "risks") for one in findings)
            if not complaints:
                continue
            differing += 1
            print(f"{host} × {image}: {'; '.join(complaints)}")
            for rule in {one for names in words(cell["findings"]) for one in names.split("|")}:
                print(f"    expected {rule}: {meaning[rule]['what it says there']}")
            for one in findings:
                print(f"    found {one['severity']} {one['rule']}: {one.get('what', '')}")
    print(f"{compared} cells, {looked_at} remedies, {differing} differ")
    sys.exit(bool(wrong or differing))


if __name__ == "__main__":
    main()
