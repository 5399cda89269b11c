"""What the programs here have in common: data, first weights, checkpoints, and the line at the end.

All of them fit the same small network to the same data by plain gradient descent. A step's batch is the
same however many ranks there are, each takes an equal part of it, and gradients are averaged: so a job of
one rank and one of six compute the same, but for the order in which numbers are added.
"""
import argparse
import hashlib
import os
import pathlib
import struct
import time
import zipfile

import numpy as np

BATCH = 48  # divisible by 1, 2, 3, 4, 6, 8
RATE = 0.05
HIDDEN = 64

_random = np.random.RandomState(1)  # NumPy promises that its numbers stay the same
_X = _random.randn(BATCH * 20, 16).astype("float32")
_Y = np.tanh(_X[:, :4].sum(1, keepdims=True))


def first_weights():
    random = np.random.RandomState(2)
    shapes = ((16, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, 1))
    return [(0.2 * random.randn(*shape)).astype("float32") for shape in shapes]


def batch(step, part=0, parts=1):
    """The given part of a step's batch: x and y."""
    if BATCH % parts:
        raise SystemExit(f"the batch of {BATCH} cannot be cut into {parts} equal parts")
    size = BATCH // parts
    begin = step * BATCH % len(_X) + part * size
    return _X[begin:begin + size], _Y[begin:begin + size]


def note_samples(options, step, part=0, parts=1):
    """Which samples of the step's batch were computed with here: a line in `samples/ATTEMPT.RANK` beside the checkpoints."""
    folder = _folder()
    if not options.note_samples or not folder:
        return
    size = BATCH // parts
    begin = step * BATCH + part * size
    place = folder / "samples"
    place.mkdir(exist_ok=True)
    with open(place / f"{os.environ['MLENV_RESTARTS']}.{os.environ['RANK']}", "a") as file:
        file.write(f"{step} {begin} {begin + size}\n")


def options(**more):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=10, help="steps from one checkpoint to the next")
    parser.add_argument("--pause", type=float, default=0, help="seconds after each step, to have time to look")
    parser.add_argument("--note-samples", action="store_true", help="write down which samples each step took")
    for name, settings in more.items():
        parser.add_argument("--" + name, **settings)
    return parser.parse_args()


def _folder():
    """Where checkpoints go; None: nowhere."""
    name = os.environ.get("MLENV_CHECKPOINTS")
    return pathlib.Path(name) if name else None


def newest_checkpoint():
    """(step, weights) of the newest that is whole; (0, first weights) where there is none."""
    folder = _folder()
    for file in sorted(folder.glob("step-*.npz"), reverse=True) if folder else []:
        try:
            with np.load(file) as saved:
                return int(saved["step"]), [saved[f"weight{i}"] for i in range(len(saved.files) - 1)]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            print(f"{file.name} cannot be read, an older one is taken: {error}", flush=True)
    return 0, first_weights()


def save_checkpoint(step, weights):
    """Under its name only once it is on the disk whole. For one rank alone to call."""
    folder = _folder()
    if not folder:
        return
    unfinished = folder / f".step-{step:06}.{os.getpid()}"
    with open(unfinished, "wb") as file:
        np.savez(file, step=step, **{f"weight{i}": np.asarray(one) for i, one in enumerate(weights)})
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, folder / f"step-{step:06}.npz")
    for old in sorted(folder.glob("step-*.npz"))[:-3]:
        old.unlink(missing_ok=True)


def after_step(options, step, loss, weights, writes):
    """What each program does when `step` steps are done. `weights` is called where they are needed."""
    if writes and (step % options.every == 0 or step == options.steps):
        print(f"step {step}, loss {loss:.6f}", flush=True)
        save_checkpoint(step, weights())
    time.sleep(options.pause)


def finish(rank, world, step, loss, weights):
    bits = struct.pack(">f", loss).hex()
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(one, "<f4").tobytes() for one in weights)).hexdigest()
    print(f"rank {rank} of {world}: {step} steps, loss {loss:.6f} ({bits}), weights sha256:{digest}", flush=True)
