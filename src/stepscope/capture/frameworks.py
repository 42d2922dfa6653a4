"""What the frameworks of this process are known to use, without importing or setting up anything."""

from __future__ import annotations

import sys
from typing import Any


def find_cuda() -> Any:
    """`torch.cuda`, once PyTorch has computed on a GPU; None before that, or without PyTorch."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def has_jax_backend() -> bool:
    """True once JAX has set up a backend."""
    asked: Any = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    return bool(asked and asked())
