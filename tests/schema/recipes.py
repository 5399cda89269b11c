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
          {"debian": [{"uri": "http://host/debian", "components": ["main"], "signed-by": "a.gpg"}]},
          ">=580", "> = 525.60.13", "noble", "debian:noble", "ubuntu:noble", "ubuntu:bookworm", "host.example/a:1",
          "oci:a", "oci-archive:", ["sm_90"], ["sm90"], {"cudnn": "9.*"}, {"cudnn": None}, {"nvcc": "true"},
          ["make"], [" \n"], [{"run": "make"}], [{"run": None}], {"a": {"from": "b"}}, {"a": {}},
          ["g++/sid"], {"python": {}}, {"python": None}, {"python": {"url": "https://host/a.tar", "sha256": "0" * 64}}]

HEAD = "name: x\nbase: debian:bookworm\n"
TORCH = HEAD + "framework: pytorch\n"
DATA = "0" * 64

ABSENT = re.compile(r"` does not exist$|has no `digest`, and ")

# What both take, as people write it: without quotes, and without values.
GOOD = [
    *("name: x\nbase: " + base for base in (
        "ubuntu:noble", "ubuntu:focal", "oci:../a/b:v1", "oci:a", "oci-archive:a.tar", "docker-archive:a.tar:x/y:1",
        "registry.example/team/cuda:12.6", "registry.example/a", "localhost/a", "localhost:5000/a.b/c__d-e",
        f"localhost:5000/base@sha256:{DATA}", f"host:1/a:t@sha256:{DATA}", "\"[::1]:5000/a\"")),
    *("name: x\nbase: host:1/a\n" + rest for rest in (
        "system:", "system: [git]", "sources: {python: }", "sources: {debian: {uri: \"http://host/a\", suite: noble}}",
        "sources: {debian: [{uri: \"http://host/a\", suite: 12}]}", "sources: {debian: []}", "run: [make]")),
    *(TORCH + rest for rest in (
        "driver:", "driver: \">=580\"", "driver: '>= 525.60.13'", "gpus:", "gpus: []", "gpus: [sm_80, sm_121]",
        "libraries:", "libraries: {}", "libraries: {cudnn: 9}", "libraries: {cudnn: 9.5, nvcc: false}",
        "libraries: {nccl: '>=2.26,<3', cudnn: 9.*, cublas: '(>=13)'}", "libraries: {nvcc: true}",
        "cuda: cpu\ndriver:\ngpus: []\nlibraries: {nvcc: false}")),
    HEAD + "packages: [torch]\ngpus: [sm_90]",
    *(HEAD + "packages: " + value for value in (
        "[\"a @ ./libs/a\", b@../b, \"c [x , y] @ .\", d @ file:libs/d]", "[\"a @ libs/a ; python_version > '3'\"]",
        "[a @ git+https://host/x.git]", "[a @ git+https://host/x@feature/b#subdirectory=y]",
        "[a @ git+ssh://git@host:22/x@v1]", "[a @ git+file:///srv/x]", "[a @ git+http://host/x#egg=a&subdirectory=b/c]",
        f"[a @ https://host/a-1-py3-none-any.whl#sha256={DATA}, b @ http://host/b-1.tar.gz]",
        "[./dist/a-1-py3-none-any.whl, https://host/b-1-py3-none-any.whl]", "[git+https://host/x#egg=a]")),
    HEAD + "requirements: requirements.txt\ndriver: '>=580'",
    HEAD + "libraries: {nvcc: false}",
    *(HEAD + "requirements: " + value for value in (
        "", "[]", "requirements.txt", "./a/b.in", "12", "[requirements.txt, \"pyproject.toml[train,viz]\"]",
        "pyproject.toml", "a/uv.lock", "pylock.toml", "pylock.dev.toml", "{file: uv.lock, extras: [a], groups: [b, 1]}",
        "{file: requirements.txt, extras: , groups: []}", "\"a/uv.lock [ a , b ]\"",
        "{file: \"pyproject.toml[a]\", groups: [dev]}", "pylock.toml\ncuda: 12")),
    *(HEAD + "system: " + value for value in ("[cmake/bookworm-backports, git=1:2.39, g++/stable/updates]",)),
    *(HEAD + "run: " + value for value in (
        "", "[]", "[make, true, 12]", "\n  - |\n    make\n    make install\n", "[\"a\\tb\"]",
        "[{run: make, network: true, secrets: [netrc, a.b, _c, 1]}]", "[{run: make, network: false, secrets: }]")),
    *(HEAD + "data: " + value for value in (
        "", "{}", "{a: {from: ./corpus}}", "{a: {from: ...}}", "{a: {from: ../a}, b: {from: /b/}}", "{1: {from: 2}}",
        f"{{a-b.c: {{from: a, digest: \"sha256:{DATA}\", stage: node, to: /data/x}}}}")),
    *(HEAD + rest for rest in (
        "overrides: [numpy<2, \"a[b] ; python_version > '3'\"]", "overrides:", "exclude: [a, B_c.d]", "exclude: numpy",
        "constraints: [numpy<2, -c c.txt, ./d/e, f/g.in, \"a @ ./x\"]", "constraints: limits.txt", "no-binary: ':all:'",
        "only-binary: [a, ':all:']", "prefer-binary: a", "prerelease: if-necessary-or-explicit",
        "index: {torch: https://h.example/cu121, a: {find-links: wheels}, b: {find-links: ../x y}, c: {find-links: \"https://h/\"}}",
        "dependency-metadata: []", "dependency-metadata: [{name: a, version: 1.0, requires-dist: [b<2], requires-python: '>=3,<4'}]",
        "dependency-metadata: [{name: a, requires-dist: , provides-extras: [b], provides-extra: [c]}]",
        "build:", "build: {constraints: [setuptools<81, c.txt], requires: {a: [b], c: }, network: true}",
        "build: {env: {A: 1, b-c: {D: e}, f: {_G: true}, h: i}, config-settings: {a b: c, d: [e, 1], f: {g: h, i: [j]}}}")),
    *(HEAD + "platforms: " + value for value in (
        "", "[]", "[linux/arm64]", "[linux/arm64, linux/amd64]",
        f"[linux/arm64]\nsources: {{python: {{url: \"https://host/a.tar\", sha256: {'a' * 64}}}}}",
        "[linux/arm64, linux/amd64]\nsources: {python: }")),
    *(HEAD + "sources: " + value for value in (
        f"{{python: {{url: \"https://host/a.tar.gz\", sha256: {'a' * 64}}}}}", "{python: , debian: , pypi: }",
        "{debian: {uri: \"http://host/a\", check-valid-until: false, signed-by: keys/a.asc}}",
        "{debian: {uri: \"http://host/a\", check-valid-until: , signed-by: , suite: , components: }}")),
]
# What neither takes.
BAD = [
    *(HEAD + "packages: " + value for value in (
        "[a @ /srv/a]", "[a @ ~/a]", "[a @ file:///srv/a]", "[./a]", "[git+https://host/x]", "[\"a @ \"]",
        "[a @ git+https://user:word@host/x]", "[a @ https://token@host/a-1-py3-none-any.whl]",
        "[a @ git+ssh://git:word@host/x]", "[a @ hg+https://host/x]", "[a @ git+ftp://host/x]", "[a @ git+git@host:x]",
        "[a @ https://host/page.html]", "[a @ https://host/a-1.tar.gz?key=1]", "[a @ git+https://host/x#depth=1]",
        "[a>=1 @ ./a]", "[\"a @ git+https://host/${NAME}\"]")),
    HEAD + "framework: torch @ ./torch",
    *("name: x\nbase: " + base for base in (
        "", "debian", "noble", "ubuntu:devel", "ubuntu:trixie", "debian:noble", "fedora:41", "pytorch/pytorch:2.9",
        "oci:", "oci-archive::v1", "docker:a", "https://host.example/a", "host.example/A", "host.example/",
        "host.example/a:", "host.example/a@sha256:1", "host:port/a", "host..example/a", "debian:5000/a", "[a]")),
    *("name: x\nbase: host:1/a\n" + rest for rest in (
        "sources: {debian: \"http://host/a\"}", "sources: {debian: [\"http://host/a\"]}",
        "sources: {debian: {uri: \"http://host/a\"}}", "sources: {debian: [{uri: \"http://host/a\", suite: }]}",
        f"sources: {{python: {{url: \"https://host/a\", sha256: {'a' * 64}}}}}")),
    *(TORCH + rest for rest in (
        "driver: 580", "driver: '>=5800.1.1.1'", "driver: '>580'", "driver: '>=12345'", "driver: []", "gpus: sm_90",
        "gpus: [sm_91]", "gpus: [90]", "gpus: [null]", "libraries: [cudnn]", "libraries: {cudn: 9}",
        "libraries: {cudnn: }", "libraries: {cudnn: true}", "libraries: {cudnn: latest}", "libraries: {cudnn: a>=2}",
        "libraries: {cudnn: '[a]>=2'}", "libraries: {cudnn: '=9'}", "libraries: {cudnn: '9 ; a'}",
        "libraries: {nvcc: }", "libraries: {nvcc: 13}", "cuda: cpu\ndriver: '>=580'",
        "cuda: cpu\nlibraries: {nvcc: true}")),
    *(HEAD + rest for rest in (
        "driver: '>=580'", "gpus: [sm_90]", "libraries: {cudnn: 9}", "packages: []\nlibraries: {nvcc: true}",
        "requirements: []\ncuda: 12")),
    *(HEAD + "requirements: " + value for value in (
        "[null]", "/a.txt", "../a.txt", "~/a.txt", "\"\"", "poetry.lock", "Pipfile", "setup.py", "a/environment.yml/",
        "a.toml", "pylock..toml", "\"requirements.txt[a]\"", "\"pyproject.toml[]\"", "\"pyproject.toml[a,]\"",
        "\"pyproject.toml[-a]\"", "\" ../uv.lock[a]\"", "\"../uv.lock[a]\"", "{}", "{file: }", "{extras: [a]}",
        "{file: requirements.txt, extras: [a]}", "{file: pylock.toml, groups: [a]}", "{file: uv.lock, extras: a}",
        "{file: uv.lock, groups: [a b]}", "{file: uv.lock, extra: [a]}", "[[a.txt]]")),
    *(HEAD + "system: " + value for value in ("[git/]", "[git//a]", "[git/a/]", "[git=1/a]", "[/sid]")),
    *(HEAD + "run: " + value for value in (
        "make", "{run: make}", "[null]", "[\"\"]", "[\" \\n\"]", "[\"a\\x01b\"]", "[[make]]", "[{}]", "[{run: }]",
        "[{network: true}]", "[{run: make, network: }]", "[{run: make, network: 'true'}]", "[{run: make, secrets: a}]",
        "[{run: make, secrets: [a/b]}]", "[{run: make, secrets: [.a]}]", "[{run: make, secret: [a]}]")),
    *(HEAD + "data: " + value for value in (
        "corpus", "[a]", "{a: }", "{a: ./corpus}", "{a: {}}", "{a: {from: }}", "{a: {from: .}}", "{a: {from: ./}}",
        "{a: {from: /}}", "{a: {from: ~/a}}", "{a: {from: b, digest: }}", "{a: {from: b, digest: 'sha256:1'}}",
        "{a: {from: b, stage: all}}", "{a: {from: b, to: data}}", "{a: {from: b, to: /}}", "{a: {from: b, to: /a/}}",
        "{a: {from: b, to: /tmp/a}}", "{a/b: {from: b}}", "{.a: {from: b}}", "{a: {path: b}}")),
    *(HEAD + rest for rest in (
        "overrides: numpy", "overrides: [numpy=1]", "overrides: [null]", "overrides: [\"a @ ./x\"]", "exclude: [a<2]",
        "exclude: [':all:']", "exclude: {a: b}", "constraints: [\"a[b]<2\"]", "constraints: [../c.txt]", "constraints: [/c.txt]",
        "constraints: [-c ~/c.txt]", "no-binary: [a b]", "only-binary: [[a]]", "prerelease: yes", "prerelease: [allow]",
        "index: [a]", "index: {a: }", "index: {a: b}", "index: {a b: \"https://h/\"}", "index: {a: \"https://me@h/\"}",
        "index: {a: {}}", "index: {a: {find-links: }}", "index: {a: {find-links: /x}}", "index: {a: {url: \"https://h/\"}}",
        "dependency-metadata: {name: a}", "dependency-metadata: [null]", "dependency-metadata: [{version: 1}]",
        "dependency-metadata: [{name: a, version: '>1'}]", "dependency-metadata: [{name: a, requires-python: '3'}]",
        "dependency-metadata: [{name: a, provides-extras: b}]", "build: [a]", "build: {constraint: a}",
        "build: {requires: {a: b}}", "build: {requires: [a]}", "build: {env: {a-b: c}}", "build: {env: {A: [b]}}",
        "build: {env: {A: }}", "build: {env: {_a: {B: c}}}", "build: {env: {A: \"b\\x01\"}}",
        "build: {config-settings: {a b: {c: d}}}", "build: {config-settings: {a: }}", "build: {network: 'true'}")),
    *(HEAD + "platforms: " + value for value in (
        "linux/arm64", "[arm64]", "[linux/amd64, linux/amd64]", "[null]", "{linux/arm64: true}", "[linux/arm64/v8]",
        f"[linux/arm64, linux/amd64]\nsources: {{python: {{url: \"https://host/a\", sha256: {'a' * 64}}}}}")),
    *(HEAD + "sources: " + value for value in (
        "{python: {}}", "{python: \"https://host/a\"}", "{python: {url: \"https://host/a\"}}",
        f"{{python: {{url: \"https://host/a\", sha256: {'A' * 64}}}}}", f"{{python: {{sha256: {'a' * 64}}}}}",
        f"{{python: {{url: host/a, sha256: {'a' * 64}}}}}", f"{{python: {{url: , sha256: {'a' * 64}}}}}",
        "{python: {url: \"https://host/a\", sha256: }}", "{debian: {uri: \"http://host/a\", check-valid-until: 1}}",
        "{debian: {uri: \"http://host/a\", signed-by: ../a}}", "{debian: {uri: \"http://host/a\", suite: a/}}")),
]


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
    error = json.loads(answer.stderr.splitlines()[-1])  # notes may come before it
    if error["code"] not in ("recipe-invalid", "no-lock"):
        sys.exit(f"{path}: {answer.stderr}")
    verdict = "" if error["code"] == "no-lock" else error["frames"][0]
    # What the disk lacks is none of the recipe's mistakes, which are told before.
    return "" if ABSENT.search(verdict.partition("\n")[0]) else verdict


def made_up(folder):
    """A recipe for each key and every third value, or each with MLENV_TEST_LONG=1 (JSON is YAML too), and those above."""
    all_of_them = os.environ.get("MLENV_TEST_LONG") == "1"
    for at, key in enumerate(schema["properties"]):
        for number, value in enumerate(VALUES):
            if not all_of_them and (at + number) % 3:
                continue
            recipe = {"name": "x", "base": "debian:bookworm", key: value}
            path = folder / f"{key}-{number}.yaml"
            path.write_text(json.dumps(recipe))
            yield path
    for verdict, recipes in (("good", GOOD), ("bad", BAD)):
        for number, recipe in enumerate(recipes):
            path = folder / f"{verdict}-{number}.yaml"
            path.write_text(recipe + "\n")
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
            expected = re.match("good-|bad-", path.name) if path.parent == pathlib.Path(made) else None
            as_expected = expected is None or bool(by_parser) == (expected[0] == "bad-")
            if bool(by_schema) != bool(by_parser) or not as_expected:
                different.append(f"{path}: {path.read_bytes()[:200]!r}: schema: {by_schema or 'good'}; "
                                 f"parser: {by_parser or 'good'}")
    print("\n".join(different))
    print(f"{good} good recipes and {bad} bad ones, {len(different)} judged in two ways, or not as expected")
    sys.exit(1 if different or not good or not bad else 0)


main()
