"""A profiler of the program sees the calls of a training by JAX."""

import sys
from collections import Counter

import jax
import jax.numpy as jnp

step = jax.jit(lambda w: w - 0.1 * jnp.sin(w))
w = step(jnp.ones(2))
seen = Counter()


def note(frame, event, arg):
    seen[event, frame.f_code.co_name, frame.f_code.co_filename.rpartition("/")[2]] += 1


for _ in range(4):
    w = step(w)
sys.setprofile(note)
for _ in range(12):
    w = step(w)
sys.setprofile(None)
print(sorted(seen.items()))
