#!/usr/bin/env python3
"""Holds recipes/recipe.schema.json against the parser: for each recipe on the command line both give the
same verdict. Prints how many; fails with the list of those where they differ.

  MLENV=build/mlenv recipes.py FILE…

A recipe is read as an editor reads it: YAML 1.2's core types, no duplicate keys, anchors or tags.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

root = pathlib.Path(__file__).resolve().parent.parent.parent
schema = json.loads((root / "recipes/recipe.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)

# Values of every kind, for every key.
VALUES = [None, True, 12, 3.11, "", "text", "3.11", "cpu", "13.0", "debian:trixie", "/a", "/a/", "a b", "~", [],
          ["git"], [""], ["a==1 ; python_version > '3'"], ["torch @ x"], [["git"]], [None], [{"a": "b"}], {},
          {"a": "/b"}, {"a": "/b/"}, {"a": None}, {"a": ["b"]}, {"a": True}, {"../a": "/b"}, {"1": "x"},
          {"a": "/proc/b"}, {"pypi": "https://host/simple"}, {"pypi": ["https://user@host/simple"]},
          {"debian": [{"uri": "http://host/debian"}]}, {"debian": {"suite": "sid"}}, {"debian": None},
          {"debian": [{"uri": "http://host/debian", "components": ["main"], "signed-by": "a.gpg"}]}]


class Loader(yaml.SafeLoader):
    """SafeLoader without what mlenv's YAML has not."""

    yaml_implicit_resolvers = {}

    def compose_node(self, parent, index):
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.YAMLError("anchors and aliases")
        if getattr(event, "tag", None):
            raise yaml.YAMLError("tags")
        if isinstance(event, yaml.ScalarEvent) and event.style is None and "\n" in event.value:
            raise yaml.YAMLError("a plain text of several lines")
        if (isinstance(event, yaml.ScalarEvent) and event.style is None
                and event.start_mark.line != event.end_mark.line):
            raise yaml.YAMLError("a plain text of several lines")
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(keys) != len(node.value) or len(set(keys)) != len(keys):
            raise yaml.YAMLError("duplicate or composite keys")
        # JSON's keys are texts.
        return {str(key.value): self.construct_object(value, True) for key, value in node.value}


for tag, pattern, first in [
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first) + [""])
Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_mapping)
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))


def schema_verdict(path):
    try:
        value = yaml.load(path.read_bytes().decode("utf-8"), Loader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        return f"not YAML: {error}"
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
    return "; ".join(errors)


def parser_verdict(path, folder):
    # --locked: it is read, and then there is no lock.
    copy = pathlib.Path(folder) / "recipe.yaml"
    copy.write_bytes(path.read_bytes())
    answer = subprocess.run([os.environ["MLENV"], "--json", "lock", "--locked", copy],
                            capture_output=True, text=True, check=False)
    error = json.loads(answer.stderr)
    if error["code"] not in ("recipe-invalid", "no-lock"):
        sys.exit(f"{path}: {answer.stderr}")
    return "" if error["code"] == "no-lock" else error["frames"][0]


def made_up(folder):
    """A recipe for each key and value: JSON is YAML too."""
    for key in schema["properties"]:
        for number, value in enumerate(VALUES):
            recipe = {"name": "x", "base": "debian:bookworm", key: value}
            path = folder / f"{key}-{number}.yaml"
            path.write_text(json.dumps(recipe))
            yield path


def main():
    different = []
    good = bad = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as made:
        for path in [*map(pathlib.Path, sys.argv[1:]), *made_up(pathlib.Path(made))]:
            by_schema, by_parser = schema_verdict(path), parser_verdict(path, folder)
            if by_parser:
                bad += 1
            else:
                good += 1
            if bool(by_schema) != bool(by_parser):
                different.append(f"{path}: {path.read_bytes()[:200]!r}: schema: {by_schema or 'good'}; parser: {by_parser or 'good'}")
    print("\n".join(different))
    print(f"{good} good recipes and {bad} bad ones, {len(different)} judged in two ways")
    sys.exit(1 if different or not good or not bad else 0)


main()
