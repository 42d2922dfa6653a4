"""JAX with its guards on: transfers disallowed, leaks checked, strict promotion, NaNs looked for, compilations logged."""

import jax
import jax.numpy as jnp
import numpy as np
import logging
import sys
import gc
from _show import show


def loss(w, x):
    return jnp.sum((x @ w) ** 2)


@jax.jit
def step(w, x):
    value, grad = jax.value_and_grad(loss)(w, x)
    return w - 0.1 * grad, value


w, x = jnp.ones((4, 4)), jnp.ones((2, 4))
step(w, x)
with jax.transfer_guard("disallow"):
    for n in range(6):
        w, value = step(w, x)
    show("guarded", lambda: step(np.ones((4, 4), np.float32), x)[1].shape)
print(float(value) >= 0)
with jax.checking_leaks():
    for n in range(4):
        w, value = jax.jit(lambda w, x: step(w, x))(w, x)
    kept = []
    show("leaks", lambda: jax.jit(lambda y: kept.append(y) or y * 2)(x).shape)
    kept.clear()
with jax.numpy_dtype_promotion("strict"):
    show("strict", lambda: jnp.ones(2, jnp.int8) + jnp.ones(2, jnp.float32))
    for n in range(4):
        w, value = step(w, x)
with jax.debug_nans(True):
    show("nans", lambda: jax.jit(lambda y: jnp.log(y - 5))(x))
    for n in range(4):
        step(w * 0, x)
with jax.disable_jit():
    for n in range(3):
        w, value = step(w, x)
gc.collect()
print(len(jax.live_arrays()) > 0, step._cache_size())
del w, x, value
gc.collect()
print(len(jax.live_arrays()))
with jax.log_compiles():
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(name)s %(funcName)s"))
    logging.getLogger("jax").addHandler(handler)
    jax.jit(lambda y: y + 3)(np.ones(3))
jax.clear_caches()
print(step._cache_size())
