"""Carries a schedule out.  Whoever knows where the steps of a loop begin and end tells it; it starts, marks, stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stepscope.capture import ranges, report, session
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.schedules import Action, Schedule

Saved = Callable[[Path], object]


class Conductor:
    """Captures the steps of a loop that a schedule names, and marks them.

    `begin` and `end` are called on the thread that runs the steps.  Between captures they cost a comparison or two.
    Starting and stopping happens between the steps, in no step's time.

    Args:
        schedule: the action of each step, by its number.
        first: the number of the step that comes first.
        on_saved: called with the path of each profile that was written.

    Attributes:
        number: the step that runs, or the next one between two steps.
        marks: False leaves the marks to a loop that makes its own.
        paths: the profiles that were written, oldest first.
    """

    def __init__(
        self,
        logdir: session.LogDir,
        options: object,
        schedule: Schedule,
        first: int = 0,
        on_saved: Saved | None = None,
    ) -> None:
        self.number = first
        self.marks = True
        self.paths: list[Path] = []
        self._logdir = logdir
        self._options = ProfilerOptions.of(options)
        self._schedule = schedule
        self._on_saved = on_saved
        self._action = Action.NONE  # of the step that runs or ran last
        self._running = False  # a capture of ours runs
        self._open = False  # a step runs
        self._mark: ranges.Trace | None = None

    @property
    def running(self) -> bool:
        """True while a capture of this loop runs."""
        return self._running

    def begin(self) -> None:
        """Step `number` begins, unless it has begun already."""
        if self._open:
            return
        self._open = True
        with report.Wall("following the schedule", self._options.strict):
            self._turn_to(Action.of(self._schedule(self.number)))
            if self._running and self.marks:
                self._mark = ranges.Trace("train", step_num=self.number, _r=1)
                self._mark.__enter__()

    def end(self) -> None:
        """Step `number` has ended, whether its beginning was told or not."""
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)
        self._open = False
        self.number += 1
        if self._action is Action.RECORD_AND_SAVE:
            self._turn_to(Action.NONE)

    def finish(self) -> None:
        """The loop has ended.  What was recorded is saved; a warm-up is thrown away.

        A step that runs is none: it holds the end of the loop, or an exception cut it short.  So its mark is not ended,
        which drops it with every tracer but PyTorch's; it has to outlive the capture, for to free it is to end it.
        """
        mark, self._mark = self._mark, None
        self._open = False
        self._turn_to(Action.NONE)
        del mark

    def cancel(self) -> None:
        """Throws away what the running capture has recorded."""
        mark, self._mark = self._mark, None
        self._open = False
        self._action = Action.NONE
        self._stop(save=False)
        del mark

    def _turn_to(self, wanted: Action) -> None:
        """Starts or stops where the phase changes; a start that failed is not tried again within its phase."""
        before, self._action = self._action, wanted
        if before.phase == wanted.phase:
            return
        self._stop(save=before.records)
        if wanted is not Action.NONE:
            session.start(self._logdir, self._options)
            self._running = report.last_error() is None

    def _stop(self, save: bool) -> None:
        if not self._running:
            return
        self._running = False
        if not session.is_running():  # the program has ended it, or is at its end
            return
        path = session.stop(save)
        if path is None:
            return
        self.paths.append(path)
        if self._on_saved is not None:
            with report.Wall(f"telling of {path}", self._options.strict):
                self._on_saved(path)
