# modes: run prove
"""Functions of the host that jitted ones call: pure, with effects, for debugging; errors inside them; order of output."""

import functools
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np

traces, called = [], []


def host(x):
    called.append((x.shape, threading.current_thread().name.startswith("jax")))
    return np.asarray(x) * 2


@functools.partial(jax.jit, donate_argnums=0, static_argnames="k")
def train_step(params, x, k=2):
    traces.append(1)
    y = jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")
    jax.debug.print("sum {s}", s=y.sum(), ordered=True)
    jax.debug.callback(lambda v: called.append("debug"), y, ordered=True)
    return params + y.mean() * k


params = jnp.zeros(3)
for n in range(8):
    params = train_step(params, jnp.full(4, float(n)))
    jax.effects_barrier()
print(params, len(traces), len(called), train_step._cache_size(), called[0][0])


@jax.custom_jvp
def f(x):
    traces.append("f")
    return jnp.sin(x)


f.defjvp(lambda p, t: (f(*p), t[0] * 10.0))
print(jax.grad(f)(1.0), jax.jvp(f, (1.0,), (2.0,)), jax.linearize(f, 1.0)[1](3.0), len(traces))


def fails(x):
    raise LookupError("of the host")


try:
    jax.jit(lambda x: jax.pure_callback(fails, jax.ShapeDtypeStruct((), jnp.float32), x))(1.0).block_until_ready()
except Exception as error:
    print(type(error).__name__, "of the host" in str(error))
try:
    with jax.checking_leaks():
        leaked = []
        jax.jit(lambda x: leaked.append(x))(1.0)
except Exception as error:
    print(type(error).__name__)
with jax.disable_jit():
    print(jax.jit(lambda x: isinstance(x, jax.core.Tracer))(1.0))
with jax.debug_nans(True):
    try:
        jax.jit(jnp.log)(-1.0)
    except FloatingPointError as error:
        print(str(error)[:30])
with jax.log_compiles(False), jax.named_scope("scope"), jax.default_matmul_precision("float32"):
    print(jax.jit(lambda x: x @ x)(jnp.ones((2, 2))).sum())
print(jax.jit(train_step.__wrapped__).lower(params, params).as_text().count("custom_call"))
print(sys.getrefcount(train_step) < 10, jax.tree_util.tree_structure({"a": params}), len(jax.live_arrays()) > 0)
