"""Several devices: pmap, shard_map, shardings, threads."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import threading

import jax
import jax.numpy as jnp
from _show import show
from jax.sharding import Mesh, NamedSharding, PartitionSpec

traces = []
mesh = Mesh(jax.devices(), ("data",))
spec = PartitionSpec("data")


@jax.pmap
def mapped(x):
    traces.append("pmap")
    return jax.lax.psum(x, "i") if False else x * 2


x = jnp.arange(8.0).reshape(2, 4)
for _ in range(8):
    y = mapped(x)
show(
    "pmap",
    lambda: (y.tolist(), type(mapped).__name__, mapped.__name__, sorted(vars(mapped)), mapped.__wrapped__.__name__),
)
show("pmap axis", lambda: jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(x).tolist())
shard = jax.jit(jax.shard_map(lambda x: x - jax.lax.pmean(x, "data"), mesh=mesh, in_specs=spec, out_specs=spec))
for _ in range(6):
    z = shard(x)
show("shard_map", lambda: (z.tolist(), shard.__name__))
placed = jax.device_put(x, NamedSharding(mesh, spec))
summed = jax.jit(lambda x: (traces.append("sum"), x.sum(0))[1], out_shardings=NamedSharding(mesh, PartitionSpec()))
for _ in range(6):
    s = summed(placed)
show("sharding", lambda: (s.tolist(), s.sharding.is_fully_replicated))
results = []


def work(number):
    for _ in range(20):
        results.append(float(summed(placed)[number]))


threads = [threading.Thread(target=work, args=[i]) for i in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(sorted(set(results)), len(results), sorted(traces))
