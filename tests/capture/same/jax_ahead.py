"""Ahead-of-time compilation, export, caches and callbacks."""

import jax
import jax.export
import jax.numpy as jnp
from _show import show

traces = []


@jax.jit
def f(x, self=1):
    traces.append(1)
    jax.debug.print("sees {}", x.sum())
    return jax.pure_callback(lambda x: x + 1, x, x) * self


x = jnp.ones(3)
for _ in range(5):
    f(x).block_until_ready()
lowered = f.lower(x, self=2)
compiled = lowered.compile()
show("lowered", lambda: (type(lowered).__name__, len(lowered.as_text()) > 100, lowered.in_tree))
show("compiled", lambda: (type(compiled).__name__, compiled(x, self=2)))
show("traced", lambda: f.trace(x).jaxpr)
show("shape", lambda: f.eval_shape(x))
show("exported", lambda: jax.export.export(jax.jit(lambda x: x * 2))(x).call(x))
show("serialized", lambda: jax.export.deserialize(jax.export.export(jax.jit(jnp.sin))(x).serialize()).call(x))
show("again", lambda: jax.jit(f.__wrapped__)(x))
show("static", lambda: jax.jit(lambda n: jnp.ones(n), static_argnums=0)(4))
show("keyword", lambda: jax.jit(fun=lambda x: x)(1))
show("decorator", lambda: jax.jit(static_argnums=0)(lambda n: jnp.ones(n))(2))
show("twice", lambda: jax.jit(f) is jax.jit(f))
jax.effects_barrier()
print(len(traces))
