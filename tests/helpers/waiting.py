"""Waiting for what another thread or process does, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LOOK_S = 0.01
_BUSY = 10  # times as slow as a machine that does nothing else


def await_until(condition: Callable[[], T], seconds: float, what: str) -> T:
    """Waits until a condition is true, and returns its value.

    Args:
        condition: is called again and again.
        seconds: how long to wait at most on a quiet machine; a busy one gets ten times as long.
        what: is awaited; the test fails with it.
    """
    patience = _BUSY * seconds
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {patience:g} s in vain for {what}"
        time.sleep(_LOOK_S)
    return value
