"""Starts the continuous watch of `stepscope.watch` in a program that runs under `stepscope run --watch`, or whose
environment asks for it.

It starts with the first step that a finder reports, so launchers and processes that only load data are not watched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stepscope.capture.auto.finders import Listener, Source

if TYPE_CHECKING:
    from stepscope.capture.watching.continuous import Watch


class Listeners:
    """Reports steps to several listeners."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = tuple(listeners)

    @property
    def active(self) -> bool:
        """Whether any of them is."""
        return any(listener.active for listener in self._listeners)

    def begin(self, source: Source) -> None:
        """A step starts."""
        for listener in self._listeners:
            if listener.active:
                listener.begin(source)

    def end(self, source: Source, another_follows: bool = True) -> None:
        """A step has ended."""
        for listener in self._listeners:
            if listener.active:
                listener.end(source, another_follows)


class LastingWatch:
    """The watch that starts with the first step.

    Args:
        logdir: where its captures go.
        options: as the environment variable that asks for it; empty for no watch.
        show_line: called with a line for the user.

    Attributes:
        active: as for a `Listener`.
        watch: what has been started; None before.
    """

    def __init__(self, logdir: str, options: str, show_line: Callable[[str], object]) -> None:
        self._logdir = logdir
        self._options = options
        self._show_line = show_line
        self._pid = os.getpid()
        self.active = bool(options)
        self.watch: Watch | None = None

    def begin(self, source: Source) -> None:
        """A step starts."""
        if self.watch is not None:
            self.watch.steps.begin(source)

    def end(self, source: Source, another_follows: bool = True) -> None:
        """A step has ended."""
        self.start()
        if self.watch is not None:
            self.watch.steps.end(source, another_follows)

    def mark_step(self, number: object) -> None:
        """The program has marked a step; the watch itself hears of the later ones."""
        before = self.watch
        if self.active:
            self.start()
        if self.watch is not None and self.watch is not before:
            self.watch.steps.mark_step(number)

    def start(self) -> None:
        """Starts the watch, once in a process."""
        if self._pid != os.getpid():  # a fork: what was started belongs to the parent
            self._pid, self.watch = os.getpid(), None
        elif self.watch is not None or not self.active:
            return
        from stepscope.capture.watching.options import options_from_environment
        from stepscope.capture.watching.process import WATCH, start_watch

        if WATCH.running is not None:  # the program watches itself, which finds its own steps
            self.active = False
            return
        WATCH.finds_steps = False
        self.watch = start_watch(self._logdir, options_from_environment({"STEPSCOPE_WATCH": self._options}))
        self.active = self.watch is not None
        if self.watch is not None:
            self._show_line(f"watching; captures go to {self._logdir}")

    def trigger_by_signal(self) -> bool:
        """Keeps a capture because a signal asks for it; False if no watch runs."""
        if self.watch is None:
            return False
        from stepscope.capture.watching.triggers import Trigger

        self.watch.trigger("a signal asked for a capture", Trigger.SIGNAL)
        return True

    def finish(self) -> None:
        """The program ends."""
        if self.watch is not None and self._pid == os.getpid():
            from stepscope.capture.watching.process import WATCH

            WATCH.stop()
            WATCH.finds_steps = True
        self.active = False
