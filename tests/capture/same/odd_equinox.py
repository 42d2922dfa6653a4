"""Equinox: modules are pytrees, filtered transforms wrap methods, jaxtyping checks types while tracing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import inspect
from jaxtyping import Array, Float, jaxtyped
from beartype import beartype


class Net(eqx.Module):
    w: jax.Array
    f: callable = eqx.field(static=True)

    def __call__(self, x):
        return self.f(x @ self.w)


traces = []


@eqx.filter_jit
def step(net, x):
    traces.append(1)
    value, grad = eqx.filter_value_and_grad(lambda n, x: n(x).sum())(net, x)
    return eqx.apply_updates(net, jax.tree.map(lambda g: -0.1 * g, grad)), value


@jaxtyped(typechecker=beartype)
def checked(x: Float[Array, "a b"]) -> Float[Array, "a"]:  # noqa: F722
    return x.sum(1)


net = Net(jnp.ones((3, 2)), jnp.tanh)
for n in range(8):
    net, value = step(net, jnp.ones((2, 3)))
print(len(traces), value, net, inspect.signature(step), step.__name__)
for n in range(3):
    print(jax.jit(checked)(jnp.ones((2, 3))).shape)
try:
    checked(jnp.ones(3))
except Exception as error:
    print(type(error).__name__)
print(eqx.filter_vmap(net)(jnp.ones((4, 3))).shape, eqx.tree_pformat(net), eqx.filter_make_jaxpr(net)(jnp.ones(3))[0])
