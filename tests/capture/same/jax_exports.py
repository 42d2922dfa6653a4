# modes: run watch
# timeout: 300
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.custom_batching import custom_vmap
from jax.experimental import io_callback, pallas
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

traced = []


@functools.partial(jax.jit, static_argnames="kind")
def step(w, x, kind="a"):
    traced.append(kind)
    return w - 0.1 * jax.grad(lambda w: ((w * x) ** 2).sum())(w)


w, x = jnp.ones(4), jnp.arange(4.0)
for i in range(8):
    w = step(w, x, kind="ab"[i > 5])
print(traced, w, step._cache_size())
exported = export.export(step)(jax.ShapeDtypeStruct((4,), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32))
again = export.deserialize(bytearray(exported.serialize()))
print(again.call(w, x), again.in_avals, exported.fun_name, len(exported.mlir_module()) > 100)
mesh = Mesh(np.array(jax.devices()), ("d",))


@jax.jit
@functools.partial(jax.shard_map, mesh=mesh, in_specs=P("d"), out_specs=P())
def total(x):
    return jax.lax.psum(x.sum(), "d")


put = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("d")))
print(total(put), put.sharding.spec, [shard.data.shape for shard in put.addressable_shards])


def kernel(a, b, out):
    out[...] = a[...] + 2 * b[...]


print(pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((4,), jnp.float32), interpret=True)(w, x))


@custom_vmap
def own(x):
    return x + 1


@own.def_vmap
def _(size, batched, x):
    return x + size, True


print(jax.vmap(own)(jnp.zeros(3)), own(jnp.zeros(1)))
order = []


@jax.jit
def calls(x):
    io_callback(lambda v: order.append(float(v)), None, x, ordered=True)
    jax.debug.print("value {}", x, ordered=True)
    return jax.pure_callback(lambda v: np.asarray(v) * 2, x, x)


print([float(calls(jnp.float32(i))) for i in range(3)], order)
print(jax.make_jaxpr(step, static_argnums=2)(w, x, "a"))
lowered = step.lower(w, x)
print(lowered.out_info, lowered.compile().cost_analysis().get("flops"), "tanh" in lowered.as_text())
