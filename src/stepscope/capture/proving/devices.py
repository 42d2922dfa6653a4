"""Waits until devices have done what steps have started.

A step that waits for nothing ends when its work is queued, and the work runs in the steps after it.  Without this a
block would leave work to the next one, and a step whose waiting is left out would seem to have no work at all.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from stepscope.capture.frameworks import find_cuda


def wait_for_devices() -> None:
    """Waits for the work of JAX, PyTorch and TensorFlow that was started in this process."""
    jax: Any = sys.modules.get("jax")
    tensorflow: Any = sys.modules.get("tensorflow")
    if hasattr(jax, "live_arrays"):
        for array in jax.live_arrays():
            with suppress(RuntimeError):  # another thread has donated or deleted it
                array.block_until_ready()
    cuda = find_cuda()
    if cuda is not None:
        cuda.synchronize()
    if hasattr(tensorflow, "config") and tensorflow.config.list_physical_devices("GPU"):
        tensorflow.test.experimental.sync_devices()
