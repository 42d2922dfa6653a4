"""Ranges that the training code names: Trace, annotate, step.

While a capture runs they go to its tracer.  While none runs they cost next to nothing, and from the first step mark on
they still reach a capture that somebody else started: TensorBoard through a profiler server, Keras' callback, or the
framework's own calls.  (That is looked for at step marks only, for it takes as long as several ranges.)
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from types import MappingProxyType, TracebackType
from typing import Any, ParamSpec, TypeVar

from stepscope.capture import cost, tracers
from stepscope.capture.report import report
from stepscope.capture.tracers.base import Metadata, Span
from stepscope.capture.wrapping import wrap_with_range

P = ParamSpec("P")
R = TypeVar("R")
Opener = Callable[[str, Metadata], Span]

_opener: Opener | None = None  # where ranges go now; None drops them
_safe_opener: Opener | None = None  # the same if it never raises
_idle = True  # no capture of ours runs
_NO_METADATA: Metadata = MappingProxyType({})
_open = threading.local()  # .step: the step of this thread that began last
_complained: set[str] = set()
_step_watchers: tuple[Callable[[object], None], ...] = ()


def route(opener: Opener | None, cannot_fail: bool = False) -> None:
    """Sends ranges to the tracer of a capture that begins; None when it has ended.

    Args:
        cannot_fail: nothing has to be caught, so that `annotate` may hand out the tracer's own range.
    """
    global _opener, _idle, _safe_opener
    _opener, _idle = opener, opener is None
    _safe_opener = opener if cannot_fail else None
    _complained.clear()


def watch_steps(watcher: Callable[[object], None]) -> Callable[[], None]:
    """Calls `watcher` with the number of every step that begins, on its thread; returns what ends that.

    This needs no capture: it is for whoever counts or times steps.
    """
    global _step_watchers
    _step_watchers += (watcher,)

    def end() -> None:
        global _step_watchers
        _step_watchers = tuple(other for other in _step_watchers if other is not watcher)

    return end


def _look_for_listener() -> None:
    """Finds out whether somebody else captures just now, and sends ranges there if so."""
    global _opener
    found = next((entry.load() for entry in tracers.find_imported() if entry.load().is_listening()), None)
    if _idle:
        _opener = found().annotate if found else None


def forget_parent() -> None:
    """After a fork: the ranges that are open are the parent's."""
    _open.step = None
    route(None)


class Trace:
    """Names what happens in a `with` block, or in every call of a function.

    >>> for i in range(3):
    ...     with Trace("train", step_num=i, _r=1):
    ...         pass
    >>> @Trace("load batch")
    ... def load():
    ...     pass

    Args:
        name: what the range is called in every view.
        metadata: facts to go with it.  `step_num` makes the range a step mark; `_r=1` tells older viewers so, too.
    """

    __slots__ = ("_began_ns", "_metadata", "_name", "_span")

    def __init__(self, name: str, /, **metadata: object) -> None:
        self._name = name
        self._metadata = metadata
        self._span: Span | None = None
        self._began_ns = 0  # set for steps only

    def __enter__(self) -> Trace:
        if "step_num" in self._metadata:
            self._span = _enter_step(self._name, self._metadata)
            self._began_ns = time.perf_counter_ns()
        elif _opener is not None:
            self._span = _enter(self._name, self._metadata)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if self._began_ns:
            cost.note(time.perf_counter_ns() - self._began_ns, recording=self._span is not None)
            self._began_ns = 0
        if self._span is not None:
            _leave(self._span, self._name)
            self._span = None

    def set_metadata(self, **metadata: object) -> None:
        """Adds facts that are known only after the range has begun.  PyTorch's profiler has no place for them."""
        if self._span is None:
            return
        try:
            self._span.set_metadata(**metadata)
        except Exception as error:
            _complain(error, self._name)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wraps a function so that each of its calls is a range.

        Of a generator and of an `async` function each piece is one that runs without a pause, so that what others do on
        the thread meanwhile is not counted.
        """
        return wrap_with_range(function, lambda: Trace(self._name, **self._metadata))


class Step(Trace):
    """A step that began when this was made; see `step`."""

    __slots__ = ()

    def __enter__(self) -> Step:
        return self


def step(number: int) -> Step:
    """Marks step `number`, which begins now.

    It ends with the `with` block:

        for i in range(steps):
            with step(i):
                train()

    or, called alone, with the next step of the same thread or with the capture:

        for i in range(steps):
            step(i)
            train()
    """
    end_open_step()
    begun = Step("train", step_num=number, _r=1)  # the name by which older viewers know a step
    Trace.__enter__(begun)
    _open.step = begun
    return begun


def end_open_step() -> None:
    """Ends the step of this thread that is open, if there is one."""
    begun: Step | None = getattr(_open, "step", None)
    if begun is not None:  # it may have ended with its block; ending it again does nothing
        begun.__exit__(None, None, None)
        _open.step = None


def annotate(name: str) -> Span:
    """Names what happens in a `with` block: `Trace` without metadata, and the cheapest while nothing records.

    >>> with annotate("load batch"):
    ...     pass
    """
    if _opener is None:
        return _NOTHING
    if _safe_opener is not None:
        return _safe_opener(name, _NO_METADATA)
    return Trace(name)


def _enter_step(name: str, metadata: Metadata) -> Span | None:
    try:
        for watcher in _step_watchers:
            watcher(metadata["step_num"])
        if _idle:
            _look_for_listener()
    except Exception as error:
        _complain(error, name)
    return _enter(name, metadata)


def _enter(name: str, metadata: Metadata) -> Span | None:
    opener = _opener
    if opener is None:
        return None
    try:
        span = opener(name, metadata)
        span.__enter__()
    except Exception as error:
        _complain(error, name)
        return None
    return span


def _leave(span: Span, name: str) -> None:
    try:
        span.__exit__(None, None, None)
    except Exception as error:
        _complain(error, name)


def _complain(error: Exception, name: object) -> None:
    """Reports the first failure of each name: a step that fails must not fill the log."""
    try:
        told = repr(name)
    except Exception:  # a name may be anything
        told = f"<{type(name).__name__}>"
    if told not in _complained:
        _complained.add(told)
        report(error, f"annotating {told}")


class _Nothing:
    """The range of a program that nobody watches.

    Entering and leaving call C functions, at half the cost of methods written in Python: `repeat` hands out the range
    for ever, and `format` of an empty text takes any arguments and returns an empty text, which lets exceptions pass.
    """

    __enter__: Any
    __exit__: Any = "".format

    def set_metadata(self, **metadata: object) -> None:
        """Nothing."""


_NOTHING = _Nothing()
_Nothing.__enter__ = itertools.repeat(_NOTHING).__next__
