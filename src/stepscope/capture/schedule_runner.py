"""Carries out a schedule: it is told where steps start and end, and starts and stops captures there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from stepscope.capture import cost, files, recorder, report
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import OwnThread
from stepscope.capture.program_end import END_PATIENCE_S
from stepscope.capture.running import Capture
from stepscope.capture.schedules import Action, Schedule, never
from stepscope.capture.tracers import ranges
from stepscope.errors import counted

Saved = Callable[[Path | str], object]
"""Is called with the profile's file, or with its address on another machine."""

_USUAL = (10, 15)
_PATIENCE_S = 10.0  # for the profiler of a capture that ended with the step before


class ScheduleRunner:
    """Captures the steps of a loop that a schedule names, and marks them.

    `begin` and `end` are called on the thread that runs the steps.  Between captures each costs a comparison or two and
    one reading of the clock: the times of those steps show what profiling costs the others.
    Captures start and stop between steps, so that no step takes longer, and files are written in the background.  Only
    a capture that starts right after another one waits for the profiler of that.

    Args:
        schedule: the action of each step, by its number.
        first: the number of the first step.
        on_stopped: called when a capture that will be saved has ended.
        on_saved: called with the path of each profile once it is written, on a separate thread.
        wanted: what the schedule records, as its user wrote it, such as `profile_batch='100,102'`; if the loop ends
            before that, it is said and left in the logdir.  Empty if nobody has to know.

    Attributes:
        number: the running step; between two steps, the next one.
        has_begun: the loop has run a step.
        marks: False if the loop marks its steps itself.
    """

    def __init__(
        self,
        logdir: recorder.LogDir,
        options: object,
        schedule: Schedule,
        first: int = 0,
        on_stopped: Callable[[], object] = lambda: None,
        on_saved: Saved = lambda path: None,
        wanted: str = "",
    ) -> None:
        self.number = self._first = first
        self.has_begun = False
        self._wanted = wanted
        self._has_recorded = False
        self.marks = True
        self._paths: list[Path | None] = []  # of each capture that has ended, in their order; None until it is written
        self._logdir = logdir
        self._options = ProfilerOptions.from_any(options)
        self._schedule = schedule
        self._on_stopped = on_stopped
        self._on_saved = on_saved
        self._writing: list[OwnThread] = []
        self._action = Action.NONE  # of the step that runs or ran last
        self._capture: Capture | None = None  # ours, while it runs
        self._open = False  # a step runs
        self._mark: ranges.Trace | None = None
        self._cut_mark: ranges.Trace | None = None  # of a step that the loop's end cut short
        self._began_ns = 0  # of a step that is not recorded

    @property
    def is_capturing(self) -> bool:
        """True while a capture of this loop runs."""
        return self._capture is not None

    def events_recorded(self) -> int:
        """About how many events the program will wait for when the capture ends; 0 if unknown."""
        return self._capture.events_recorded() if self._capture else 0

    @property
    def paths(self) -> tuple[Path, ...]:
        """The profiles of all captures that have ended, oldest first; waits until they are written."""
        self.wait()
        return tuple(path for path in self._paths if path is not None)

    def wait(self, seconds: float = END_PATIENCE_S) -> None:
        """Waits until the profiles of all captures that have ended are written, or have failed.

        Args:
            seconds: the most to wait for each.
        """
        for thread in self._writing:
            thread.join(seconds)

    def start_step(self) -> None:
        """Step `number` starts, unless it has started already."""
        if self._open:
            return
        self._open = self.has_begun = True
        with report.NeverRaise("following the schedule", self._options.strict):
            self._change_phase(self._ask_schedule())
            if self.is_capturing and self.marks:
                self._mark = ranges.Trace("train", step_num=self.number, _r=1, _found=1)
                self._mark.__enter__()
        if self.marks and not recorder.RECORDER.is_running():
            self._began_ns = time.perf_counter_ns()

    def _ask_schedule(self) -> Action:
        """The schedule's action for step `number`.  A schedule that fails is not asked again: it would fill the log."""
        try:
            return Action.from_any(self._schedule(self.number))
        except Exception:
            self._schedule = never
            self._change_phase(Action.NONE)
            raise

    def end_step(self) -> None:
        """Step `number` has ended, even if `begin` was not called for it."""
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)
        elif self._began_ns:
            cost.LENGTHS.note(time.perf_counter_ns() - self._began_ns, recording=False)
        elif self.marks and not self.is_capturing:
            cost.LENGTHS.note_unknown()
        self._open, self._began_ns = False, 0
        self.number += 1
        if self._capture is not None:
            self._capture.note_step()
        if self._action is Action.RECORD_AND_SAVE:
            self._change_phase(Action.NONE)

    def finish(self) -> None:
        """The loop has ended.  What was recorded is saved; a warm-up is discarded.

        An open step does not count: it holds the end of the loop, or an exception cut it short.  Therefore its mark is
        never ended, and every tracer but PyTorch's drops it.  Freeing it would end it, and the framework's profiler may
        still run on another thread: so it is kept until the next capture starts.
        """
        self._cut_mark, self._mark = self._mark, None
        self._open, self._began_ns = False, 0
        self._change_phase(Action.NONE)
        if self.has_begun and not self._has_recorded:
            self._say_not_reached(self.number - self._first)

    def _say_not_reached(self, steps: int) -> None:
        if self._wanted:
            reason = (
                f"{self._wanted} was not reached: the loop ended after {counted(steps, 'step')}; nothing was recorded"
            )
            files.leave_reason(self._logdir, reason, f"choose earlier steps{_suggest(steps)}, or train longer")

    def say_unused(self, what: str, hint: str) -> None:
        """Says that no loop ever called this, if it was to record anything."""
        if self._wanted and not self.has_begun:
            files.leave_reason(
                self._logdir, f"{what} was created, but no trainer called it; nothing was recorded", hint
            )

    def cancel(self) -> None:
        """Discards what the running capture has recorded."""
        mark, self._mark = self._mark, None
        self._open, self._began_ns = False, 0
        self._action = Action.NONE
        self._stop(save=False)
        del mark

    def _change_phase(self, wanted: Action) -> None:
        """Starts or stops the capture if the phase changes; a failed start is not repeated within its phase."""
        before, self._action = self._action, wanted
        if before.phase == wanted.phase:
            return
        before_this = self._stop(save=before.records)
        if wanted is not Action.NONE:
            if before_this is not None:
                before_this.released.wait(_PATIENCE_S)
            self._capture = self._start_capture()
            self._has_recorded |= wanted.records

    def _start_capture(self) -> Capture | None:
        self._cut_mark = None
        return recorder.RECORDER.start(self._logdir, self._options)

    def _stop(self, save: bool) -> Capture | None:
        """Ends the capture that runs; returns it."""
        capture, self._capture = self._capture, None
        if capture is None:
            return None
        # Nothing happens if the program has ended it, or if it has reached a limit.
        recorder.RECORDER.end_capture(capture, save=save, wait=False, strict=capture.options.strict)
        if save:
            self._on_stopped()
            self._await_in_background(capture)
        return capture

    def _await_in_background(self, capture: Capture) -> None:
        self._paths.append(None)
        place = len(self._paths) - 1
        writing = OwnThread(self._await_writing, (capture, place), "stepscope-saved", writes=True)
        try:
            writing.start()
        except RuntimeError:  # no thread can be started: at the program's end, or at the system's limit
            self._await_writing(capture, place)
        else:
            self._writing = [*(thread for thread in self._writing if thread.is_alive()), writing]

    def _await_writing(self, capture: Capture, place: int) -> None:
        self._paths[place] = capture.wait_for_path()
        with report.NeverRaise(f"reporting {capture.place}", strict=False):
            self._note_written(capture)

    def _note_written(self, capture: Capture) -> None:
        if capture.place is not None:
            self._on_saved(capture.place)


def _suggest(steps: int) -> str:
    """Batches that a loop of so many steps reaches, leaving out the first ones, which compile."""
    if steps >= _USUAL[1]:
        return f", such as profile_batch={_USUAL}"
    return f", such as profile_batch=(2, {steps})" if steps > 1 else ""
