# modes: run watch prove
# timeout: 240
"""Closures of jitted functions go to other processes by cloudpickle, and compile there once."""

import multiprocessing
import subprocess
import sys

import cloudpickle
import jax
import jax.numpy as jnp


def make(rate):
    count = []

    @jax.jit
    def step(weights):
        count.append(1)
        return weights - rate * jax.grad(lambda w: (w**2).sum())(weights)

    class Trainer:
        steps = 0

        @jax.jit
        def static(weights):  # noqa: N805 - it has no object
            return weights * 2

        def train(self, weights):
            self.steps += 1
            return step(weights), len(count)

    return Trainer(), step


CODE = """
import sys, cloudpickle, jax.numpy as jnp
trainer, step = cloudpickle.loads(sys.stdin.buffer.read())
for _ in range(5):
    weights, traced = trainer.train(jnp.ones(3))
print(weights, traced, trainer.steps, type(step).__name__, getattr(step, "__name__", None), step._cache_size())
"""


def child(data):
    trainer, step = cloudpickle.loads(data)
    print(trainer.train(jnp.ones(2)), step.__wrapped__.__code__.co_name, flush=True)


if __name__ == "__main__":
    trainer, step = make(0.25)
    for _ in range(6):
        weights, traced = trainer.train(jnp.ones(3))
    data = cloudpickle.dumps((trainer, step))
    print(weights, traced, len(data), step._cache_size())
    again, other = cloudpickle.loads(data)
    print(again.train(jnp.ones(3)), other == step, hash(step) == hash(step), type(other) is type(step))
    print(
        subprocess.run([sys.executable, "-c", CODE], input=data, capture_output=True, check=True).stdout.decode(),
        end="",
    )
    process = multiprocessing.get_context("spawn").Process(target=child, args=(data,))
    process.start()
    process.join()
    print(process.exitcode, type(trainer).static(jnp.ones(1)))
