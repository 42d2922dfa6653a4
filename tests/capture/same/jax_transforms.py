# modes: run watch
"""Transformations of jitted functions, and jitted transformations: values, how often each is traced, events."""

import collections
import functools

import jax
import jax.numpy as jnp
from _show import show

events = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **_: events.update([name]))
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.update([name]))
traces = collections.Counter()


@jax.jit
def loss(w, x):
    traces["loss"] += 1
    return ((w * x).sin() ** 2).sum()


@jax.custom_vjp
def clipped(x):
    return jnp.clip(x, -1, 1)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (g * (abs(x) < 1),))


@jax.custom_jvp
def soft(x):
    return jnp.log1p(jnp.exp(x))


@soft.defjvp
def soft_jvp(primals, tangents):
    return soft(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


w, x = jnp.arange(3.0), jnp.ones((4, 3))
transformed = {
    "grad": jax.grad(loss),
    "value_and_grad": jax.value_and_grad(loss, argnums=(0, 1)),
    "vmap": jax.vmap(loss, (None, 0)),
    "vmap of grad": jax.vmap(jax.grad(loss), (None, 0)),
    "jacfwd": jax.jacfwd(loss),
    "jacrev": jax.jacrev(loss),
    "hessian": jax.hessian(loss),
    "checkpoint": jax.grad(jax.checkpoint(loss)),
    "jit of grad": jax.jit(jax.grad(loss)),
    "jit of jit": jax.jit(jax.jit(loss)),
    "jit of vmap": jax.jit(jax.vmap(loss, (None, 0))),
}
for name, function in transformed.items():
    for _ in range(4):
        result = function(w, x)
    show(name, lambda: jax.tree.map(lambda each: each.round(4).tolist(), result))
    show(f"{name} name", lambda: function.__name__)
show("linearize", lambda: jax.linearize(loss, w, x)[1](w, x))
show("jvp", lambda: jax.jvp(loss, (w, x), (w, x)))
show("vjp", lambda: jax.vjp(loss, w, x)[1](1.0)[0])
show("clipped", lambda: jax.jit(jax.grad(lambda x: clipped(x).sum()))(w))
show("soft", lambda: jax.jit(jax.grad(lambda x: soft(x).sum()))(w))
show("jaxpr", lambda: str(jax.make_jaxpr(jax.grad(loss))(w, x)))
show("shape", lambda: loss.eval_shape(w, x))


@functools.partial(jax.jit, donate_argnums=0)
def update(w, x):
    traces["update"] += 1

    def body(carry, row):
        traces["body"] += 1
        return carry - 0.1 * jax.grad(loss)(carry, row), carry.sum()

    w, sums = jax.lax.scan(body, w, x)
    w = jax.lax.cond(sums.sum() > 0, lambda w: w, lambda w: -w, w)
    w = jax.lax.fori_loop(0, 3, lambda i, w: w + i, w)
    return jax.lax.while_loop(lambda w: w.sum() < 100, lambda w: w + 50, w)


for _ in range(20):
    before, w = w, update(w, x)
print("donated", before.is_deleted(), w.round(3).tolist())
with jax.disable_jit():
    show("not jitted", lambda: loss(w, x).round(3))
jax.clear_caches()
update(w, x)
print(sorted(traces.items()))
print(sorted(events.items()))
