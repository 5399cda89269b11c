"""TensorFlow's ParameterServerStrategy: servers hold the weights, workers compute, the chief hands out work.

  mlenv run --nodes 4 --strategy parameter-server --servers 1 IMAGE -- python train-parameter-server.py
  mlenv run --nodes 4 --servers 1 --async --checkpoints … IMAGE -- python train-parameter-server.py --mode async

`sync`: the chief waits for all workers' gradients and applies their mean, so the result is the same each
time. `async`: workers change the weights as they go; no two runs are alike, and a lost worker costs nothing
but its speed: TensorFlow gives its part of a batch to another one. It may have applied that part before it went:
each part is applied at least once, and at most once more for each worker that is lost. Workers and servers serve
until the job ends, which it does with its chief.
"""
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["GRPC_FAIL_FAST"] = "use_caller"  # who asks is told at once that a worker is away

import tensorflow as tf

import common


def predict(w, x):
    return tf.nn.relu(tf.nn.relu(x @ w[0] + w[1]) @ w[2] + w[3]) @ w[4]


def serve(resolver):
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type,
                                  task_index=resolver.task_id, protocol="grpc", start=True)
    print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server.join()


def coordinate(options, resolver, workers):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    begin, saved = common.newest_checkpoint()
    with strategy.scope():
        weights = [tf.Variable(one) for one in saved]
        updates = tf.Variable(0, dtype=tf.int64)  # parts of batches that were applied since `begin`
    print(f"{workers} workers begin at step {begin}", flush=True)

    @tf.function
    def gradients_of(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((predict(weights, x) - y) ** 2)
        return loss, tape.gradient(loss, weights)

    @tf.function
    def train_alone(x, y):
        loss, gradients = gradients_of(x, y)
        for weight, gradient in zip(weights, gradients):
            weight.assign_sub(common.RATE / workers * gradient)
        updates.assign_add(1)
        return loss

    def hand_out(work, step):
        results = [coordinator.schedule(work, args=tuple(map(tf.constant, common.batch(step, i, workers))))
                   for i in range(workers)]
        coordinator.join()
        return [one.fetch() for one in results]

    def synchronous(step):
        done = hand_out(gradients_of, step)
        for i, weight in enumerate(weights):
            weight.assign_sub(common.RATE * sum(gradients[i] for _, gradients in done) / workers)
        return float(sum(loss for loss, _ in done) / workers)

    def asynchronous(step):
        return float(sum(hand_out(train_alone, step)) / workers)

    def now():
        return [one.numpy() for one in weights]

    loss = 0.0
    for step in range(begin, options.steps):
        loss = (synchronous if options.mode == "sync" else asynchronous)(step)
        common.note_samples(options, step)  # all of it: each part has come back
        common.after_step(options, step + 1, loss, now, True)
    if options.mode == "async":
        print(f"{int(updates.numpy())} updates for {(options.steps - begin) * workers} parts", flush=True)
    common.finish(0, int(os.environ.get("WORLD_SIZE", "1")), options.steps, loss, now())


def main():
    options = common.options(mode={"choices": ("sync", "async"), "default": "sync"})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    elif resolver.task_type == "chief":
        coordinate(options, resolver, len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]))
    else:
        raise SystemExit(f"nothing to do for `{resolver.task_type}` here")


if __name__ == "__main__":
    main()
