"""A loop that saves its state with Orbax in every step.

stepscope run --logdir LOGDIR saving_programs.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

STEPS = 14
ELSEWHERE_S = 0.03  # three samples of the stack


def train(folder: Path) -> None:
    """Steps that save 1 MiB each, and do enough else for samples of the stack to tell the loop from the saves."""
    import jax
    import jax.numpy as jnp
    import orbax.checkpoint as ocp

    import stepscope

    update = jax.jit(lambda state: {name: value * 0.99 for name, value in state.items()})
    state = {f"w{number}": jnp.ones((256, 256)) for number in range(4)}
    saver = ocp.Checkpointer(ocp.StandardCheckpointHandler())
    for number in range(STEPS):
        with stepscope.step(number):
            state = jax.block_until_ready(update(state))
            time.sleep(ELSEWHERE_S)
            saver.save(folder / str(number), args=ocp.args.StandardSave(state))


if __name__ == "__main__":
    train(Path(sys.argv[1]).absolute())
