# modes: run watch
"""Frozen dataclasses with slots are states of a scan; a pipe of texts is read meanwhile."""

import dataclasses
import functools
import subprocess
import sys

import jax
import jax.numpy as jnp


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weights", "count"], meta_fields=["name"])
@dataclasses.dataclass(frozen=True, slots=True)
class State:
    weights: jax.Array
    count: jax.Array
    name: str


traced = []


@jax.jit
def epoch(state, batches):
    traced.append(state.name)

    def step(state, batch):
        loss, gradient = jax.value_and_grad(lambda w: jnp.square(batch @ w).sum())(state.weights)
        return dataclasses.replace(state, weights=state.weights - 0.01 * gradient, count=state.count + 1), loss

    return jax.lax.scan(jax.checkpoint(step), state, batches)


child = subprocess.Popen(
    [sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
    bufsize=1,
)
state = State(jnp.ones(2), jnp.int32(0), "a")
for at in range(6):
    state, losses = epoch(state, jnp.full((3, 2), at / 10))
    child.stdin.write(f"line {at}\n")
    print(child.stdout.readline().strip(), round(float(losses[-1]), 5))
state, _ = epoch(dataclasses.replace(state, name="b"), jnp.ones((3, 2)))
child.stdin.close()
print(
    child.wait(),
    state.count,
    traced,
    hash(State.__slots__) == hash(("weights", "count", "name")),
    child.args[0] == sys.executable,
)
