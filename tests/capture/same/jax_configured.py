# modes: run watch prove
# timeout: 240
"""Contexts of JAX's configuration: no jit, checked leaks and NaNs, logged compilations and misses, guarded transfers."""

import logging

import jax
import jax.numpy as jnp

records = []


class Keeps(logging.Handler):
    def emit(self, record):
        records.append((record.name, record.levelname, record.getMessage().split(" in ")[0].splitlines()[0][:70]))


logging.getLogger("jax").addHandler(Keeps())
logging.getLogger("jax").propagate = False
traced = []


@jax.jit
def step(weights, batch):
    traced.append(jnp.shape(batch))
    loss, gradient = jax.value_and_grad(lambda w: jnp.tanh(w @ batch).sum())(weights)
    return weights - 0.1 * gradient, loss


weights, batch = jnp.ones((4, 4)), jnp.ones((4, 2))
with jax.log_compiles():
    for _ in range(8):
        weights, loss = step(weights, batch)
print(float(loss), len(traced), [each for each in records if "Finished" not in each[2]][:12])
records.clear()
with jax.checking_leaks():
    for _ in range(4):
        weights, loss = step(weights, jnp.ones((4, 3)))
    kept = []
    try:
        jax.jit(lambda x: kept.append(x) or x)(1.0)
    except Exception as error:
        print(type(error).__name__, str(error).split(".")[0])
print(float(loss), len(traced))
with jax.disable_jit():
    weights, loss = step(weights, batch)
print(float(loss), len(traced))
with jax.debug_nans(True):
    try:
        step(weights * jnp.inf, batch)
    except FloatingPointError as error:
        print(str(error).splitlines()[0][:60])
with jax.transfer_guard("disallow"):
    try:
        step(weights, [[1.0, 2.0]] * 4)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0][:60])
    print(float(step(weights, batch)[1]))
with jax.explain_cache_misses():
    step(weights, jnp.ones((4, 5)))
print([each[2][:60] for each in records if "miss" in each[2].lower()], len(traced), step._cache_size())
with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
    print(step(jnp.ones((4, 4)), jnp.ones((4, 2)))[1].dtype, len(traced))
jax.clear_caches()
print(float(step(weights, batch)[1]), len(traced))
