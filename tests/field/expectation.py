"""What a case's file `expect` says: lines `key: value`; README.md has the keys."""


class bad_expectation(Exception):
    """A line that means nothing."""


TEXTS = ("name", "base", "framework", "python", "cuda", "workdir", "command")
LISTS = ("packages", "system", "requirements", "constraints", "overrides", "exclude", "env", "files", "index", "libraries",
         "pypi")
SOME = ("packages-have", "packages-lack", "system-have", "system-lack", "files-have", "env-have", "env-lack",
        "locks", "lock-lacks")
MANY = ("told", "silent", "run-has", "run-lacks", "lock-told", "lock-silent")
ONCE = ("source", "why", "init", "init-refuses", "refuses", "wrong-today", "wrong-today-lock")


class Expectation:
    """`exact` has what a key of the recipe must be, None where it must have none; the rest as written."""

    def __init__(self, text):
        self.exact, self.some, self.many, once = {}, {}, {}, {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            key, colon, value = line.partition(":")
            value = value.strip()
            if not colon or not value:
                raise bad_expectation(f"line {number}: no `key: value`")
            if key in TEXTS:
                self.exact[key] = None if value == "-" else value
            elif key in LISTS:
                more = [] if value == "-" else [part.strip() for part in value.split(" | ")]
                self.exact[key] = self.exact.get(key, []) + more
            elif key in SOME:
                self.some[key] = self.some.get(key, []) + [part.strip() for part in value.split(" | ")]
            elif key in MANY:
                self.many.setdefault(key, []).append(value)
            elif key in ONCE and key not in once:
                once[key] = value
            else:
                raise bad_expectation(f"line {number}: unknown, or twice: `{key}`")
        if "source" not in once:
            raise bad_expectation("no `source`")
        self.source = once["source"]
        self.source_file = once.get("init")
        self.init_refuses = once.get("init-refuses")
        self.refuses = once.get("refuses")
        self.wrong_today = once.get("wrong-today", once.get("wrong-today-lock"))
        self.wrong_today_in = "lock" if "wrong-today-lock" in once else "convert"
        self.is_locked = "locks" in self.some or self.refuses is not None
