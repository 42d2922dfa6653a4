# modes: run watch
import logging
import sys
import warnings

import jax
import jax.monitoring
import jax.numpy as jnp
from jax import lax

events = []
jax.monitoring.register_event_duration_secs_listener(lambda name, seconds, **more: events.append(name))
logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(name)s %(levelname)s")


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.tanh(w * x).sum())(w)


w = jnp.ones(3)
for i in range(8):
    with jax.log_compiles(i == 2):
        w = step(w, jnp.ones(3) if i < 6 else jnp.ones(1))
compiled = [name for name in events if "backend_compile" in name]
print(len(compiled), len([name for name in events if "trace" in name]), w)


@jax.custom_jvp
def own(x):
    return x * 2


@own.defjvp
def _(primals, tangents):
    return own(*primals), 3 * tangents[0]


print(jax.grad(own)(1.0), jax.linearize(own, 1.0)[1](1.0), lax.while_loop(lambda c: c < 9, lambda c: own(c), 1))
policy = jax.checkpoint_policies.dots_saveable
print(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy))(1.0))
print(lax.associative_scan(jnp.add, jnp.arange(5)), lax.switch(1, [jnp.sin, jnp.cos], 0.0), lax.map(own, jnp.ones(2)))
warnings.simplefilter("always")
donating = jax.jit(lambda a: a.sum(), donate_argnums=0)
print(donating(jnp.ones(2)))
for call in (
    lambda: jax.jit(lambda x: x if x > 0 else -x)(1.0), lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
    lambda: jnp.ones(2) @ jnp.ones(3), lambda: jax.jit(lambda x: undefined)(1.0), lambda: jax.grad(lambda x: x)(jnp.ones(2)),
):  # fmt: skip
    try:
        call()
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0], error.__traceback__.tb_next is not None)
with jax.disable_jit():
    print(step(jnp.ones(3), jnp.ones(3)))
with jax.debug_nans(True):
    try:
        jax.jit(jnp.log)(-1.0)
    except FloatingPointError as error:
        print(str(error).splitlines()[0])
print(jax.tree.map(lambda a: a.shape, {"w": w, "n": [jnp.ones(2), None]}), jax.eval_shape(step, w, w))
