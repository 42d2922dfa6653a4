"""How often a pytree of the program is flattened and put together, and that nothing holds arguments and results."""

import gc
import weakref

import jax
import jax.numpy as jnp
from _show import depth

flattened, made, depths = [], [], []


@jax.tree_util.register_pytree_node_class
class State:
    def __init__(self, weights, bias):
        self.weights, self.bias = weights, bias

    def tree_flatten(self):
        flattened.append(len(flattened))
        depths.append(depth())
        return (self.weights, self.bias), "state"

    @classmethod
    def tree_unflatten(cls, kind, leaves):
        made.append(kind)
        return cls(*leaves)


@jax.jit
def step(state, *, lr=0.1, self=None):
    depths.append(depth())
    return State(state.weights * (1 - lr), state.bias + lr)


state = State(jnp.ones(4), 1.0)
for i in range(30):
    state = step(state, lr=0.1)
print(len(flattened), len(made), depths)
old = weakref.ref(state.weights)
gc.disable()
state = step(state, lr=0.1, self=2.0)
print("freed", old() is None)
result = weakref.ref(state)
del state
print("freed", result() is None)
