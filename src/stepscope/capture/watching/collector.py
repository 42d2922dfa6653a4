"""How long Python's garbage collector runs: it stops every thread of the program."""

from __future__ import annotations

import gc
from contextlib import suppress

from stepscope.kernels.collections import TimedCollections

_HOOK_NS = 1_000  # for each collection, however young its objects


class CollectorMeter(TimedCollections):
    """Measures the collections of all objects.

    Attributes:
        hook_ns: what hearing of all collections has taken, those of young objects included; as of the last `add_up`.
    """

    def __init__(self) -> None:
        self.hook_ns = self._collections_before = 0

    def start(self) -> None:
        """Measures from now on."""
        self._collections_before = _count_collections()
        gc.callbacks.append(self)

    def stop(self) -> None:
        """Measures no longer."""
        with suppress(ValueError):
            gc.callbacks.remove(self)

    def add_up(self) -> None:
        """Brings `hook_ns` up to date: counting in the hook itself would cost more than the hook."""
        self.hook_ns = _HOOK_NS * (_count_collections() - self._collections_before)


def _count_collections() -> int:
    return sum(int(each["collections"]) for each in gc.get_stats())
