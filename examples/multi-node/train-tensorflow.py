"""TensorFlow's MultiWorkerMirroredStrategy: every worker has the whole network, gradients are averaged in a ring.

  mlenv run --nodes 3 --framework tensorflow IMAGE -- python train-tensorflow.py
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

import common


def predict(w, x):
    return tf.nn.relu(tf.nn.relu(x @ w[0] + w[1]) @ w[2] + w[3]) @ w[4]


def strategy_of():
    """RING, or NCCL where there are GPUs; without TF_CONFIG one worker alone."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.experimental.enable_op_determinism()
    gpus = tf.config.list_physical_devices("GPU")
    implementation = tf.distribute.experimental.CommunicationImplementation
    communication = tf.distribute.experimental.CommunicationOptions(
        implementation=implementation.NCCL if gpus else implementation.RING)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)


def main():
    options = common.options()
    tf.random.set_seed(0)
    strategy = strategy_of()
    resolver = strategy.cluster_resolver
    rank = resolver.task_id or 0
    world = strategy.num_replicas_in_sync  # a replica for each GPU, or one for a worker without
    here = max(1, len(tf.config.list_physical_devices("GPU")))

    begin, saved = common.newest_checkpoint()
    with strategy.scope():
        weights = [tf.Variable(one) for one in saved]

    @tf.function
    def train(x, y):
        def of_one_replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((predict(weights, x) - y) ** 2)
            together = tf.distribute.get_replica_context()
            mean = tf.distribute.ReduceOp.MEAN
            gradients = together.all_reduce(mean, tape.gradient(loss, weights))
            for weight, gradient in zip(weights, gradients):
                weight.assign_sub(common.RATE * gradient)
            return together.all_reduce(mean, loss)
        return strategy.experimental_local_results(strategy.run(of_one_replica, args=(x, y)))[0]

    def part(step, array):
        def of_replica(context):
            replica = rank * here + context.replica_id_in_sync_group % here
            return tf.constant(common.batch(step, replica, world)[array])
        return strategy.experimental_distribute_values_from_function(of_replica)

    def now():
        return [strategy.experimental_local_results(one)[0].numpy() for one in weights]

    loss = 0.0
    for step in range(begin, options.steps):
        loss = float(train(part(step, 0), part(step, 1)))
        common.after_step(options, step + 1, loss, now, rank == 0)
    common.finish(rank, int(os.environ.get("WORLD_SIZE", "1")), options.steps, loss, now())


if __name__ == "__main__":
    main()
