"""JAX: sixteen updates in one `lax.scan`, called again and again."""

import jax
import jax.numpy as jnp
from clock import CLOCK


def loss(weights, x):
    """How far the network is from the identity."""
    return ((jnp.tanh(x @ weights[0]) @ weights[1] - x) ** 2).mean()


@jax.jit
def train(weights, batches):
    """The weights after an update for each batch."""

    def update(weights, x):
        value, slope = jax.value_and_grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.01 * g, weights, slope), value

    return jax.lax.scan(update, weights, batches)


key = jax.random.key(0)
weights = (jax.random.normal(key, (128, 256)) / 12, jax.random.normal(key, (256, 128)) / 16)
for number in range(40):
    batches = jax.random.normal(jax.random.fold_in(key, number), (16, 128, 128))
    weights, losses = train(weights, batches)
    losses.block_until_ready()
    CLOCK.tick()
    if number % 10 == 9:
        print(f"round {number}: loss {losses[-1]:.2f}")
