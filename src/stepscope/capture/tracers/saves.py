"""Makes each save of Orbax a range while a capture runs: its own work is Python that no profiler records by default.

A save of an asynchronous checkpointer returns once the arrays are copied; waiting for it is a range of its own.
"""

from __future__ import annotations

import sys
from typing import Any

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.patches import Observer, Undo, observe_attribute
from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.base import Clock, Probe, Span

SAVE, WAIT = "save checkpoint (Orbax)", "wait for save checkpoint (Orbax)"
_PACKAGE = "orbax.checkpoint._src.checkpointers"
# The module, the class, its method, and the name of the range.
_METHODS: tuple[tuple[str, str, str, str], ...] = (
    (f"{_PACKAGE}.checkpointer", "Checkpointer", "save", SAVE),
    (f"{_PACKAGE}.async_checkpointer", "AsyncCheckpointer", "save", SAVE),
    (f"{_PACKAGE}.async_checkpointer", "AsyncCheckpointer", "wait_until_finished", WAIT),
)


class SavesTracer(Probe):
    """Wraps the methods from the start of a capture to its end; the ranges go where all ranges of the program go."""

    def __init__(self) -> None:
        self._undo: list[Undo] = []

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Wraps the methods that this release of Orbax has."""
        for module, name, method, title in _METHODS:
            owner: Any = getattr(sys.modules.get(module), name, None)
            if owner is not None and method in vars(owner):
                self._undo.append(observe_attribute(owner, method, _Saves(title)))

    def stop(self) -> None:
        """Puts the methods back."""
        while self._undo:
            self._undo.pop()()

    def abandon(self) -> None:
        """Puts them back, in a forked process."""
        self.stop()


class _Saves(Observer):
    """Makes each call a range."""

    def __init__(self, title: str) -> None:
        self._title = title

    def before(self, save: object, args: tuple[Any, ...]) -> Span:
        """A call starts."""
        span = ranges.annotate(self._title)
        span.__enter__()
        return span

    def after(self, span: Span, result: object) -> None:
        """It has returned."""
        span.__exit__(None, None, None)

    def failed(self, span: Span) -> None:
        """It has raised."""
        span.__exit__(None, None, None)
