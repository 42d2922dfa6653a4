"""Python's collector, which may run, and with it code of the program, whenever an object is made."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MANY = 200  # of each kind; Python keeps some freed ones, which are taken without asking the collector
_RUNS = 20  # enough for the objects that a call makes first


@contextmanager
def collecting_at_each_object(call: Callable[[], object]) -> Iterator[None]:
    """In the block the collector runs at every new list and dict, and in it something is called, a few times."""
    left = [None] * _RUNS

    def collect(phase: str, info: object) -> None:
        if phase == "start" and left:
            left.pop()
            call()

    before, _taken = gc.get_threshold(), [([], {}) for _ in range(_MANY)]
    gc.callbacks.append(collect)
    gc.set_threshold(1)
    try:
        yield
    finally:
        gc.callbacks.remove(collect)
        gc.set_threshold(*before)
