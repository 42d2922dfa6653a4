"""Finds the steps of a program that does not mark them.  One module per framework, and a line in `FINDERS`.

A finder watches something that happens once a step, and tells the watcher each time: a step has ended, and the next one
begins.  It must not change what the program computes, nor raise into it.
"""

from __future__ import annotations

import importlib
import itertools
import threading
from collections.abc import Callable, Hashable
from dataclasses import field
from types import ModuleType
from typing import Protocol

from stepscope.records import dataclass


@dataclass(frozen=True)
class Source:
    """One thing that happens once a step, such as the calls of one compiled function.

    Attributes:
        rank: how surely it happens once a step; of the sources that a program has, the highest counts.
        name: what people call it.
        key: tells it from other sources of its kind.
        size: of two sources of one rank the larger counts: a training step is the largest function of a program.
    """

    rank: int
    name: str
    key: Hashable = None
    size: int = field(default=0, compare=False)


LOADED, CALLS, OPTIMIZED, FITTED = 1, 2, 3, 4  # ranks
MARKED = Source(rank=5, name="steps that the program marks")


class Listener(Protocol):
    """Who is told of steps.  Neither method raises, except to end the program if that was asked for."""

    active: bool
    """False while nobody wants to know; finders then do nothing."""

    def begin(self, source: Source) -> None:
        """A step begins, unless one runs."""

    def end(self, source: Source, another_follows: bool = True) -> None:
        """A step has ended; the next one begins with that, if another follows."""


Undo = Callable[[], object]
Finder = Callable[[ModuleType, Listener], Undo]

# The module whose import is waited for, and the function that makes a finder of it.
FINDERS: dict[str, str] = {
    "keras": "stepscope.capture.auto.finders.keras:install",
    "torch": "stepscope.capture.auto.finders.torch:install",
    "tensorflow": "stepscope.capture.auto.finders.tensorflow:install",
    "jax": "stepscope.capture.auto.finders.jax:install",
}


def finder(name: str) -> Finder:
    """The finder for a framework."""
    module, _, function = FINDERS[name].partition(":")
    found: Finder = getattr(importlib.import_module(module), function)
    return found


class Calls:
    """Tells of the calls of compiled functions: the outermost ones, for within one others are only traced."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._depth = threading.local()

    def watch(self, call: Callable[[], object], name: str, key: Hashable, size: Callable[[], int]) -> object:
        """Makes a call and tells of it."""
        depth = getattr(self._depth, "now", 0)
        self._depth.now = depth + 1
        try:
            result = call()
        finally:
            self._depth.now = depth
        if depth == 0:
            self._listener.end(Source(CALLS, name, (key, threading.get_ident()), size()))
        return result


def measure_size(measure: Callable[[], int]) -> int:
    """A size that is asked of a framework's insides, which may have changed; 0 then."""
    try:
        return measure()
    except Exception:
        return 0


serial = itertools.count(1).__next__
"""A number for each function that is watched: unlike its address, nobody gets it again."""
