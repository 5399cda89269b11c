"""JAX over several processes: the batch is cut over all devices of the job, the weights are everywhere.

  mlenv run --nodes 3 IMAGE -- python train-jax.py
"""
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import common


def predict(weights, x):
    w = weights
    return jax.nn.relu(jax.nn.relu(x @ w[0] + w[1]) @ w[2] + w[3]) @ w[4]


def loss_of(weights, x, y):
    return jnp.mean((predict(weights, x) - y) ** 2)


def main():
    options = common.options()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        jax.distributed.initialize()  # mlenv's variables say everything
    rank, world = jax.process_index(), jax.process_count()
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    in_parts = NamedSharding(mesh, PartitionSpec("batch"))

    @jax.jit
    def train(weights, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        weights = [weight - common.RATE * gradient for weight, gradient in zip(weights, gradients)]
        return jax.lax.with_sharding_constraint((loss, weights), everywhere)

    def now():
        return [np.asarray(one.addressable_data(0)) for one in weights]

    begin, saved = common.newest_checkpoint()
    weights = [jax.make_array_from_callback(one.shape, everywhere, lambda at, one=one: one[at]) for one in saved]
    loss = jnp.zeros(())
    for step in range(begin, options.steps):
        x, y = (jax.make_array_from_process_local_data(in_parts, part) for part in common.batch(step, rank, world))
        loss, weights = train(weights, x, y)
        common.after_step(options, step + 1, float(loss), now, rank == 0)
    common.finish(rank, world, options.steps, float(loss), now())


if __name__ == "__main__":
    main()
