"""Jitted functions that are copied, pickled, cleared, subclassed around and cached; keys; data classes as arguments."""

import copy
import dataclasses
import functools
import pickle
import weakref

import cloudpickle
import jax
import jax.numpy as jnp

count = []


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["name"])
@dataclasses.dataclass
class State:
    w: jax.Array
    b: jax.Array
    name: str = "x"


@jax.jit
def step(state: State, x):
    """Doc."""
    count.append(1)
    return dataclasses.replace(state, w=state.w + x, b=state.b * 2)


state = State(jnp.ones(2), jnp.ones(()))
for n in range(8):
    state = step(state, 1.0)
print(state.w, state.b, len(count))
twice = cloudpickle.loads(cloudpickle.dumps(step))
print(twice(state, 1.0).w, twice.__doc__, twice.__name__, copy.copy(step) is step, copy.deepcopy(step) is step)
print(pickle.loads(pickle.dumps(step)) is step, weakref.ref(step)() is step, step.__wrapped__.__name__)
jax.clear_caches()
step(state, 1.0)
print(len(count), step._cache_size())
for other in ("y", "z", "y"):
    step(dataclasses.replace(state, name=other), 1.0)
print(len(count))
traced = step.trace(state, 1.0)
print(str(traced.jaxpr)[:60], traced.lower().compile().cost_analysis() is not None, len(count))


class Layer:
    def __init__(self, k):
        self.k = k

    @functools.partial(jax.jit, static_argnums=0)
    def __call__(self, x):
        count.append(1)
        return x * self.k

    @functools.cached_property
    def fast(self):
        return jax.jit(self.__call__)


layer = Layer(2)
print(
    [float(layer(1.0)) for _ in range(3)], float(layer.fast(1.0)), len(count), Layer.__call__.__get__(layer, Layer)(1.0)
)
key = jax.random.key(0)
print(jax.random.split(key).shape, jax.random.normal(key).round(4), jax.random.key_data(key), key.dtype)
print(jax.vmap(step, in_axes=(None, 0))(state, jnp.arange(3.0)).w.shape, len(count))
print(jax.eval_shape(step, state, 1.0).w, jax.make_jaxpr(step)(state, 1.0).out_avals, len(count))
