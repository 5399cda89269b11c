#!/usr/bin/env python3
"""Records a real session as an animated SVG: docs/recording.py >docs/recording.svg

Types each command below into a scratch folder, keeps every line with the moment at which it came, and
draws them appearing at that pace (pauses over 2 s are cut to 2 s; the clock at the end is the real one).
`mlenv` must be on PATH. Without animation (print, reduced motion) the whole text shows.
"""
import html
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = [
    "cat recipe.yaml",
    "mlenv lock",
    "mlenv build",
    "mlenv build          # again: nothing to do",
    "mlenv run train -- python train-jax.py",
    "mlenv inspect train | grep layer",
]
RECIPE = """name: train
base: debian:bookworm
framework: jax
cuda: cpu
packages: [optax]
"""
LONGEST_PAUSE, TYPING, COLUMNS = 2.0, 0.6, 100


def record(folder):
    lines, clock = [], 0.0
    for command in COMMANDS:
        lines.append((clock, "command", "$ " + command))
        clock += TYPING
        last = began = time.monotonic()
        child = subprocess.Popen(command, shell=True, cwd=folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        for line in child.stdout:
            now = time.monotonic()
            clock += min(now - last, LONGEST_PAUSE)
            last = now
            lines.append((clock, "output", line.rstrip("\n")[:COLUMNS]))
        if child.wait() != 0:
            sys.exit(f"`{command}` failed")
        clock += 0.8
        lines.append((clock, "note", f"# {time.monotonic() - began:.2f} s"))
    return lines, clock


def draw(lines, length):
    row, width = 17, 8.45 * COLUMNS + 32
    height = row * len(lines) + 32
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
          f'width="{width:.0f}" height="{height}" role="img" aria-label="A recorded mlenv session">')
    print("<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#d7dae0}"
          ".command{fill:#8fd6ff;font-weight:bold}.note{fill:#8a919e}"
          "@media (prefers-reduced-motion:no-preference){text{opacity:0;animation:s .01s forwards}}"
          "@keyframes s{to{opacity:1}}@media print{text{opacity:1!important}}</style>")
    print(f'<rect width="100%" height="100%" rx="8" fill="#16181d"/>')
    for number, (moment, kind, text) in enumerate(lines):
        y = 16 + row * (number + 0.8)
        print(f'<text class="{kind}" x="16" y="{y:.0f}" style="animation-delay:{moment:.2f}s">'
              f"{html.escape(text)}</text>")
    print("</svg>")


def main():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "recipe.yaml").write_text(RECIPE)
        script = ROOT / "examples/train-jax.py"
        pathlib.Path(folder, script.name).write_text(script.read_text())
        os.environ["MLENV_STORE"] = os.path.join(folder, ".store")
        try:
            lines, length = record(folder)
        finally:
            subprocess.run(["chmod", "-R", "u+rwX", folder], check=False)
        draw(lines, length)


main()
