# modes: run watch prove
# timeout: 240
"""Custom derivatives, callbacks from compiled code and rematerialisation, with counts of what traced and ran."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

seen = []


@jax.custom_jvp
def smooth(x):
    seen.append("primal")
    return jnp.log1p(jnp.exp(x))


@smooth.defjvp
def _(primals, tangents):
    seen.append("jvp")
    return smooth(*primals), jax.nn.sigmoid(primals[0]) * tangents[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def scaled(by, x):
    return by * x


scaled.defvjp(
    lambda by, x: (seen.append("fwd"), (by * x, None))[1], lambda by, _, g: (seen.append("bwd"), (by * g / 2,))[1]
)


def on_host(x):
    seen.append(("host", type(x).__name__, np.shape(x)))
    return np.asarray(x) * 2


@jax.jit
def step(weights, batch):
    def loss(w):
        y = jax.checkpoint(lambda z: smooth(scaled(2.0, z @ batch)))(w)
        jax.debug.callback(lambda total: seen.append(("debug", round(float(total), 3))), y.sum(), ordered=True)
        z = jax.pure_callback(on_host, jax.ShapeDtypeStruct(y.shape, y.dtype), jax.lax.stop_gradient(y))
        return (y * z).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * gradient, value


weights, batch = jnp.eye(3), jnp.ones((3, 2))
for _ in range(7):
    weights, value = step(weights, batch)
jax.effects_barrier()
print(round(float(value), 6), [each for each in seen if isinstance(each, str)])
print([each for each in seen if not isinstance(each, str)])
print(
    str(jax.make_jaxpr(step)(weights, batch)).count("\n"),
    smooth.__name__,
    type(smooth).__name__,
    scaled.__wrapped__.__name__,
)
lowered = step.lower(weights, batch)
print(lowered.as_text().count("custom_call"), sorted(lowered.compile().cost_analysis())[:3], step._cache_size())
print(jax.linearize(smooth, 1.0)[1](1.0), jax.vmap(jax.grad(smooth))(jnp.arange(3.0)), jax.jvp(smooth, (1.0,), (1.0,)))
print(jax.hessian(lambda x: smooth(x).sum())(jnp.ones(2)), seen.count("jvp"))
