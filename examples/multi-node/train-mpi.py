"""NumPy and MPI: every rank has the whole network and a part of each batch, and gradients are summed by Allreduce.

  mlenv run --nodes 3 --strategy mpi mpi -- python3 -m mpi4py train-mpi.py
  mpirun -np 2 python3 -m mpi4py train-mpi.py

`-m mpi4py` has a rank that raises an exception end all of them; without it Python waits for the others, which wait for
the rank.
"""
import numpy as np
from mpi4py import MPI

import common


def gradients(weights, x, y):
    """Of the loss's sum over the part of a batch; and that sum."""
    w1, b1, w2, b2, w3 = weights
    a1 = np.maximum(x @ w1 + b1, 0)
    a2 = np.maximum(a1 @ w2 + b2, 0)
    error = a2 @ w3 - y
    d3 = 2 * error
    d2 = (d3 @ w3.T) * (a2 > 0)
    d1 = (d2 @ w2.T) * (a1 > 0)
    return [x.T @ d1, d1.sum(0), a1.T @ d2, d2.sum(0), a2.T @ d3], float((error ** 2).sum())


def main():
    options = common.options()
    world = MPI.COMM_WORLD
    step, weights = common.newest_checkpoint() if world.rank == 0 else (None, None)
    step, weights = world.bcast((step, weights))  # rank 0's checkpoint is everybody's
    sizes = [one.size for one in weights]
    total = np.empty(sum(sizes) + 1, "float32")
    loss = 0.0
    for step in range(step, options.steps):
        x, y = common.batch(step, world.rank, world.size)
        grads, squares = gradients(weights, x, y)
        # One message for all: the last number is the loss.
        mine = np.concatenate([one.ravel() for one in grads] + [np.array([squares], "float32")])
        world.Allreduce(mine, total, MPI.SUM)
        total /= common.BATCH
        loss = float(total[-1])
        for weight, grad in zip(weights, np.split(total[:-1], np.cumsum(sizes)[:-1])):
            weight -= np.float32(common.RATE) * grad.reshape(weight.shape)
        common.after_step(options, step + 1, loss, lambda: weights, world.rank == 0)
    common.finish(world.rank, world.size, options.steps, loss, weights)


if __name__ == "__main__":
    main()
