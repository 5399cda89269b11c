"""Compares what mlenv wrote and said with an Expectation."""

import json
import re
import shlex
import tomllib


def joined(text):
    return re.sub(r"\s+", " ", text)


def scalar(text):
    """A YAML scalar as mlenv writes it: plain, or in double quotes."""
    text = text.strip()
    if text.startswith('"'):
        return json.loads(text)
    return text


def inline(text):
    """`[a, "b, c"]` or `{k: v}` of scalars."""
    parts, depth, quoted, part = [], 0, False, ""
    for letter in text.strip()[1:-1]:
        if letter == '"' and not part.endswith("\\"):
            quoted = not quoted
        depth += (letter in "[{") - (letter in "]}") if not quoted else 0
        if letter == "," and not quoted and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    if part.strip():
        parts.append(part)
    if text.strip().startswith("["):
        return [scalar(one) for one in parts]
    return dict((scalar(key), scalar(value)) for key, _, value in (one.partition(":") for one in parts))


def items(block):
    """`- file: uv.lock` with `extras: [ui]` in the line below is one item."""
    found = []
    for line in block:
        if line.lstrip().startswith("-"):
            found.append(line.strip()[1:].strip())
        else:
            found[-1] += ", " + line.strip()
    return found


def read_recipe(text):
    """A recipe as `mlenv init` writes it, each key with a scalar, a list or a map; `run` and `sources` as text."""
    keys, block = {}, []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] != " " and line[0] != "-":
            key, _, value = line.partition(":")
            block = []
            keys[key] = (value.strip(), block)
        else:
            block.append(line)
    recipe = {}
    for key, (value, block) in keys.items():
        if key in ("run", "sources", "build"):
            recipe[key] = "\n".join([value, *block])
        elif value.startswith(("[", "{")):
            recipe[key] = inline(value)
        elif value:
            recipe[key] = scalar(value)
        elif block and block[0].lstrip().startswith("-"):
            recipe[key] = [scalar(item) for item in items(block)]
        else:
            recipe[key] = {}
            for line in block:
                name, word = split_pair(line.strip())
                recipe[key][name] = word
    return recipe


def split_pair(line):
    if line.startswith('"'):
        end = re.match(r'"(?:[^"\\]|\\.)*"', line).end()
        return json.loads(line[:end]), scalar(line[end:].lstrip(": "))
    key, _, value = line.partition(":")
    return key, scalar(value)


def comparable(requirement):
    """`Numpy >=1, <2` as `numpy>=1,<2`."""
    requirement = re.sub(r"\s*(===|==|~=|!=|<=|>=|<|>|,)\s*", r"\1", requirement.replace("'", '"'))
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    if name:
        requirement = re.sub(r"[._-]+", "-", name.group().lower()) + requirement[name.end():]
    head, comma, marker = requirement.partition(";")
    clauses = head.strip()
    parts = re.match(r"([a-z0-9-]+(?:\[[^]]*\])?)(.*)", clauses)
    if parts and "@" not in clauses:
        bounds = [re.sub(r"(?<=\d)(\.0)+$", "", one) if one[0] in "<>" else one
                  for one in parts.group(2).strip().split(",") if one]
        clauses = parts.group(1) + ",".join(sorted(bounds))
    return clauses + (" ; " + marker.strip() if comma else "")


def name_of(requirement):
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[._-]+", "-", found.group().lower()) if found else requirement


def pairs(value, arrow):
    return [f"{key}{arrow}{word}" for key, word in value.items()] if isinstance(value, dict) else value


def as_list(recipe, key):
    if key == "pypi":
        return re.findall(r'https?://[^"\s\]]+', recipe.get("sources", ""))
    value = recipe.get(key, [])
    if isinstance(value, str):
        value = [value]
    if key == "files":
        value = pairs(value, " -> ")
    elif key in ("env", "index", "libraries"):
        value = pairs(value, "=")
    if key in ("packages", "constraints", "overrides"):
        value = [comparable(one) for one in value]
    return value


def recipe_differences(expected, recipe):
    wrong = []
    for key, value in expected.exact.items():
        if isinstance(value, list):
            wanted = [comparable(one) for one in value] if key in ("packages", "constraints", "overrides") else value
            found = as_list(recipe, key)
            lacks = [one for one in wanted if one not in found]
            more = [one for one in found if one not in wanted]
            if lacks:
                wrong.append(f"{key} lack {', '.join(lacks)}")
            if more:
                wrong.append(f"{key} have {', '.join(more)}")
            continue
        found = recipe.get(key)
        if isinstance(found, list):
            found = shlex.join(found)
        choices = [None] if value is None else value.split(" or ")
        if key == "framework" and found:
            found, choices = comparable(found), [comparable(one) for one in choices if one]
        if found not in choices:
            wrong.append(f"{key} is {found}, not {value}")
    for key, values in expected.some.items():
        kind, _, way = key.partition("-")
        if way not in ("have", "lack"):
            continue
        found = as_list(recipe, kind)
        framework = [comparable(recipe["framework"])] if kind == "packages" and "framework" in recipe else []
        names = {name_of(one) for one in found + framework} if kind in ("packages", "system") else set(found)
        for value in values:
            if kind == "packages" and way == "have":
                there = comparable(value) in found + framework
            else:
                there = (name_of(value) if kind in ("packages", "system") else value) in names
            if way == "have" and not there:
                wrong.append(f"{kind} lack {value}")
            elif way == "lack" and there:
                wrong.append(f"{kind} have {value}")
    steps = joined(recipe.get("run", ""))
    wrong += [f"no step has `{word}`" for word in expected.many.get("run-has", []) if word not in steps]
    wrong += [f"a step has `{word}`" for word in expected.many.get("run-lacks", []) if word in steps]
    return wrong


def conversion_differences(expected, folder, ended):
    """Of `mlenv init`."""
    said = joined(ended.stderr)
    if expected.init_refuses is not None:
        if ended.returncode == 0:
            return ["init wrote a recipe"]
        return [] if expected.init_refuses in said else [f"init says: {said}"]
    if ended.returncode != 0:
        return [f"init ended with {ended.returncode}: {said}"]
    lines = [line for line in ended.stderr.splitlines() if line.startswith(("not carried over:", "note:"))]
    wrong = recipe_differences(expected, read_recipe((folder / "recipe.yaml").read_text()))
    for told in expected.many.get("told", []):
        if not any(all(word in line for word in told.split(" + ")) for line in lines):
            wrong.append(f"not told: {told}")
    for word in expected.many.get("silent", []):
        wrong += [f"told: {line}" for line in lines if word in line]
    return wrong


def strings(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return " ".join(strings(one) for one in value)
    return str(value)


def lock_differences(expected, folder, ended):
    """Of `mlenv --json lock`."""
    said, code = [], None
    for line in (ended.stdout + "\n" + ended.stderr).splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            said.append(line)
            continue
        said.append(strings(value))
        if isinstance(value, dict) and str(value.get("schema", "")).startswith("mlenv.error/"):
            code = value.get("code")
    said = joined(" ".join(said))
    wrong = [f"lock does not say `{word}`" for word in expected.many.get("lock-told", []) if word not in said]
    wrong += [f"lock says `{word}`" for word in expected.many.get("lock-silent", []) if word in said]
    if expected.refuses is not None:
        wanted, _, part = expected.refuses.partition(" ")
        if code is None:
            return wrong + ["it locks"]
        if wanted not in (code, "any") or part not in said:
            wrong.append(f"lock refuses by `{code}`")
        return wrong + ([f"lock says: {said}"] if wrong else [])
    if ended.returncode != 0:
        return wrong + [f"no lock: {said}"]
    lock = tomllib.loads((folder / "recipe.lock").read_text())
    wheels = {name_of(one["name"]): one["version"] for one in lock["packages"].get("wheels", [])}
    debian = {one["name"] for one in lock["packages"].get("debian", [])}
    resolved = lock.get("resolved", {})
    for item in expected.some.get("locks", []):
        words = item.split()
        version = words[-1]
        if words[0] == "debian":
            found, there = "", version in debian
        elif words[0] in ("cuda", "python"):
            found = resolved.get(words[0], "none")
            there = f"{found}.".startswith(f"{version}.")
        else:
            found = wheels.get(name_of(words[0]), "none")
            there = found != "none" and (len(words) == 1 or found == version or
                                         (version.endswith("*") and found.startswith(version[:-1])))
        if not there:
            wrong.append(f"lock has {words[0]} {found}, not {' '.join(words[1:]) or 'any'}")
    for item in expected.some.get("lock-lacks", []):
        if name_of(item) in wheels:
            wrong.append(f"lock has {item}")
    return wrong
