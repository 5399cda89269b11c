#!/usr/bin/env python3
"""Checks JSON lines from stdin: each names a schema of this folder and must fit it.

Prints the names of the schemas met, sorted; fails on the first line that does not fit.
"""

import json
import pathlib
import sys

import jsonschema

folder = pathlib.Path(__file__).resolve().parent
validators = {}
for path in folder.glob("*.json"):
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validators[schema["title"]] = jsonschema.Draft202012Validator(schema)
if "--list" in sys.argv:
    print("\n".join(sorted(validators)))
    sys.exit(0)

met = set()
for line in sys.stdin:
    value = json.loads(line)
    name = value["schema"]
    if name not in validators:
        sys.exit(f"no schema {name} for: {line}")
    errors = [f"{error.json_path}: {error.message}" for error in validators[name].iter_errors(value)]
    if errors:
        sys.exit(f"{name}: " + "; ".join(errors) + f"\n{line}")
    met.add(name)
print("\n".join(sorted(met)))
