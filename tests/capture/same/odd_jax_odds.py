"""JAX's odd corners: effects, custom rules, checkify, named calls, ahead of time, tokens, keys, while training."""

import jax
import jax.numpy as jnp
import numpy as np
import functools
from jax.experimental import checkify, io_callback
from _show import show, show_frames


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def f(x, n):
    return jnp.sin(x) * n


@f.defjvp
def rule(n, primals, tangents):
    return f(primals[0], n), tangents[0] * 2.0


seen = []


def tell(x):
    seen.append(float(x))
    return np.float32(x)


@jax.jit
def step(w, key):
    key, _sub = jax.random.split(key)
    value, grad = jax.value_and_grad(lambda w: f(w, 3).sum() + jax.checkpoint(jnp.sin)(w).sum())(w)
    io_callback(tell, jax.ShapeDtypeStruct((), jnp.float32), value, ordered=True)
    jax.debug.callback(lambda v: None, value)
    return w - 0.01 * grad, key, value


w, key = jnp.ones(3), jax.random.key(0)
for n in range(8):
    w, key, value = step(w, key)
jax.effects_barrier()
print(len(seen), [round(each, 4) for each in seen], step._cache_size(), w)
err, out = checkify.checkify(jax.jit(lambda x: (checkify.check(x > 0, "negative {x}", x=x), jnp.log(x))[1]))(-1.0)
print(err.get())
print(
    step.lower(w, key).compile().cost_analysis() is not None,
    type(step.trace(w, key)).__name__,
    jax.eval_shape(step, w, key)[0],
)
print(jax.make_jaxpr(f, static_argnums=1)(1.0, 2))
show("jvp", lambda: jax.jvp(lambda x: f(x, 2), (1.0,), (1.0,)))
show("vjp", lambda: jax.vjp(jnp.sin, 1.0)[1](1.0))
show_frames("type", lambda: step("w", key))
show("linearize", lambda: jax.linearize(jnp.cos, 1.0)[1](1.0))
with jax.named_scope("mine"):
    print(jax.jit(lambda x: x + 1).lower(1.0).as_text().count("stablehlo.add"))
donated = jax.jit(lambda x: x + 1, donate_argnums=0)
a = jnp.ones(3)
donated(a)
print(a.is_deleted())
for n in range(4):
    w, key, value = step(w, key)
print(jax.tree.map(lambda x: x.shape, {"w": w}), jax.tree_util.Partial(f, 1.0), round(float(value), 4))
