"""Carries a schedule out.  Whoever knows where the steps of a loop begin and end tells it; it starts, marks, stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from stepscope.capture import cost, ranges, report, session
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.running import Capture
from stepscope.capture.schedules import Action, Schedule, never

Saved = Callable[[Path], object]

_PATIENCE_S = 10.0  # for the profiler of a capture that ended with the step before


class Conductor:
    """Captures the steps of a loop that a schedule names, and marks them.

    `begin` and `end` are called on the thread that runs the steps.  Between captures they cost a comparison or two, and
    a reading of the clock each: those steps tell what profiling costs the others.
    Starting and stopping happens between the steps, in no step's time, and files are written in the background.  Only a
    capture that begins where another ended waits for that one's profiler.

    Args:
        schedule: the action of each step, by its number.
        first: the number of the step that comes first.
        on_stopped: called when a capture that is to be saved has ended.
        on_saved: called with the path of each profile that was written, on a thread of its own.

    Attributes:
        number: the step that runs, or the next one between two steps.
        marks: False leaves the marks to a loop that makes its own.
    """

    def __init__(
        self,
        logdir: session.LogDir,
        options: object,
        schedule: Schedule,
        first: int = 0,
        on_stopped: Callable[[], object] = lambda: None,
        on_saved: Saved = lambda path: None,
    ) -> None:
        self.number = first
        self.marks = True
        self._paths: list[Path] = []
        self._logdir = logdir
        self._options = ProfilerOptions.from_any(options)
        self._schedule = schedule
        self._on_stopped = on_stopped
        self._on_saved = on_saved
        self._writing: list[threading.Thread] = []
        self._action = Action.NONE  # of the step that runs or ran last
        self._capture: Capture | None = None  # ours, while it runs
        self._open = False  # a step runs
        self._mark: ranges.Trace | None = None
        self._began_ns = 0  # of a step that nobody records

    @property
    def running(self) -> bool:
        """True while a capture of this loop runs."""
        return self._capture is not None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The profiles of all captures that have ended, oldest first; waits until they are written."""
        self.wait()
        return tuple(self._paths)

    def wait(self, seconds: float | None = None) -> None:
        """Waits until the profiles of all captures that have ended are written, or are known not to be.

        Args:
            seconds: how long for each at most; None waits for as long as it takes.
        """
        for thread in self._writing:
            thread.join(seconds)

    def begin(self) -> None:
        """Step `number` begins, unless it has begun already."""
        if self._open:
            return
        self._open = True
        with report.Wall("following the schedule", self._options.strict):
            self._change_phase(self._ask_schedule())
            if self.running and self.marks:
                self._mark = ranges.Trace("train", step_num=self.number, _r=1)
                self._mark.__enter__()
        if self.marks and not session.is_running():
            self._began_ns = time.perf_counter_ns()

    def _ask_schedule(self) -> Action:
        """What the schedule says of step `number`.  One that fails is not asked again: the log must not fill up."""
        try:
            return Action.from_any(self._schedule(self.number))
        except Exception:
            self._schedule = never
            self._change_phase(Action.NONE)
            raise

    def end(self) -> None:
        """Step `number` has ended, whether its beginning was told or not."""
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)
        elif self._began_ns:
            cost.note(time.perf_counter_ns() - self._began_ns, recording=False)
        self._open, self._began_ns = False, 0
        self.number += 1
        if self._action is Action.RECORD_AND_SAVE:
            self._change_phase(Action.NONE)

    def finish(self) -> None:
        """The loop has ended.  What was recorded is saved; a warm-up is thrown away.

        A step that runs is none: it holds the end of the loop, or an exception cut it short.  So its mark is not ended,
        which drops it with every tracer but PyTorch's; it has to outlive the capture, for to free it is to end it.
        """
        mark, self._mark = self._mark, None
        self._open, self._began_ns = False, 0
        self._change_phase(Action.NONE)
        del mark

    def cancel(self) -> None:
        """Throws away what the running capture has recorded."""
        mark, self._mark = self._mark, None
        self._open, self._began_ns = False, 0
        self._action = Action.NONE
        self._stop(save=False)
        del mark

    def _change_phase(self, wanted: Action) -> None:
        """Starts or stops where the phase changes; a start that failed is not tried again within its phase."""
        before, self._action = self._action, wanted
        if before.phase == wanted.phase:
            return
        before_this = self._stop(save=before.records)
        if wanted is not Action.NONE:
            if before_this is not None:
                before_this.released.wait(_PATIENCE_S)
            self._capture = session.start(self._logdir, self._options)

    def _stop(self, save: bool) -> Capture | None:
        """Ends the capture that runs; returns it."""
        capture, self._capture = self._capture, None
        if capture is None:
            return None
        # Nothing happens if the program has ended it, or if it has reached a limit.
        session.SESSION.end(capture, save=save, wait=False, strict=capture.options.strict)
        if save:
            self._on_stopped()
            self._await_in_background(capture)
        return capture

    def _await_in_background(self, capture: Capture) -> None:
        writing = threading.Thread(target=self._await_writing, args=(capture,), name="stepscope-saved")
        try:
            writing.start()
        except RuntimeError:  # no thread can be had: at the program's end, or at the system's limit
            self._await_writing(capture)
        else:
            self._writing.append(writing)

    def _await_writing(self, capture: Capture) -> None:
        capture.finished.wait()
        if capture.path is not None:
            self._paths.append(capture.path)
            with report.Wall(f"telling of {capture.path}", strict=False):
                self._on_saved(capture.path)
