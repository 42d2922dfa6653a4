"""Exceptions inside of jitted functions pass through the same functions as ever."""

import traceback

import jax
import jax.numpy as jnp
from _show import depth, show, show_frames


@jax.jit
def branches(x):
    return x if x > 0 else -x


@jax.jit
def mismatched(x):
    return x @ jnp.ones((7, 7))


@jax.jit
def raising(x):
    raise KeyError("from the program")


@jax.jit
def fine(x):
    print("depth", depth())
    return x


for i in range(6):
    fine(i)
for filtering in ("off", "remove_frames", "quiet_remove_frames"):
    jax.config.update("jax_traceback_filtering", filtering)
    for function in (branches, mismatched, raising):
        show_frames(filtering, lambda: function(jnp.ones(3)))
        show_frames(f"{filtering} grad", lambda: jax.grad(function)(jnp.ones(3)))
    show_frames(f"{filtering} arguments", lambda: fine())
    show_frames(f"{filtering} type", lambda: fine("text"))
show("unexpected", lambda: fine(1, 2, three=3))
try:
    raising(1.0)
except KeyError:
    print(traceback.format_exc().count("stepscope/"), len(traceback.format_exc().splitlines()))
raising(2.0)
