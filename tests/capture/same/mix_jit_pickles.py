# modes: run watch
"""Jitted functions are pickled by three libraries, sent to a process, and compile there as often as without."""

import functools
import pickle
import subprocess
import sys

import cloudpickle
import jax
import jax.numpy as jnp


@functools.partial(jax.jit, static_argnames=("power",))
def scaled(x, *, power=2):
    return x**power


class Model:
    @functools.partial(jax.jit, static_argnums=0)
    def apply(self, x):
        return jnp.tanh(x)

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return isinstance(other, Model)


for at in range(6):
    scaled(jnp.ones(3) * at)
print(scaled._cache_size(), pickle.loads(pickle.dumps(scaled)) is scaled)
there = cloudpickle.dumps((scaled, Model(), jax.jit(lambda x: x + 1)))
code = "import sys, cloudpickle; f, m, g = cloudpickle.load(sys.stdin.buffer); print(f(2.0), m.apply(0.0), g(1), f._cache_size())"
done = subprocess.run([sys.executable, "-c", code], input=there, capture_output=True, check=False)
print(done.returncode, done.stdout.decode().strip(), done.stderr.decode()[-300:])
print(Model().apply(jnp.zeros(2)), Model.apply.__wrapped__.__name__, scaled.__wrapped__.__qualname__)
print(functools.partial(scaled, power=3)(2.0), jax.make_jaxpr(scaled)(1.0))
