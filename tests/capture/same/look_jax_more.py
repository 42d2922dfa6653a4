"""custom_vjp, checkify, shard_map, scan, callbacks: values and how often functions are traced."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import checkify

counts = {}


def counted(name):
    counts[name] = counts.get(name, 0) + 1


@jax.custom_vjp
def half(x):
    counted("half")
    return x / 2


half.defvjp(lambda x: (x / 2, None), lambda _, g: (g * 7,))


@jax.jit
def step(w, x):
    counted("step")
    value, grad = jax.value_and_grad(lambda w: jnp.sum(half(w) * x))(w)
    return w - 0.1 * grad, value


w = jnp.ones(3)
for n in range(12):
    w, value = step(w, jnp.ones(3) * n)
print([round(float(x), 3) for x in w], counts)
error, out = checkify.checkify(jax.jit(lambda x: checkify.check(x > 0, "positive {x}", x=x)))(jnp.float32(-1))
print(error.get().splitlines()[0])
mesh = jax.make_mesh((1,), ("i",))
mapped = jax.jit(
    functools.partial(jax.shard_map, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))(lambda x: x * 2)
)
print(mapped(jnp.ones(2)), jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(4.0)))
print(jax.pmap(lambda x: x + 1)(jnp.ones((1, 2))), jax.vmap(step)(jnp.ones((2, 3)), jnp.ones((2, 3)))[1], counts)
jax.jit(lambda x: jax.debug.print("debug {x}", x=x))(1.0)
jax.effects_barrier()
