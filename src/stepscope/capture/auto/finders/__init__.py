"""Finds the steps of a program that does not mark them.  One module per framework, and a line in `FINDERS`.

A finder watches something that happens once per step, and reports each time that a step has ended and the next one
starts.  It must not change what the program computes, and must not raise an exception into it.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from types import FrameType, ModuleType
from typing import Any

from stepscope.capture import ranges
from stepscope.capture.auto.imports import ImportHook
from stepscope.capture.auto.step_loop import CALLS, DIFFERENTIATED, OPTIMIZED, Listener, StepLoop, StepSource
from stepscope.capture.patches import Call, Undo

_MOST_SOURCES = 1000

Finder = Callable[[ModuleType, StepLoop], Undo]

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


class Finding:
    """Finds the steps of this process, for everybody who listens.  The finders are installed once, for frameworks that
    are imported now or later.

    Attributes:
        loop: receives what they find, and passes on the steps of the training loop.
        on_import: called with the name of a framework when its import starts.
    """

    def __init__(self) -> None:
        self.on_import: Callable[[str], object] = str
        self.loop = StepLoop()
        self._undo: list[Undo] = []

    def add(self, listener: Listener) -> Undo:
        """Reports the loop's steps to one more listener; returns what ends that."""
        self.loop.add(listener)
        if not self._undo:
            wanted = {name: functools.partial(self._install, name) for name in FINDERS}
            imports = ImportHook(wanted, lambda name: self.on_import(name))
            self._undo += [imports.remove, ranges.watch_steps(self._mark_step)]
            imports.install()
        return functools.partial(self._remove, listener)

    def _mark_step(self, number: object) -> None:
        if self.loop.active:
            self.loop.mark_step(number)

    def _install(self, name: str, module: ModuleType) -> None:
        self._undo.append(finder(name)(module, self.loop))

    def _remove(self, listener: Listener) -> None:
        self.loop.remove(listener)
        if self.loop.has_listeners:
            return
        while self._undo:
            self._undo.pop()()
        self.loop.forget()


FINDING = Finding()


class Calls:
    """Reports the outermost calls of compiled functions; inside of one, others are only traced."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop
        self._depth = threading.local()
        self._sources: dict[Hashable, StepSource] = {}  # one object for each, which listeners know again at once

    def watch(self, call: Callable[[], object], name: str, key: Hashable, size: Callable[[], int]) -> object:
        """Makes a call and reports it."""
        depth = getattr(self._depth, "now", 0)
        self._depth.now = depth + 1
        try:
            result = call()
        finally:
            self._depth.now = depth
        if depth == 0:
            self._loop.end_step(self._source(name, (key, threading.get_ident()), size()))
        return result

    def _source(self, name: str, key: Hashable, size: int) -> StepSource:
        known = self._sources.get(key)
        if known is not None and known.size == size:
            return known
        if len(self._sources) >= _MOST_SOURCES:
            self._sources.clear()
        made = self._sources[key] = StepSource(CALLS, name, key, size)
        return made


class OptimizerCalls:
    """Reports the calls of optimizers, each a source of its own.  Of an optimizer that calls another one, the outer
    call counts.

    Args:
        name: of the steps, for the user.
    """

    def __init__(self, loop: StepLoop, name: str) -> None:
        self._active = True
        self._name = name
        self._loop = loop
        self._sources: dict[tuple[int, int], tuple[Callable[[], object], StepSource]] = {}
        self._depth = threading.local()

    def watch(self, step: Call) -> Call:
        """The same method, whose calls are reported once they have returned."""

        @functools.wraps(step)  # takes over `hooked` and `__wrapped__`, by which PyTorch knows its own wrapper
        def call_and_report(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            return self.call(step, optimizer, *args, **kwargs)

        call_and_report.__wrapped__ = getattr(step, "__wrapped__", step)
        return call_and_report

    def call(self, step: Call, optimizer: object, *args: Any, **kwargs: Any) -> Any:
        """Calls a step of an optimizer, and reports it once it has returned."""
        depth = getattr(self._depth, "now", 0)
        self._depth.now = depth + 1
        try:
            result = step(optimizer, *args, **kwargs)
        finally:
            self._depth.now = depth
        if depth == 0:
            self._report(optimizer)
        return result

    def end(self) -> None:
        """Reports nothing any more, also for classes that were wrapped meanwhile."""
        self._active = False

    def _report(self, optimizer: object) -> None:
        if self._active and self._loop.active:
            self._loop.end_step(self._source(optimizer))

    def _source(self, optimizer: object) -> StepSource:
        """The source that an optimizer is on this thread; another one may get its address once it is gone."""
        key = threading.get_ident(), id(optimizer)
        known = self._sources.get(key)
        if known is not None and known[0]() is optimizer:
            return known[1]
        if len(self._sources) >= _MOST_SOURCES:
            self._sources.clear()
        made = StepSource(OPTIMIZED, self._name, (key[0], serial()))
        try:
            self._sources[key] = weakref.ref(optimizer), made
        except TypeError:  # of a class with slots: it is taken for the one that had this address before
            self._sources[key] = (lambda: optimizer), made
        return made


class GradientCalls:
    """Reports the calls that compute gradients, of a program that updates its parameters by itself.

    Of several such calls in one loop, such as those of a GAN, the one that came first counts the steps: a source is the
    line of the program that calls.  Calls inside of another one, as of reentrant checkpoints, belong to that.

    Args:
        package: the framework, whose own frames lie between the line and the call.
        counts: whether a call with these arguments by name is one of a step.
    """

    def __init__(self, loop: StepLoop, package: str, counts: Callable[[Mapping[str, Any]], bool]) -> None:
        self._loop = loop
        self._inner = (package, "stepscope")
        self._counts = counts
        self._inside = threading.local()
        self._sources: dict[Hashable, StepSource] = {}

    def watch(self, name: str) -> Call:
        """What `wrap_attribute` puts around such a function: its calls are reported once they have returned.

        Args:
            name: of the steps, for the user.
        """

        def call_and_report(function: Call, *args: Any, **kwargs: Any) -> Any:
            if not self._loop.active or getattr(self._inside, "now", False):
                return function(*args, **kwargs)
            self._inside.now = True
            try:
                result = function(*args, **kwargs)
            finally:
                self._inside.now = False
            if self._counts(kwargs):
                self._report(name)
            return result

        return call_and_report

    def _report(self, name: str) -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in self._inner:
            frame = frame.f_back
        if frame is not None:  # else a thread of the framework
            key = frame.f_code, frame.f_lineno, threading.get_ident()
            source = self._sources.setdefault(key, StepSource(DIFFERENTIATED, name, key))
            self._loop.end_step(source)


serial = itertools.count(1).__next__
"""A number for each watched function; unlike an address, it is never used again."""
