"""Short windows of the framework's profiler, at the boundaries of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable

from stepscope.capture import files, recorder
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.report import NeverRaise
from stepscope.capture.running import Capture
from stepscope.capture.schedule_runner import ScheduleRunner
from stepscope.capture.schedules import Action
from stepscope.capture.watching.keep import trigger_facts, trigger_note
from stepscope.capture.watching.steps import StepRecord
from stepscope.capture.watching.triggers import Mark
from stepscope.records import dataclass

_LONGEST_S = 120.0  # of a window, if steps no longer come
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class Plan:
    """A window that is to be recorded.

    Attributes:
        mark: why.
        run: the name of its session.
        first_step: it starts with this step, or with the next one if that is over.
    """

    mark: Mark
    run: str
    first_step: int


class Windows(ScheduleRunner):
    """Records planned windows, one at a time.  `follow` is called on the thread of the steps.

    A capture by the program itself comes first: a window that is open then gives way, and one that is planned waits.

    Args:
        logdir: where they go.
        steps: how many each of them records.
        on_done: called with the plan and the capture of a window that has ended, once its files are written or are
            known not to be, on a separate thread.
    """

    def __init__(self, logdir: str, steps: int, on_done: Callable[[Plan, Capture], object]) -> None:
        options = ProfilerOptions(max_seconds=_LONGEST_S, max_bytes=_MOST_BYTES)
        super().__init__(logdir, options, self._choose_action, on_stopped=self._forget_plan)
        self._on_done = on_done
        self._steps = steps
        self._plan: Plan | None = None  # until the window has ended
        self._plans: dict[Capture, Plan] = {}
        self._last = self._extra_ns = 0

    @property
    def is_free(self) -> bool:
        """Whether no window is planned or open."""
        return self._plan is None

    def plan(self, plan: Plan) -> None:
        """Plans a window, unless one is planned or open already."""
        self._plan = self._plan or plan

    def cancel(self) -> None:
        """Forgets the planned window, and ends the open one without saving it."""
        self._forget_plan()
        super().cancel()

    def take_cost_s(self) -> float:
        """By how much the steps of the last window, and those until its files were written, were longer; forgets it."""
        cost_ns, self._extra_ns = self._extra_ns, 0
        return cost_ns / 1e9

    def follow(self, step: StepRecord, is_marked: bool) -> None:
        """A step has ended, and the next one starts.  `is_marked`: the program marks its steps itself."""
        if step.was_profiled and step.usual_ns:
            self._extra_ns += step.length_ns - step.usual_ns
        if self._plan is None:
            return
        with NeverRaise("recording a window of the watch", strict=False):
            self.marks = not is_marked
            self.end_step()
            self.number = step.number + 1
            self.start_step()

    def _choose_action(self, number: int) -> Action:
        if self._plan is None:
            return Action.NONE
        if self._capture is None:
            if number < self._plan.first_step or recorder.RECORDER.is_running():
                return Action.NONE
            self._last = number + self._steps - 1
        elif self._capture.ended_early or self._capture.gave_way:
            return Action.NONE
        return Action.RECORD_AND_SAVE if number >= self._last else Action.RECORD

    def _start_capture(self) -> Capture | None:
        plan = self._plan
        assert plan is not None, "nothing is recorded without one"
        place = functools.partial(files.open_target, self._logdir, plan.run)
        capture = recorder.RECORDER.start_capture(place, self._options, yields=True)
        if capture is None:
            self._forget_plan()
            return None
        capture.own_facts = trigger_facts(plan.mark)
        capture.notes.append(trigger_note(plan.mark))
        self._plans[capture] = plan
        self._extra_ns = 0  # starting counts with the next step
        return capture

    def _forget_plan(self) -> None:
        self._plan = None

    def _note_written(self, capture: Capture) -> None:
        self._on_done(self._plans.pop(capture), capture)
