"""Waiting for what another thread or process does, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LOOK_S = 0.01


def await_until(condition: Callable[[], T], seconds: float, what: str) -> T:
    """Waits until a condition is true, and returns its value.

    Args:
        condition: is called again and again.
        seconds: how long to wait at most; a generous number, since the machine may be busy.
        what: is awaited; the test fails with it.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(_LOOK_S)
    return value
