"""Finds the steps of a program that does not mark them.  One module per framework, and a line in `FINDERS`.

A finder watches something that happens once per step, and reports each time that a step has ended and the next one
starts.  It must not change what the program computes, and must not raise an exception into it.
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
    """Something that happens once per step, such as the calls of one compiled function.

    Attributes:
        rank: how certain it is to happen once per step; of a program's sources, the one with the highest rank counts.
        name: its name for the user.
        key: distinguishes it from other sources of its kind.
        size: of two sources with one rank, the larger counts: a training step is the largest function of a program.
    """

    rank: int
    name: str
    key: Hashable = None
    size: int = field(default=0, compare=False)


LOADED, CALLS, OPTIMIZED, FITTED = 1, 2, 3, 4  # ranks
MARKED = Source(rank=5, name="as the program marks them")


_MOST_SOURCES = 1000


class Listener(Protocol):
    """Receives the reports of steps.  No method raises an exception, except to end the program if that was
    requested."""

    @property
    def active(self) -> bool:
        """False while steps are of no interest; finders then do nothing."""

    def begin(self, source: Source) -> None:
        """A step starts, unless one is open."""

    def end(self, source: Source, another_follows: bool = True) -> None:
        """A step has ended; the next one starts with that, if another follows."""


Undo = Callable[[], object]
Finder = Callable[[ModuleType, Listener], Undo]

# The module that has to be imported, and the function that installs its finder.
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
    """Reports the outermost calls of compiled functions; inside of one, others are only traced."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._depth = threading.local()
        self._sources: dict[Hashable, Source] = {}  # one object for each, which listeners know again at once

    def watch(self, call: Callable[[], object], name: str, key: Hashable, size: Callable[[], int]) -> object:
        """Makes a call and reports it."""
        depth = getattr(self._depth, "now", 0)
        self._depth.now = depth + 1
        try:
            result = call()
        finally:
            self._depth.now = depth
        if depth == 0:
            self._listener.end(self._source(name, (key, threading.get_ident()), size()))
        return result

    def _source(self, name: str, key: Hashable, size: int) -> Source:
        known = self._sources.get(key)
        if known is not None and known.size == size:
            return known
        if len(self._sources) >= _MOST_SOURCES:
            self._sources.clear()
        made = self._sources[key] = Source(CALLS, name, key, size)
        return made


def measure_size(measure: Callable[[], int]) -> int:
    """A size that is read from a framework's internals; 0 if these have changed."""
    try:
        return measure()
    except Exception:
        return 0


serial = itertools.count(1).__next__
"""A number for each watched function; unlike an address, it is never used again."""
