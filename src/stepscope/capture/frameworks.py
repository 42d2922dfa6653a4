"""What the frameworks of this process are known to use, without importing or setting up anything."""

from __future__ import annotations

import sys
from typing import Any


def find_cuda() -> Any:
    """`torch.cuda`, once PyTorch has computed on a GPU; None before that, or without PyTorch."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def builds_tensorflow_graph() -> bool:
    """Whether this thread makes a graph of a `tf.function` now.  One that runs eagerly is not asked for its graph: it
    would get one, and the names of its functions, in which TensorFlow counts graphs, would change."""
    tensorflow: Any = sys.modules.get("tensorflow")
    inside = getattr(tensorflow, "inside_function", None)
    return bool(inside is not None and not tensorflow.executing_eagerly() and inside())


def has_jax_backend() -> bool:
    """True once JAX has set up a backend."""
    asked: Any = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    return bool(asked and asked())
