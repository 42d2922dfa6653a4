"""How long Python's garbage collector runs: it stops every thread of the program."""

from __future__ import annotations

import gc
import time
from contextlib import suppress
from typing import Any

_OLDEST = 2  # collections of the youngest objects are many and short
_HOOK_NS = 1_000  # for each collection, however young its objects


class CollectorMeter:
    """Measures the collections of all objects.

    Attributes:
        total_ns: how long they have taken together.
        count: how many there were.
        hook_ns: what hearing of all collections has taken, those of young objects included; as of the last `add_up`.
    """

    def __init__(self) -> None:
        self.total_ns = self.count = self.hook_ns = 0
        self._start_ns = self._collections_before = 0

    def start(self) -> None:
        """Measures from now on."""
        self._collections_before = _count_collections()
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        """Measures no longer."""
        with suppress(ValueError):
            gc.callbacks.remove(self._note)

    def add_up(self) -> None:
        """Brings `hook_ns` up to date: counting in the hook itself would cost more than the hook."""
        self.hook_ns = _HOOK_NS * (_count_collections() - self._collections_before)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] < _OLDEST:
            return
        if phase == "start":
            self._start_ns = time.perf_counter_ns()
        elif self._start_ns:
            self.total_ns += time.perf_counter_ns() - self._start_ns
            self.count += 1
            self._start_ns = 0


def _count_collections() -> int:
    return sum(int(each["collections"]) for each in gc.get_stats())
