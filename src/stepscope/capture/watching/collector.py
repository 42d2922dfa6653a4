"""How long Python's garbage collector runs: it stops every thread of the program."""

from __future__ import annotations

import gc
import time
from contextlib import suppress
from typing import Any

_OLDEST = 2  # collections of the youngest objects are many and short


class CollectorMeter:
    """Measures the collections of all objects.

    Attributes:
        total_ns: how long they have taken together.
        count: how many there were.
    """

    def __init__(self) -> None:
        self.total_ns = self.count = 0
        self._start_ns = 0

    def start(self) -> None:
        """Measures from now on."""
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        """Measures no longer."""
        with suppress(ValueError):
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] < _OLDEST:
            return
        if phase == "start":
            self._start_ns = time.perf_counter_ns()
        elif self._start_ns:
            self.total_ns += time.perf_counter_ns() - self._start_ns
            self.count += 1
            self._start_ns = 0
