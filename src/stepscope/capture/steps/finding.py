"""Finds the steps of a program that does not mark them.  One module per framework, and a line in `FINDERS`.

A finder watches something that happens once per step, and reports each time that a step has ended and the next one
starts.  It must not change what the program computes, must not raise an exception into it, and must not be seen by it:
it looks where no program has a reason to look, in functions that frameworks call inside, and replaces none that has a
public name.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import suppress
from types import FrameType, ModuleType
from typing import Any

from stepscope.capture.patches import ImportHook, Observer, Undo
from stepscope.capture.program_facts import note_optimizer
from stepscope.capture.steps.step_loop import CALLS, DIFFERENTIATED, OPTIMIZED, Listener, StepLoop, StepSource
from stepscope.capture.tracers import ranges

_MOST_SOURCES = 1000

Finder = Callable[[ModuleType, StepLoop], Undo]

# The module that has to be imported, and the function that installs its finder.
FINDERS: dict[str, str] = {
    "keras": "stepscope.capture.steps.keras:install",
    "torch": "stepscope.capture.steps.torch:install",
    "tensorflow": "stepscope.capture.steps.tensorflow:install",
    "jax": "stepscope.capture.steps.jax:install",
}


def finder(name: str) -> Finder:
    """The finder for a framework."""
    module, _, function = FINDERS[name].partition(":")
    found: Finder = getattr(importlib.import_module(module), function)
    return found


class StepFinders:
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


FINDING = StepFinders()


class OutermostCalls(Observer, ABC):
    """Reports calls of one kind when they have returned, but not those inside of another one on the same thread: these
    are parts of it."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop
        self._threads = threading.local()

    def enter(self, called: Any) -> tuple[int, Any]:
        """A call starts; what `before` has to answer for `report` to get `called`."""
        depth: int = getattr(self._threads, "now", 0)
        self._threads.now = depth + 1
        return depth, called

    def after(self, state: tuple[int, Any], result: object) -> None:
        """A call has returned."""
        depth, called = state
        self._threads.now = depth
        if depth == 0:
            self.report(called)

    def failed(self, state: tuple[int, Any]) -> None:
        """A call has raised."""
        self._threads.now = state[0]

    @abstractmethod
    def report(self, called: Any) -> None:
        """An outermost call has returned."""


next_number = itertools.count(1).__next__


class Numbers:
    """A number for each object, which is not kept alive.  Unlike an address, it is never used again.

    Nothing is called when an object dies: that would be Python code of ours in the middle of any code of the program.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], object] | None, int]] = {}

    def find(self, each: object) -> int | None:
        """The number of an object; None if it has none yet."""
        reference, number = self._known.get(id(each), (None, None))
        return number if reference is None or reference() is each else None

    def assign(self, each: object) -> int:
        """The number of an object, which it has from now on."""
        found = self.find(each)
        if found is not None:
            return found
        if len(self._known) >= _MOST_SOURCES:
            self._known.clear()
        number = next_number()
        try:
            self._known[id(each)] = weakref.ref(each), number
        except TypeError:  # of a class with slots: what has this address later is taken for it
            self._known[id(each)] = None, number
        return number


class CompiledCalls(OutermostCalls):
    """Reports the outermost calls of compiled functions; inside of one, others are only traced."""

    def __init__(self, loop: StepLoop) -> None:
        super().__init__(loop)
        self._sources: dict[Hashable, StepSource] = {}  # one object for each, which listeners know again at once

    def end_step(self, name: str, number: Hashable, size: int, updates: int = 0) -> None:
        """A call has returned, of the function with this name and number."""
        key = number, threading.get_ident()
        source = self._sources.get(key)
        if source is None or (source.size, source.name) != (size, name):
            if len(self._sources) >= _MOST_SOURCES:
                self._sources.clear()
            source = self._sources[key] = StepSource(CALLS, name, key, size, updates)
        self._loop.end_step(source)


class OptimizerCalls(OutermostCalls):
    """Reports the calls of optimizers, each a source of its own, once they have returned.  Of an optimizer that calls
    another one, the outer call counts.  Where a loop makes a new one in each step, each takes the place of one of its
    class that has been called once and is gone; one that was called more often had a loop of its own.

    Args:
        name: of the steps, for the user.
    """

    def __init__(self, loop: StepLoop, name: str) -> None:
        super().__init__(loop)
        self._name = name
        self._numbers = Numbers()
        self._sources: dict[tuple[int, int], StepSource] = {}
        self._once: dict[tuple[int, str], list[tuple[Callable[[], object], StepSource]]] = {}  # those called once

    def report(self, optimizer: object) -> None:
        """An outermost call of an optimizer has returned."""
        if self._loop.active:
            self._loop.end_step(self._source(optimizer))

    def _source(self, optimizer: object) -> StepSource:
        """The source that an optimizer is on this thread."""
        key = threading.get_ident(), self._numbers.assign(optimizer)
        known = self._sources.get(key)
        kind = type(optimizer)
        once = self._once.setdefault((key[0], f"{kind.__module__}.{kind.__qualname__}"), [])
        if known is not None:
            once[:] = [each for each in once if each[0]() is not optimizer]
            return known
        if len(self._sources) >= _MOST_SOURCES:
            self._sources.clear()
            self._once.clear()
        gone = next((at for at, (owner, _) in enumerate(once) if owner() is None), None)
        made = StepSource(OPTIMIZED, self._name, key) if gone is None else once.pop(gone)[1]
        self._sources[key] = made
        with suppress(TypeError):  # of a class with slots: it is never known to be gone
            once.append((weakref.ref(optimizer), made))
        note_optimizer(made.key, optimizer)
        return made


class GradientCalls(OutermostCalls):
    """Reports the calls that compute gradients, of a program that updates its parameters by itself.

    Of several such calls in one loop, such as those of a GAN, the one that came first counts the steps: a source is the
    line of the program that calls.  Calls inside of another one, as of reentrant checkpoints, belong to that.

    Args:
        package: the framework, whose own frames lie between the line and the call.
        name: of the steps, by the name of the framework's function that the line calls.
        counts: whether a call with these arguments by position is one of a step.
    """

    def __init__(
        self,
        loop: StepLoop,
        package: str,
        name: Callable[[str], str],
        counts: Callable[[tuple[Any, ...]], bool],
    ) -> None:
        super().__init__(loop)
        self._inner = (package, "stepscope")
        self._name = name
        self._counts = counts
        self._sources: dict[Hashable, StepSource] = {}

    def before(self, function: object, args: tuple[Any, ...]) -> object:
        """Gradients are computed."""
        return self.enter(self._counts(args)) if self._loop.active else None

    def report(self, counts: bool) -> None:
        """They have been computed."""
        frame: FrameType | None = sys._getframe(2) if counts else None
        called = ""
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in self._inner:
            called, frame = frame.f_code.co_name, frame.f_back
        if frame is not None:  # else a thread of the framework
            key = frame.f_code, frame.f_lineno, threading.get_ident()
            source = self._sources.get(key)
            if source is None:
                source = self._sources[key] = StepSource(DIFFERENTIATED, self._name(called), key)
            self._loop.end_step(source)
