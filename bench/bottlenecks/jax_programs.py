"""JAX programs with one bottleneck each."""

from __future__ import annotations

import argparse
import pickle
import random
import zlib
from functools import partial
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bench.bottlenecks.harness import scratch, switches, train_jax

Args = argparse.Namespace
Weights = list[jax.Array]


def _dense(inputs: int, width: int, depth: int) -> Weights:
    rng = np.random.default_rng(0)
    sizes = [inputs] + [width] * depth
    return [jnp.asarray(rng.standard_normal((a, b), dtype=np.float32) / a**0.5) for a, b in pairwise(sizes)]


def _forward(weights: Weights, x: jax.Array) -> jax.Array:
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jnp.mean(x * x)


@jax.jit
def _update(weights: Weights, x: jax.Array) -> Weights:
    grads = jax.grad(_forward)(weights, x)
    return [weight - 0.01 * grad for weight, grad in zip(weights, grads, strict=True)]


class _Trainer:
    """Weights that each call moves on."""

    def __init__(self, inputs: int, width: int, depth: int) -> None:
        self.weights = _dense(inputs, width, depth)

    def __call__(self, x: jax.Array) -> Weights:
        self.weights = _update(self.weights, x)
        return self.weights


def changing_shape(args: Args) -> None:
    """recompilation: every batch has another length."""
    train = _Trainer(128, 256, 3)
    train_jax(args, lambda n: train(jnp.ones((128 + n if args.slow else 160, 128))))


def micro_batches(args: Args) -> None:
    """small_batch: sixty-four updates with four samples each instead of one with all."""
    train = _Trainer(64, 64, 4)
    pieces = 64 if args.slow else 1
    parts = [jnp.ones((256 // pieces, 64)) for _ in range(pieces)]

    def step(_: int) -> Weights:
        for part in parts:
            train(part)
        return train.weights

    train_jax(args, step)


def tokenizer(args: Args) -> None:
    """input_python: batches are tokenized in plain Python inside the loop."""
    texts = ["".join(random.choices("abcdefgh", k=140)) for _ in range(256)]
    train = _Trainer(128, 384, 3)

    def next_batch() -> np.ndarray:
        return np.array([[zlib.crc32(t[at : at + 3].encode()) % 512 for at in range(128)] for t in texts], np.float32)

    ready = jnp.asarray(next_batch())
    train_jax(args, lambda _: train(next_batch() if args.slow else ready))


def files(args: Args) -> None:
    """input_file_read: each sample lies in a file of its own."""
    folder, rng = Path(scratch()), np.random.default_rng(0)
    for at in range(256):
        np.save(folder / f"{at}.npy", rng.standard_normal(4096, dtype=np.float32))
    train = _Trainer(4096, 64, 3)

    def load_batch() -> np.ndarray:
        return np.stack([np.load(folder / f"{at}.npy") for at in range(256)])

    ready = jnp.asarray(load_batch())
    train_jax(args, lambda _: train(load_batch() if args.slow else ready))


def augment(args: Args) -> None:
    """input_preprocessing: NumPy augments the batch inside the loop."""
    images, rng = np.random.default_rng(0).standard_normal((256, 32, 32, 3)), np.random.default_rng(1)
    train = _Trainer(3072, 96, 3)

    def augmented() -> np.ndarray:
        noisy = images[:, :, ::-1] + 0.1 * rng.standard_normal(images.shape)
        return (noisy - noisy.mean((1, 2, 3), keepdims=True)).reshape(256, -1).astype(np.float32)

    ready = jnp.asarray(augmented())
    train_jax(args, lambda _: train(augmented() if args.slow else ready))


def pickled(args: Args) -> None:
    """checkpoint_stall: the weights are pickled to a file after every step."""
    train, folder = _Trainer(512, 1024, 4), Path(scratch())
    x = jnp.ones((32, 512))

    def save(number: int) -> None:
        if args.slow or number % 1000 == 0:
            with (folder / "weights.pickle").open("wb") as file:
                pickle.dump([np.asarray(weight) for weight in train.weights], file)

    train_jax(args, lambda _: train(x), between=save)


def unused_evaluation(args: Args) -> None:
    """redundant_compute: a validation loss that nobody reads is computed in every step."""
    train, x, held = _Trainer(256, 512, 3), jnp.ones((128, 256)), jnp.ones((1024, 256))
    evaluate = jax.jit(_forward)

    def step(number: int) -> Weights:
        weights = train(x)
        if args.slow or number % 1000 == 0:
            jax.block_until_ready(evaluate(weights, held))
        return weights

    train_jax(args, step)


def queue_by_concat(args: Args) -> None:
    """memory_churn: a queue of keys is rebuilt by concatenation."""
    train, x = _Trainer(128, 256, 3), jnp.ones((256, 128))
    state = [jnp.zeros((200_000, 128))]

    @jax.jit
    def rebuild(queue: jax.Array, keys: jax.Array) -> jax.Array:
        return jnp.concatenate([keys, queue[:-256]])

    @partial(jax.jit, donate_argnums=0)
    def write(queue: jax.Array, keys: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(queue, keys, (256, 0))

    def step(_: int) -> list[jax.Array]:
        weights = train(x)
        state[0] = (rebuild if args.slow else write)(state[0], x)
        return [*weights, state[0]]

    train_jax(args, step)


def host_sync(args: Args) -> None:
    """host_sync: every weight's largest value is fetched as a float."""
    train, x = _Trainer(128, 128, 48), jnp.ones((64, 128))
    largest = jax.jit(jnp.max)

    def step(number: int) -> Weights:
        weights = train(x)
        if args.slow or number % 1000 == 0:
            for _ in range(4):
                [float(largest(weight)) for weight in weights]
        return weights

    train_jax(args, step)


def op_by_op(args: Args) -> None:
    """eager_dispatch: gradient and update run op by op."""
    weights, x = [_dense(64, 64, 24)], jnp.ones((64, 64))
    update = _update.__wrapped__ if args.slow else _update

    def step(_: int) -> Weights:
        weights[0] = update(weights[0], x)
        return weights[0]

    train_jax(args, step)


def static_rate(args: Args) -> None:
    """recompilation: the learning rate is a static argument."""
    weights, x = [_dense(128, 256, 3)], jnp.ones((64, 128))

    def move(weights: Weights, x: jax.Array, rate: float) -> Weights:
        return [weight - rate * grad for weight, grad in zip(weights, jax.grad(_forward)(weights, x), strict=True)]

    update = jax.jit(move, static_argnums=2) if args.slow else jax.jit(move)

    def step(number: int) -> Weights:
        weights[0] = update(weights[0], x, 0.1 / (number + 1))
        return weights[0]

    train_jax(args, step)


def arrays_to_file(args: Args) -> None:
    """checkpoint_stall: the weights go to an .npz file inside each step."""
    train, folder, x = _Trainer(512, 1024, 4), Path(scratch()), jnp.ones((32, 512))

    def step(number: int) -> Weights:
        weights = train(x)
        if args.slow or number % 1000 == 0:
            np.savez(folder / "weights.npz", *[np.asarray(weight) for weight in weights])
        return weights

    train_jax(args, step)


def leaf_checks(args: Args) -> None:
    """host_sync: every weight is looked at for values that are not finite, one by one."""
    train, x = _Trainer(96, 96, 64), jnp.ones((128, 96))
    count = jax.jit(lambda weights: sum(jnp.sum(~jnp.isfinite(weight)) for weight in weights))

    def step(number: int) -> Weights:
        weights = train(x)
        if args.slow:
            for weight in weights:
                if bool(jnp.isnan(weight).any()) or bool(jnp.isinf(weight).any()):
                    raise ArithmeticError("weights diverge")
        elif number % 10 == 0:
            int(count(weights))
        return weights

    train_jax(args, step)


def fresh_jit(args: Args) -> None:
    """recompilation: the step is a new function in every step, so its compiled program is not found again."""
    train, x = _Trainer(128, 256, 4), jnp.ones((128, 128))

    def step(number: int) -> Weights:
        if args.slow:
            scale = 1.0 + 0.01 * number
            train.weights = jax.jit(lambda weights, x: _update.__wrapped__(weights, x * scale))(train.weights, x)
            return train.weights
        return train(x)

    train_jax(args, step)


def whitening(args: Args) -> None:
    """redundant_compute: the statistics of data that does not change are computed in every step."""
    train, data = _Trainer(192, 256, 3), jnp.asarray(np.random.default_rng(0).standard_normal((6000, 192), np.float32))

    @jax.jit
    def statistics(data: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean = data.mean(0)
        return mean, jnp.linalg.cholesky((data - mean).T @ (data - mean) / len(data) + jnp.eye(192))

    kept = statistics(data)

    def step(number: int) -> Weights:
        mean, factor = statistics(data) if args.slow else kept
        return train((data[:256] - mean) @ factor)

    train_jax(args, step)


if __name__ == "__main__":
    _args = switches()
    globals()[_args.program](_args)
