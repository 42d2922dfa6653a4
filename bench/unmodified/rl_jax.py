"""JAX: 64 moves, each by a small jitted function, then one call of the jitted update."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from clock import CLOCK

random = np.random.default_rng(0)


@jax.jit
def act(weights, state):
    """The action's chances."""
    return jax.nn.softmax(jnp.tanh(state @ weights["in"]) @ weights["out"])


@functools.partial(jax.jit, static_argnames="rate")
def train(weights, states, actions, returns, rate=1e-3):
    """The weights after an update."""

    def loss(weights):
        chances = jax.nn.log_softmax(jnp.tanh(states @ weights["in"]) @ weights["out"])
        return -(jnp.take_along_axis(chances, actions[:, None], 1)[:, 0] * returns).mean()

    value, slope = jax.value_and_grad(loss)(weights)
    return value, jax.tree.map(lambda w, g: w - rate * g, weights, slope)


weights = {"in": jnp.asarray(random.normal(size=(8, 64)) / 8), "out": jnp.asarray(random.normal(size=(64, 3)) / 8)}
for number in range(40):
    states, actions = [random.normal(size=8)], []
    for _ in range(64):
        chances = np.asarray(act(weights, states[-1]), np.float64)
        actions.append(int(random.choice(3, p=chances / chances.sum())))
        states.append(0.9 * states[-1] + 0.1 * random.normal(size=8) + 0.01 * (actions[-1] - 1))
    rewards = -np.abs(np.array(states[1:])).sum(1)
    loss, weights = train(weights, np.array(states[:-1]), np.array(actions), np.cumsum(rewards[::-1])[::-1].copy())
    loss.block_until_ready()
    CLOCK.tick()
    if number % 10 == 9:
        print(f"update {number}: {len(actions)} moves")
