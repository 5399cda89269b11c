"""samples_once.py FOLDER STEPS: that of the attempts of a job each sample of each step counts once.

FOLDER holds for each rank of each attempt a file ATTEMPT.RANK of lines `STEP FIRST END`, samples as they were taken.
An attempt counts up to the step with which the next one began; what it did beyond that was undone.
"""
import collections
import pathlib
import sys

folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
taken = collections.defaultdict(lambda: collections.defaultdict(list))
for file in folder.iterdir():
    for line in file.read_text().splitlines():
        step, first, end = map(int, line.split())
        taken[int(file.name.split(".")[0])][step] += range(first, end)

attempts = sorted(taken)
counted = {}
for attempt in attempts:
    begin = min(taken[attempt])
    for step in [step for step in counted if step >= begin]:
        del counted[step]
    counted.update(taken[attempt])
if sorted(counted) != list(range(steps)):
    sys.exit(f"steps are missing: {sorted(set(range(steps)) - set(counted))}")
size = len(counted[0])
for step, samples in counted.items():
    if sorted(samples) != list(range(step * size, (step + 1) * size)):
        sys.exit(f"step {step}: {sorted(samples)}")
print(f"{len(attempts)} attempts, {steps} steps, {steps * size} samples, each once")
