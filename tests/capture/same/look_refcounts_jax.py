"""Reference counts of functions given to JAX."""

import sys

import jax
import jax.numpy as jnp


def loss(w, x):
    return jnp.sum((w * x) ** 2)


before = sys.getrefcount(loss)
step = jax.jit(jax.value_and_grad(loss))
w = jnp.ones(3)
counts = []
for _ in range(12):
    value, grad = step(w, jnp.arange(3.0))
    w = w - 0.1 * grad
    counts.append(sys.getrefcount(step))
print(before, sys.getrefcount(loss), counts, step._cache_size(), [round(float(x), 4) for x in w])
