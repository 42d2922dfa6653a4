"""What errors of JAX say, and through which frames they pass."""

import traceback

import jax
import jax.numpy as jnp


@jax.jit
def bad(x):
    if x > 0:
        return x
    return -x


step = jax.jit(lambda w: w + 1)
for n in range(12):
    step(jnp.ones(2))
for call in (lambda: bad(1.0), lambda: step("text"), lambda: step(), lambda: jax.grad(step)(jnp.ones(2))):
    try:
        call()
    except Exception as error:
        frames = [(each.name, each.filename.split("/")[-1]) for each in traceback.extract_tb(error.__traceback__)]
        print(type(error).__name__, str(error).splitlines()[0][:80], frames)
