"""Separates two moons with a small network in plain JAX. The same figures at every run."""
import jax
import jax.numpy as jnp


def moons(key, count):
    """Points on two interleaved half circles, with noise, and which of the two each lies on."""
    angle_key, noise_key = jax.random.split(key)
    angle = jax.random.uniform(angle_key, (count,), maxval=jnp.pi)
    upper = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    lower = jnp.stack([1 - jnp.cos(angle), 0.5 - jnp.sin(angle)], axis=1)
    label = jnp.arange(count) % 2
    points = jnp.where(label[:, None] == 0, upper, lower)
    return points + 0.1 * jax.random.normal(noise_key, points.shape), label


def start(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n))
            for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def predict(layers, x):
    for weights, bias in layers[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = layers[-1]
    return (x @ weights + bias)[:, 0]


def loss(layers, x, label):
    score = predict(layers, x)
    return jnp.mean(jnp.logaddexp(0.0, score) - label * score)


@jax.jit
def step(layers, x, label):
    value, slope = jax.value_and_grad(loss)(layers, x, label)
    return jax.tree.map(lambda p, g: p - 0.5 * g, layers, slope), value


def main():
    data_key, test_key, start_key = jax.random.split(jax.random.key(0), 3)
    x, label = moons(data_key, 512)
    layers = start(start_key, [2, 32, 32, 1])
    print(f"jax {jax.__version__} on {jax.devices()[0].platform}")
    first = value = float(loss(layers, x, label))
    for number in range(1, 1001):
        layers, value = step(layers, x, label)
        if number % 200 == 0:
            print(f"step {number:4}  loss {float(value):.4f}", flush=True)
    test_x, test_label = moons(test_key, 512)
    accuracy = float(jnp.mean((predict(layers, test_x) > 0) == (test_label == 1)))
    print(f"loss {first:.4f} -> {float(value):.4f}, accuracy {accuracy:.3f}")
    if not (value < first / 4 and accuracy > 0.97):
        raise SystemExit("the training did not work")


if __name__ == "__main__":
    main()
