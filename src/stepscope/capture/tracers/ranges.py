"""Ranges that the training code names: Trace, annotate, step.

During a capture they go to its tracer.  Without one they cost almost nothing, and from the first step mark on they
still reach a capture that was started elsewhere: by TensorBoard through a profiler server, by Keras' callback, or by
the framework's own calls.  (Such a capture is looked for only at step marks, because this takes as long as several
ranges.)
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
from stepscope.capture.tracers.base import Metadata, Span, TwoSpans
from stepscope.capture.tracers.wrapping import keep_as_python, wrap_with_range
from stepscope.kernels.observe import is_of_program

P = ParamSpec("P")
R = TypeVar("R")
Opener = Callable[[str, Metadata], Span]

_NO_METADATA: Metadata = MappingProxyType({})
_open = threading.local()  # .step: the last step that started on this thread
_complained: set[str] = set()  # names of ranges whose failure was reported


class RangeRoute:
    """Where the ranges of this process go, and who is told of its steps.

    Attributes:
        opener: opens ranges; None drops them.
        safe_opener: the same, if it never raises.
        recorder: the part of the opener that belongs to a capture, of Stepscope or started elsewhere; None if the ring
            of `stepscope.watch` alone receives ranges, or nobody.
        ring: the part that belongs to this ring; None if no watch runs.
        idle: Stepscope runs no capture.
        released: of the last capture: set once the framework's profiler has stopped; None before any.
        step_watchers: are called with the number of every step that starts.  The tuple is replaced and never changed,
            so that a thread can go through it while another one adds a watcher.
    """

    __slots__ = ("idle", "opener", "recorder", "released", "ring", "safe_opener", "step_watchers")

    def __init__(self) -> None:
        self.opener: Opener | None = None
        self.safe_opener: Opener | None = None
        self.recorder: Opener | None = None
        self.ring: Opener | None = None
        self.idle = True
        self.released: threading.Event | None = None
        self.step_watchers: tuple[Callable[[object], None], ...] = ()

    def join(self, recorder_cannot_fail: bool = False) -> None:
        """Makes one opener of that of the capture and that of the ring."""
        recorder, ring = self.recorder, self.ring
        if recorder is not None and ring is not None:
            self.safe_opener = None
            self.opener = lambda name, metadata: TwoSpans(recorder(name, metadata), ring(name, metadata))
            return
        self.opener = recorder or ring
        self.safe_opener = ring if recorder is None else recorder if recorder_cannot_fail else None


ROUTE = RangeRoute()


def route(opener: Opener | None, cannot_fail: bool = False, released: threading.Event | None = None) -> None:
    """Sends ranges to a tracer.

    Args:
        opener: opens a range of the tracer; None once the capture has ended.
        cannot_fail: True if the opener never raises, so that `annotate` may return the tracer's own range.
        released: set once the framework's profiler has stopped, too.  Until then it is the ended capture's, and gets no
            more ranges.
    """
    ROUTE.recorder, ROUTE.idle, ROUTE.released = opener, opener is None, released
    ROUTE.join(cannot_fail)
    _complained.clear()


def route_ring(opener: Opener | None) -> None:
    """Sends ranges to the ring of `stepscope.watch` as well, whether or not a capture runs.

    Args:
        opener: opens a range of the ring and never raises; None once the watch has ended.
    """
    ROUTE.ring = opener
    ROUTE.join()


def watch_steps(watcher: Callable[[object], None]) -> Callable[[], None]:
    """Calls `watcher` with the number of every step that starts, on its thread; returns a function that ends the watch.

    This works without a capture; it is for code that counts or times steps.
    """
    ROUTE.step_watchers += (watcher,)

    def end() -> None:
        ROUTE.step_watchers = tuple(other for other in ROUTE.step_watchers if other is not watcher)

    return end


def _look_for_listener() -> None:
    """Checks whether a capture that was started elsewhere is running, and if so sends ranges to it."""
    if ROUTE.released is not None and not ROUTE.released.is_set():
        return
    found = next((entry.load() for entry in tracers.find_imported() if entry.load().is_listening()), None)
    if ROUTE.idle and (found is not None or ROUTE.recorder is not None):
        ROUTE.recorder = found().annotate if found else None
        ROUTE.join()


def forget_parent() -> None:
    """After a fork: the open ranges belong to the parent."""
    _open.step = None
    ROUTE.ring = None
    route(None)


class Trace:
    """Names what happens in a `with` block, or in every call of a function.

    Examples:
        >>> for i in range(3):
        ...     with Trace("train", step_num=i, _r=1):
        ...         pass
        >>> @Trace("load batch")
        ... def load():
        ...     pass

    Args:
        name: the name of the range in every view.
        metadata: facts about it.  `step_num` makes the range a step mark; `_r=1` marks it for older viewers, too.
    """

    __slots__ = ("_began_ns", "_is_recorded", "_metadata", "_name", "_span")

    def __init__(self, name: str, /, **metadata: object) -> None:
        self._name = name
        self._metadata = metadata
        self._span: Span | None = None
        self._began_ns = 0  # set for steps only
        self._is_recorded = False

    def __enter__(self) -> Trace:
        if "step_num" in self._metadata:
            self._span = _enter_step(self._name, self._metadata)
            self._is_recorded = self._span is not None and ROUTE.recorder is not None
            self._began_ns = time.perf_counter_ns()
        elif ROUTE.opener is not None:
            self._span = _enter(self._name, self._metadata)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if self._began_ns:
            cost.LENGTHS.note(time.perf_counter_ns() - self._began_ns, recording=self._is_recorded)
            self._began_ns = 0
        if self._span is not None:
            _leave(self._span, self._name)
            self._span = None

    def set_metadata(self, **metadata: object) -> None:
        """Adds facts that are known only after the range has started.  PyTorch's profiler cannot store them."""
        if self._span is None:
            return
        try:
            self._span.set_metadata(**metadata)
        except Exception as error:
            _complain(error, self._name)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wraps a function so that each of its calls is a range.

        For a generator or an `async` function, each piece between two pauses is a range, so that other code on the
        thread is not counted.
        """
        return wrap_with_range(function, lambda: Trace(self._name, **self._metadata))


class Step(Trace):
    """A step that started when this object was made; see `step`."""

    __slots__ = ()

    def __enter__(self) -> Step:
        return self


@keep_as_python
def step(number: int) -> Step:
    """Marks step `number`, which starts now.

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
    """Ends the open step of this thread, if there is one."""
    begun: Step | None = getattr(_open, "step", None)
    if begun is not None:  # its block may have ended it already; ending it again does nothing
        begun.__exit__(None, None, None)
        _open.step = None


@keep_as_python
def annotate(name: str) -> Span:
    """Names what happens in a `with` block: like `Trace` without metadata, and cheapest while nothing records.

    Examples:
        >>> with annotate("load batch"):
        ...     pass
    """
    if ROUTE.opener is None:
        return NOTHING
    safe_opener = ROUTE.safe_opener  # read once: another thread may end the capture now
    if safe_opener is not None:
        return safe_opener(name, _NO_METADATA)
    return Trace(name)


def _enter_step(name: str, metadata: Metadata) -> Span | None:
    try:
        for watcher in ROUTE.step_watchers:
            watcher(metadata["step_num"])
        if ROUTE.idle:
            _look_for_listener()
    except Exception as error:
        _complain(error, name)
    return _enter(name, metadata)


def _enter(name: str, metadata: Metadata) -> Span | None:
    opener = ROUTE.opener
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
    """Reports the first failure of each name, so that a range in a loop does not fill the log; called while that is
    handled.  What is the program's own is raised again."""
    if is_of_program(error):
        raise
    try:
        shown = repr(name)
    except Exception:  # a name may be any object
        shown = f"<{type(name).__name__}>"
    if shown not in _complained:
        _complained.add(shown)
        report(error, f"annotating {shown}")


class _Nothing:
    """The range while nothing records.

    Entering and leaving call C functions, at half the cost of Python methods: `repeat` returns the range again and
    again, and `format` of an empty text takes any arguments and returns an empty text, which lets exceptions pass.
    """

    __enter__: Any
    __exit__: Any = "".format

    def set_metadata(self, **metadata: object) -> None:
        """Nothing."""


NOTHING = _Nothing()
_Nothing.__enter__ = itertools.repeat(NOTHING).__next__
