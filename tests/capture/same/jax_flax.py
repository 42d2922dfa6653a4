"""Training with Flax and Optax, whose functions JAX jits under their own names."""

import flax.linen as linen
import jax
import jax.numpy as jnp
import optax
from _show import show
from flax import nnx
from flax.training.train_state import TrainState

traces = []


class Net(linen.Module):
    @linen.compact
    def __call__(self, x):
        traces.append("net")
        return linen.Dense(1)(linen.relu(linen.Dense(8)(x)))


net = Net()
x, y = jnp.ones((4, 3)), jnp.zeros((4, 1))
state = TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), x), tx=optax.adam(0.01))


@jax.jit
def train_step(state, x, y):
    traces.append("step")

    def loss(params):
        return ((state.apply_fn(params, x) - y) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value


for _ in range(20):
    state, value = train_step(state, x, y)
print(int(state.step), f"{float(value):.5f}", traces)


class Small(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(3, 1, rngs=rngs)

    def __call__(self, x):
        return self.linear(x)


model = Small(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)


@nnx.jit
def nnx_step(model, optimizer, x, y):
    traces.append("nnx")
    value, grads = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
    optimizer.update(model, grads)
    return value


for _ in range(15):
    value = nnx_step(model, optimizer, x, y)
print(f"{float(value):.5f}", traces.count("nnx"))
show("nnx step", lambda: (nnx_step.__name__, type(nnx_step).__name__))
