#!/usr/bin/env python3
"""Checks JSON lines from stdin: each names a schema of this folder and must fit it.

Prints the names of the schemas met, sorted; fails on the first line that does not fit.
"""

import functools
import json
import pathlib
import sys

import jsonschema

folder = pathlib.Path(__file__).resolve().parent
schemas = {}
for path in folder.glob("*.json"):
    schema = json.loads(path.read_text())
    schemas[schema["title"]] = schema
if "--list" in sys.argv:
    print("\n".join(sorted(schemas)))
    sys.exit(0)


@functools.cache
def validator(name):
    """Of the schema of that name, which is held against JSON Schema's own once."""
    jsonschema.Draft202012Validator.check_schema(schemas[name])
    return jsonschema.Draft202012Validator(schemas[name])


if len(sys.argv) > 1:
    sys.exit("the lines come from stdin")
met = set()
for line in sys.stdin:
    value = json.loads(line)
    name = value["schema"]
    if name not in schemas:
        sys.exit(f"no schema {name} for: {line}")
    errors = [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(value)]
    if errors:
        sys.exit(f"{name}: " + "; ".join(errors) + f"\n{line}")
    met.add(name)
if not met:
    sys.exit("no line came")
print("\n".join(sorted(met)))
