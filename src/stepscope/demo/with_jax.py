"""The demo with JAX: a jitted training step, fed by a NumPy generator."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from stepscope import capture as profiler
from stepscope.demo import data

HIDDEN = 512
RATE = 0.1


def new_weights() -> list[Any]:
    """Three dense layers."""
    sizes = (data.SIZE, HIDDEN, HIDDEN, data.CLASSES)
    keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
    return [jax.random.normal(key, shape) * 0.04 for key, shape in zip(keys, pairwise(sizes), strict=True)]


def loss(weights: list[Any], images: Any, labels: Any) -> Any:
    """Mean cross-entropy."""
    for layer in weights[:-1]:
        images = jax.nn.relu(images @ layer)
    odds = jax.nn.log_softmax(images @ weights[-1])
    return -jnp.take_along_axis(odds, labels[:, None], 1).mean()


@jax.jit  # type: ignore[untyped-decorator]
def train_step(weights: list[Any], images: Any, labels: Any) -> Any:
    """One step of gradient descent."""
    return jax.tree.map(lambda weight, slope: weight - RATE * slope, weights, jax.grad(loss)(weights, images, labels))


def train(logdir: str | os.PathLike[str]) -> Path | None:
    """Trains for a few steps, the later ones under the profiler."""
    weights, batches = new_weights(), data.batches()

    def step() -> None:
        nonlocal weights
        with profiler.annotate("load batch"):
            images, labels = next(batches)
        weights = jax.block_until_ready(train_step(weights, images, labels))

    for _ in range(data.WARM_UP):
        step()
    with profiler.Profile(logdir) as profile:
        for i in range(data.STEPS):
            with profiler.step(i):
                step()
    return profile.path
