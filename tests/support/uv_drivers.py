#!/usr/bin/env python3
"""Holds `mlenv data show --json` against uv's table of drivers: uv_drivers.py UV FILE.

uv chooses PyTorch's indexes by the driver (`--torch-backend=auto`, UV_CUDA_DRIVER_VERSION) and logs
them before it reaches the network. It lists every CUDA release that it holds the driver able to run,
by minor-version compatibility: so what must agree is the oldest driver of each major version.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Argued differences: (release, uv's oldest driver).
DIFFERENCES = {
    # The first driver of 11.0's release candidate. NVIDIA's compatibility guide names 450.80.02 for
    # all of 11.x, as uv does for 11.1 and later; cuda.toml marks 11.0 as conflicting.
    "11.0": "450.36.06",
}


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def below(version: str) -> str:
    """A driver just below; the branch before where there are no further numbers."""
    parts = version.split(".")
    for place in range(len(parts) - 1, -1, -1):
        if int(parts[place]) > 0:
            parts[place] = str(int(parts[place]) - 1).zfill(len(parts[place]))
            return ".".join(parts[: place + 1] + ["99"] * (len(parts) - place - 1)) + ".99"
    raise ValueError(version)


def main() -> None:
    uv, path = sys.argv[1:]
    with open(path) as file:
        known = json.load(file)
    releases = [row["release"] for row in known["releases"]]
    floors = {row["major"]: row["driver"] for row in known["floors"]}
    # Before CUDA 11 each release asks for its own driver.
    floor_of = {row["release"]: DIFFERENCES.get(row["release"], floors.get(row["release"].split(".")[0], row["driver"]))
                for row in known["releases"]}
    asked: dict[str, set[str]] = {}

    def ask(driver: str) -> None:
        """Releases that uv would run with it."""
        answer = subprocess.run(
            [uv, "pip", "compile", "--no-config", "--no-cache", "--offline", "--verbose",
             "--python-platform", "linux", "--torch-backend", "auto", "-"],
            input="torch\n", text=True, capture_output=True, timeout=120, check=False,
            env=os.environ | {"UV_CUDA_DRIVER_VERSION": driver},
        )
        names = set(re.findall(r"/cu(\d+)(\d)/torch/", answer.stderr))
        asked[driver] = {f"{major}.{minor}" for major, minor in names}

    boundaries = set(floor_of.values())
    drivers = sorted(boundaries | {below(one) for one in boundaries} | {"9999"})
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, drivers))
    understood = asked["9999"] & set(releases)
    if not {"11.8", "12.6", "13.0"} <= understood:
        sys.exit(f"uv was not understood: with a new driver it offers {sorted(asked['9999'])}")
    wrong = 0
    for release in sorted(understood, key=number):
        floor = floor_of[release]
        if release not in asked[floor] or release in asked[below(floor)]:
            print(f"CUDA {release}: uv does not begin with driver {floor}")
            wrong += 1
    print(f"uv agrees on {len(understood) - wrong} of {len(understood)} releases")
    sys.exit(1 if wrong else 0)


main()
