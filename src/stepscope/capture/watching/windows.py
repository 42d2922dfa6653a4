"""Short windows of the framework's profiler, at the boundaries of steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from stepscope.capture import files, ranges, recorder
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.report import Wall
from stepscope.capture.running import Capture
from stepscope.capture.watching.keep import trigger_facts, trigger_note
from stepscope.capture.watching.marks import Mark
from stepscope.capture.watching.steps import StepRecord
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
        steps: how many it records.
    """

    mark: Mark
    run: str
    first_step: int
    steps: int


Done = Callable[[Plan, Capture], object]


class FrameworkWindows:
    """Records planned windows, one at a time.  `follow` is called on the thread of the steps.

    A capture by the program itself comes first: a window that is open then gives way, and one that is planned waits.

    Args:
        logdir: where they go.
        marks_steps: whether the window has to mark the steps, because the program does not.
        on_done: called with the plan and the capture when the window has ended; its files are written later.
    """

    def __init__(self, logdir: str, on_done: Done) -> None:
        self._logdir = logdir
        self._on_done = on_done
        self._plan: Plan | None = None
        self._open: tuple[Plan, Capture] | None = None
        self._left = 0
        self._mark: ranges.Trace | None = None
        self._extra_ns = 0

    @property
    def is_free(self) -> bool:
        """Whether no window is planned or open."""
        return self._plan is None and self._open is None

    def plan(self, plan: Plan) -> bool:
        """Plans a window; False if one is planned or open already."""
        if not self.is_free:
            return False
        self._plan = plan
        return True

    def cancel(self) -> None:
        """Forgets the planned window, and ends the open one without saving it."""
        self._plan = None
        opened, self._open = self._open, None
        if opened is not None:
            recorder.RECORDER.end(opened[1], save=False)

    def take_cost_s(self) -> float:
        """By how much the steps of the last window, and those until its files were written, were longer; forgets it."""
        cost_ns, self._extra_ns = self._extra_ns, 0
        return cost_ns / 1e9

    def follow(self, step: StepRecord, is_marked: bool) -> None:
        """A step has ended, and the next one starts."""
        if self._plan is None and self._open is None and not step.was_profiled:
            return
        if step.was_profiled and step.usual_ns:
            self._extra_ns += step.length_ns - step.usual_ns
        if self._plan is None and self._open is None:
            return
        with Wall("recording a window of the watch", strict=False):
            if self._open is not None:
                self._go_on(step)
            elif (
                self._plan is not None
                and step.number + 1 >= self._plan.first_step
                and not recorder.RECORDER.is_running()
            ):
                self._start(self._plan, is_marked)
            if self._open is not None and not is_marked:
                self._mark_next(step.number + 1)

    def _start(self, plan: Plan, is_marked: bool) -> None:
        self._plan = None
        options = ProfilerOptions(max_seconds=_LONGEST_S, max_bytes=_MOST_BYTES)
        capture = recorder.RECORDER.begin(lambda: files.open_target(self._logdir, plan.run), options)
        if capture is None:
            return
        capture.yields = True
        capture.own_facts = trigger_facts(plan.mark)
        capture.notes.append(trigger_note(plan.mark))
        self._open, self._left = (plan, capture), plan.steps
        self._extra_ns = 0  # starting counts with the next step

    def _go_on(self, step: StepRecord) -> None:
        self._end_mark()
        self._left -= 1
        assert self._open is not None
        if self._left > 0 and not self._open[1].ended_early and not self._open[1].gave_way:
            return
        plan, capture = self._open
        self._open = None
        recorder.RECORDER.end(capture, wait=False)
        self._on_done(plan, capture)

    def _mark_next(self, number: int) -> None:
        self._mark = ranges.Trace("train", step_num=number, _r=1)
        self._mark.__enter__()

    def _end_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            with suppress(Exception):
                mark.__exit__(None, None, None)
