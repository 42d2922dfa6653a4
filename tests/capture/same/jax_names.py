# JAX: names of compiled programs, counters, callbacks' order, keys
import jax
import jax.numpy as jnp
import sys
import logging
import io
from jax import monitoring

events = []
monitoring.register_event_listener(lambda e, **k: events.append(e))
monitoring.register_event_duration_secs_listener(lambda e, d, **k: events.append(e))
buf = io.StringIO()
log = logging.getLogger("jax")
log.addHandler(logging.StreamHandler(buf))
jax.config.update("jax_log_compiles", True)


@jax.jit
def step(w, key):
    key, sub = jax.random.split(key)
    jax.debug.print("w {x:.3f}", x=w.sum(), ordered=True)
    y = jax.pure_callback(lambda a: a * 2, jax.ShapeDtypeStruct((4,), jnp.float32), w[0])
    return (
        w - 0.1 * jax.grad(lambda w: jnp.sum(jnp.tanh(w @ w)))(w) + 0.01 * jax.random.normal(sub, w.shape),
        key,
        y.sum(),
    )


w, key = jnp.eye(4), jax.random.key(0)
for i in range(14):
    w, key, y = step(w, key)
jax.effects_barrier()
print(
    step.lower(w, key).compile().as_text().count("fusion") >= 0, step._cache_size(), jax.random.key_data(key), float(y)
)
import re
import collections

print(sorted(collections.Counter(e for e in events if "compil" in e).items()))
print(
    sum("Compiling" in l for l in buf.getvalue().splitlines()),
    sorted(set(re.findall(r"Compiling (\S+)", buf.getvalue()))),
)
print(jax.make_jaxpr(lambda x: jax.jit(lambda y: y + 1)(x))(1.0))
print(len(jax.live_arrays()), w.is_deleted(), w.unsafe_buffer_pointer() != 0)
s = jax.jit(lambda a: a + 1, donate_argnums=0)
a = jnp.ones(4)
for i in range(10):
    a2 = s(a)
    print(a.is_deleted(), end=" ")
    a = a2
print(jax.tree_util.tree_structure({"a": w}), jax.config.jax_enable_x64, jax.default_backend(), jax.devices())
