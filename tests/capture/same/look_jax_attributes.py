"""Attributes, lowered texts and caches of jitted functions."""

import inspect

import jax
import jax.numpy as jnp


def f(x, *, scale=2.0):
    """Scales."""
    return jnp.sin(x) * scale


traced = []


@jax.jit
def g(x):
    traced.append(1)
    return f(x) + 1


for _ in range(12):
    g(jnp.ones(3))
j = jax.jit(f, static_argnames="scale")
print(type(j).__name__, j.__name__, j.__doc__, j.__wrapped__ is f, inspect.signature(j), j.__module__, j == j)
print(j.lower(jnp.ones(2)).as_text()[:60], j.lower(jnp.ones(2)).compile()(jnp.ones(2)).tolist())
print(j.trace(jnp.ones(2)).jaxpr, jax.make_jaxpr(g)(jnp.ones(2)), len(traced), g._cache_size())
print(jax.eval_shape(g, jnp.ones(4)), sorted(name for name in dir(j) if not name.startswith("__")))
