"""The one watch of this process: how it starts, and what it hears of the process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from types import TracebackType
from typing import Any

from stepscope.capture import program_end, report
from stepscope.capture.own_threads import register_at_fork
from stepscope.capture.patches import Observer, Undo, observe_attribute, undo_all
from stepscope.capture.program_end import INTERRUPTS, REQUEST, take_signal
from stepscope.capture.steps.finding import FINDING
from stepscope.capture.watching.continuous import Watch
from stepscope.capture.watching.options import WatchOptions
from stepscope.errors import CaptureError


class OnlyWatch:
    """The watch of this process, which has at most one.

    Attributes:
        running: the watch; None if there is none.
    """

    def __init__(self) -> None:
        self.running: Watch | None = None
        self._undo: list[Undo] = []
        self._lock = threading.RLock()

    def start(self, watch: Watch) -> None:
        """Starts a watch.  Raises CaptureError if one runs."""
        with self._lock:
            self.refuse_second()
            watch.start()
            self.running = watch
            self._undo += [FINDING.add(watch.steps), _take_exceptions(watch), _start_metrics(watch)]
            self._undo += filter(None, [take_signal(REQUEST, watch.trigger_by_signal)])
            atexit.register(self._stop_at_end)
            program_end.listen_for_hard_end(self._note_hard_end)

    def refuse_second(self) -> None:
        """Raises CaptureError if a watch runs."""
        if self.running is not None:
            raise CaptureError(
                "this process is watched already",
                code="already-running",
                path=self.running.logdir,
                kept="the running watch",
                hint="end it with stop() first",
            )

    def stop(self) -> None:
        """Ends the watch, if there is one."""
        with self._lock:
            watch, self.running = self.running, None
            atexit.unregister(self._stop_at_end)
            program_end.forget_hard_end(self._note_hard_end)
            while self._undo:
                with report.NeverRaise("ending the watch", strict=False):
                    self._undo.pop()()
        if watch is not None:
            with INTERRUPTS.hold():
                watch.stop()

    def _stop_at_end(self) -> None:
        with INTERRUPTS.hold(at_end=True):
            self.stop()

    def forget_parent(self) -> None:
        """After a fork: the watch belongs to the parent."""
        watch, self.running = self.running, None
        self._lock = threading.RLock()
        self._undo.clear()
        if watch is not None:
            watch.forget_parent()
            atexit.unregister(self._stop_at_end)
            program_end.forget_hard_end(self._note_hard_end)

    def _note_hard_end(self, how: str) -> None:
        """The program ends without Python's own end: the ring stays on the disk as it is."""
        watch = self.running
        if watch is not None:
            watch.ring.flush()


WATCH = OnlyWatch()

register_at_fork(after_in_child=WATCH.forget_parent)


def watch(
    logdir: str | os.PathLike[str], ring: object = "30s", budget_percent: float = 1.0, **options: object
) -> Handle | None:
    """Watches this process from now on, and keeps a capture when something happens.

    Args:
        logdir: where captures go; a folder, made if it does not exist, or an address such as `gs://...`.
        ring: how much of the past is kept all the time.
        budget_percent: how much longer the job may take.
        options: such as `slow_factor=5` or `stall="10min"`; docs/watch.md lists all.

    Returns:
        The watch, with `trigger`, `observe` and `stop`; it may be used as a context manager.  None if it could not
        start; `stepscope.last_error()` then says why, and training goes on.
    """
    with report.NeverRaise("starting the watch", strict=False):
        chosen = WatchOptions.from_mapping({"ring": ring, "budget_percent": budget_percent, **options})
        started = start_watch(os.fspath(logdir), chosen)
        return None if started is None else Handle(started)
    return None


def start_watch(logdir: str, options: WatchOptions) -> Watch | None:
    """Starts the watch of this process; None if that failed, which is reported."""
    with report.NeverRaise("starting the watch", strict=False):
        WATCH.refuse_second()
        made = Watch(logdir, options)
        try:
            WATCH.start(made)
        except BaseException:
            made.ring.stop()
            made.target.release()
            raise
        return made
    return None


class Handle:
    """What `stepscope.watch` returns.

    Args:
        watch: the running watch.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def trigger(self, reason: str) -> None:
        """Keeps a capture now; returns at once."""
        self.watch.trigger(reason)

    def observe(self, **values: float) -> None:
        """Notes values of the training, such as the loss: `observe(loss=0.3)`.  A spike of one keeps a capture."""
        for name, value in values.items():
            self.watch.observe(name, float(value))

    def stop(self) -> None:
        """Ends the watch."""
        if WATCH.running is self.watch:
            WATCH.stop()

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if isinstance(error, Exception):
            self.watch.crash(error)
        self.stop()


def current() -> Watch | None:
    """The watch of this process; None if there is none."""
    return WATCH.running


def trigger(reason: str) -> bool:
    """Keeps a capture now, if this process is watched; returns whether it is.  It never waits and never raises."""
    running = WATCH.running
    if running is None:
        return False
    with report.NeverRaise("triggering a capture", strict=False):
        running.trigger(reason)
    return True


def observe(**values: float) -> bool:
    """Notes values of the training, such as `observe(loss=0.3)`; returns whether this process is watched.

    A spike of a value, or the first one that is not finite, keeps a capture.
    """
    running = WATCH.running
    if running is None:
        return False
    with report.NeverRaise("observing a value", strict=False):
        for name, value in values.items():
            running.observe(name, float(value))
    return True


def _take_exceptions(watch: Watch) -> Undo:
    """Keeps the ring when an exception ends the program, or one of its threads.  The hooks stay Python's own; one that
    the program has set instead ends our part."""
    hooks = (sys, "excepthook"), (threading, "excepthook")
    return undo_all(*(observe_attribute(owner, name, _Hook(watch), called_from_c=True) for owner, name in hooks))


class _Hook(Observer):
    """Sees the calls of a hook for exceptions."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def before(self, function: object, args: tuple[Any, ...]) -> None:
        """An exception has reached the end of the program or of a thread."""
        error = getattr(args[0], "exc_value", None) if len(args) == 1 else args[1]
        if isinstance(error, Exception):
            self._watch.crash(error)


def _start_metrics(watch: Watch) -> Undo:
    options = watch.options
    if options.metrics_port is None and not options.opentelemetry and not options.tensorboard:
        return _nothing
    from stepscope.capture.watching import metrics

    with report.NeverRaise("publishing the metrics of the watch", strict=False):
        return metrics.publish(watch)
    return _nothing


def _nothing() -> None:
    """Undoes nothing."""
