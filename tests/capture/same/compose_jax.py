# timeout: 1200
"""Wrappers of JAX, composed at random: values, how often the innermost function is traced, caches, pickles."""

import functools
import os
import random
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp
from _show import clean
from jax.sharding import Mesh, PartitionSpec

mesh = Mesh(jax.devices()[:1], ("one",))
traces = []


def base(x):
    traces.append(1)
    return jnp.sin(x) * 0.5 + x


def custom_vjp(f):
    made = jax.custom_vjp(f)
    made.defvjp(lambda x: (made(x), x), lambda x, g: (g * 2.0,))
    return made


def custom_jvp(f):
    made = jax.custom_jvp(f)
    made.defjvp(lambda primals, tangents: (made(*primals), tangents[0] * 3.0))
    return made


def scan(f):
    return lambda x: jax.lax.scan(lambda carry, _: (f(carry), carry.sum()), x, None, length=2)[0]


def exported(f):
    return lambda x: jax.export.export(jax.jit(f))(x).call(x)


def renamed(f):
    @functools.wraps(f)
    def wrapper(self, *, call=0.0):
        return f(self) + call

    return lambda x: wrapper(self=x, call=1.0)


def method(f):
    class Holder:
        apply = jax.jit(lambda self, x: f(x), static_argnums=0)

    return Holder().apply


def pickled(f):
    try:
        import cloudpickle

        cloudpickle.dumps(f)
    except Exception as error:
        print("  not pickled:", type(error).__name__, end="")
    return f


WRAPPERS = {
    "jit": jax.jit,
    "jit donated": lambda f: (lambda g: lambda x: g(x + 0))(jax.jit(f, donate_argnums=0)),
    "jit keyword": lambda f: (lambda g: lambda x: g(self=x))(jax.jit(lambda self, call=1: f(self) * call)),
    "jit static": lambda f: functools.partial(jax.jit(lambda n, x: f(x) * n, static_argnums=0), 2),
    "jit inline": functools.partial(jax.jit, inline=True),
    "method": method,
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "value and grad": lambda f: lambda x: jax.value_and_grad(lambda x: f(x).sum())(x)[1],
    "vmap": jax.vmap,
    "vmap out": lambda f: lambda x: jax.vmap(f, out_axes=-1)(x[None])[..., 0],
    "checkpoint": jax.checkpoint,
    "custom_vjp": custom_vjp,
    "custom_jvp": custom_jvp,
    "scan": scan,
    "cond": lambda f: lambda x: jax.lax.cond(x.sum() > 0, f, lambda x: x, x),
    "fori": lambda f: lambda x: jax.lax.fori_loop(0, 2, lambda i, x: f(x), x),
    "map": lambda f: lambda x: jax.lax.map(f, x),
    "shard_map": lambda f: jax.shard_map(
        f, mesh=mesh, in_specs=PartitionSpec("one"), out_specs=PartitionSpec("one"), check_vma=False
    ),
    "export": exported,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,))[1],
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "pmap": lambda f: lambda x: jax.pmap(f)(x[None])[0],
    "renamed": renamed,
    "pickled": pickled,
    "named": jax.named_call,
}
first, count = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 40)
for seed in range(first, first + count):
    chosen = random.Random(seed)
    names = [chosen.choice(list(WRAPPERS)) for _ in range(chosen.randint(2, 6))]
    traces.clear()
    print(seed, names, end=" ")
    try:
        f = base
        for name in names:
            f = WRAPPERS[name](f)
        outer = jax.jit(f)
        results = [f(jnp.arange(1.0, 4.0)) for _ in range(3)] + [outer(jnp.arange(1.0, 4.0)) for _ in range(3)]
        print(
            [round(float(each.sum()), 3) for each in results],
            len(traces),
            outer._cache_size(),
            getattr(f, "__name__", "none"),
        )
    except Exception as error:
        print("raises", type(error).__name__, clean(str(error))[:80].splitlines()[:1], len(traces))
