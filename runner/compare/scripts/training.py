# A real training step and epoch with whichever framework the image has: a small network (scikit-learn: its
# own MLP) on made-up data. Says on standard output when it got where, and how long steps took.
import importlib.util
import sys
import time


def say(*words):
    print("mlenv-compare", *words, flush=True)


say("mark", "user")
SAMPLES, FEATURES, HIDDEN, CLASSES, BATCH = 2048, 256, 512, 10, 64
WARM, STEPS = 5, SAMPLES // BATCH


def with_torch():
    import torch

    say("mark", "import")
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(SAMPLES, FEATURES, device=device)
    y = torch.randint(0, CLASSES, (SAMPLES,), device=device)
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()

    def step(at):
        part = slice(at * BATCH, (at + 1) * BATCH)
        optimiser.zero_grad()
        loss = loss_of(model(x[part]), y[part])
        loss.backward()
        optimiser.step()
        return loss.item()

    return f"PyTorch {torch.__version__}, {device}", step


def with_jax():
    import jax
    import jax.numpy as jnp

    say("mark", "import")
    sizes = [FEATURES, HIDDEN, HIDDEN, CLASSES]
    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    x = jax.random.normal(keys[3], (SAMPLES, FEATURES))
    y = jax.random.randint(keys[4], (SAMPLES,), 0, CLASSES)
    weights = [jax.random.normal(keys[i], (sizes[i], sizes[i + 1])) / sizes[i] ** 0.5 for i in range(3)]

    def loss_of(weights, x, y):
        for weight in weights[:-1]:
            x = jax.nn.relu(x @ weight)
        logits = jax.nn.log_softmax(x @ weights[-1])
        return -jnp.mean(jnp.take_along_axis(logits, y[:, None], axis=1))

    @jax.jit
    def update(weights, x, y):
        loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
        return [w - 0.01 * g for w, g in zip(weights, slopes)], loss

    def step(at):
        nonlocal weights
        part = slice(at * BATCH, (at + 1) * BATCH)
        weights, loss = update(weights, x[part], y[part])
        return float(loss)

    return f"JAX {jax.__version__}, {jax.default_backend()}", step


def with_tensorflow():
    import tensorflow as tf

    say("mark", "import")
    tf.random.set_seed(0)
    x = tf.random.normal((SAMPLES, FEATURES))
    y = tf.random.uniform((SAMPLES,), 0, CLASSES, dtype=tf.int32)
    sizes = [FEATURES, HIDDEN, HIDDEN, CLASSES]
    weights = [tf.Variable(tf.random.normal((sizes[i], sizes[i + 1])) / sizes[i] ** 0.5) for i in range(3)]

    @tf.function
    def update(x, y):
        with tf.GradientTape() as tape:
            for weight in weights[:-1]:
                x = tf.nn.relu(x @ weight)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ weights[-1]))
        for weight, slope in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * slope)
        return loss

    def step(at):
        part = slice(at * BATCH, (at + 1) * BATCH)
        return float(update(x[part], y[part]))

    device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    return f"TensorFlow {tf.__version__}, {device}", step


def with_sklearn():
    import numpy
    import sklearn
    from sklearn.neural_network import MLPClassifier

    say("mark", "import")
    numbers = numpy.random.default_rng(0)
    x = numbers.standard_normal((SAMPLES, FEATURES))
    y = numbers.integers(0, CLASSES, SAMPLES)
    model = MLPClassifier((HIDDEN, HIDDEN), solver="sgd", learning_rate_init=0.01, random_state=0)

    def step(at):
        part = slice(at * BATCH, (at + 1) * BATCH)
        model.partial_fit(x[part], y[part], classes=range(CLASSES))
        return model.loss_

    return f"scikit-learn {sklearn.__version__}, cpu", step


def main():
    known = {"torch": with_torch, "jax": with_jax, "tensorflow": with_tensorflow, "sklearn": with_sklearn}
    name = next((one for one in known if importlib.util.find_spec(one)), None)
    if name is None:
        say("why", "train.step", "the image has none of PyTorch, JAX, TensorFlow and scikit-learn")
        return
    what, step = known[name]()
    step(0)
    say("mark", "step")
    if "--start-alone" in sys.argv:
        return
    for at in range(WARM):
        step(at)
    times = []
    for at in range(STEPS):
        begun = time.perf_counter()
        step(at)
        times.append(time.perf_counter() - begun)
    say("value", "train.step", sorted(times)[len(times) // 2])
    say("value", "train.epoch", sum(times))
    say("text", "train.step", what)


main()
