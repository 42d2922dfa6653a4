# modes: run prove
"""Jitted methods: how often they are traced, and what binding them gives."""

import functools
import pickle

import jax
import jax.numpy as jnp
from _show import show

traces = []


class Model:
    rate = 0.5

    @functools.partial(jax.jit, static_argnums=0)
    def energy(self, x):
        traces.append("energy")
        return (x**2).sum() * self.rate

    @classmethod
    @jax.jit
    def of_class(cls, x):
        return x

    @staticmethod
    @jax.jit
    def of_none(x, self=1, call=2):
        traces.append("static")
        return x + self + call

    @property
    @functools.partial(jax.jit, static_argnums=0)
    def value(self):
        traces.append("value")
        return jnp.ones(2)

    half = functools.partialmethod(energy, x=jnp.ones(3))


model, x = Model(), jnp.ones(3)
for _ in range(12):
    model.energy(x)
    Model.energy(model, x)
    Model.of_none(x)
    Model.of_none(x, self=3, call=4)
    model.value
show("traces", lambda: sorted(traces))
show(
    "equal",
    lambda: (model.energy == model.energy, hash(model.energy) == hash(model.energy), model.energy != Model().energy),
)
show(
    "bound",
    lambda: (type(model.energy).__name__, model.energy.__self__ is model, model.energy.__func__ is Model.energy),
)
show("names", lambda: (model.energy.__name__, model.energy.__qualname__, Model.of_none.__name__))
show("of class", lambda: Model.of_class(1))
show("half", lambda: model.half())
show("lower", lambda: type(model.energy.lower(model, x)).__name__)
show("pickled", lambda: type(pickle.loads(pickle.dumps(model))).__name__)


@functools.partial(jax.jit, static_argnums=0)
def minimise(function, x):
    traces.append("minimise")
    return x - 0.1 * jax.grad(function)(x)


traces.clear()
for _ in range(20):
    x = minimise(model.energy, x)
print("minimise", traces.count("minimise"), x)


class Counted:
    """A static argument that counts how often it is compared."""

    hashes = equals = 0

    def __hash__(self):
        Counted.hashes += 1
        return 1

    def __eq__(self, other):
        Counted.equals += 1
        return True


@functools.partial(jax.jit, static_argnums=1)
def scaled(x, how):
    return x * 2


for _ in range(10):
    scaled(x, Counted())
print("static", Counted.hashes, Counted.equals)
show("unhashable", lambda: scaled(x, []))
