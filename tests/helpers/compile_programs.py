"""Programs that compile again and again; each prints nothing and takes steps that it marks.

stepscope run --logdir LOGDIR compile_programs.py NAME
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import stepscope

STEPS = 6


def tensorflow() -> None:
    """The batch grows by one row in every step, and every second step a Python number changes."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    @tf.function
    def tf_step(batch: Any, rate: float) -> Any:
        return tf.reduce_sum(batch["x"] * rate)

    for number in range(STEPS):
        with stepscope.step(number):
            tf_step({"x": tf.ones((4 + min(number, 3), 2))}, 0.5 + max(number - 3, 0)).numpy()
            tf.function(made_anew)(tf.ones(2))


def made_anew(x: Any) -> Any:
    return x + 1


def torch() -> None:
    """The batch grows by one row in the first steps; later a Python number changes."""
    import torch

    @torch.compile(backend="eager", dynamic=False)
    def torch_step(x: torch.Tensor, rate: int) -> torch.Tensor:
        return (x * rate).sum()

    for number in range(STEPS):
        with stepscope.step(number):
            torch_step(torch.ones(4 + min(number, 3), 2), 2 + max(number - 3, 0))


def jax() -> None:
    """A static argument changes in every step."""
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, static_argnames="rate")
    def jax_step(x: Any, rate: float) -> Any:
        return (x * rate).sum()

    for number in range(STEPS):
        with stepscope.step(number):
            jax_step(jnp.ones(4), rate=float(number)).block_until_ready()


if __name__ == "__main__":
    {"tensorflow": tensorflow, "torch": torch, "jax": jax}[sys.argv[1]]()
