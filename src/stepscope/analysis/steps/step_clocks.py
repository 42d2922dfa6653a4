"""Two clocks of steps: the marks on the host, and the rows that a profiler drew for the steps on a device.

A device works behind its host, and a profiler may number its rows in another way than the program numbers its steps.
Work on the device belongs to both: to a row by its time, and to a step by the call that launched it.  So the work tells
which row is which step.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.host_steps import HostSteps
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, distinct, look_up, union
from stepscope.records import dataclass

_DIGITS, _MOST_DIGITS = "0123456789", 18
_SURE = 0.9  # share of a row's work that is of one step


@dataclass(frozen=True)
class StepClocks:
    """How the rows of a device relate to the steps of the host.

    Attributes:
        rows: how many rows were compared.
        matched: how many of them hold the work of one step, and of no other.
        shift: what to add to a step's number to get that of its row; None where it varies or one has no number.
        delay_ps: by how much a row starts after its step's mark, the median of the matched rows; None without any.
    """

    rows: int
    matched: int
    shift: int | None
    delay_ps: int | None

    def sentence(self) -> str:
        """The same for people."""
        if not self.matched:
            return "The rows of steps on the device do not fit the marks on the host; steps are those of the marks."
        text = self._numbers()
        if self.delay_ps:
            later = "after" if self.delay_ps > 0 else "before"
            text += f", and begins each step {abs(self.delay_ps) / 1e9:.3g} ms {later} its mark on the host"
        rest = self.rows - self.matched
        return f"{text}. {rest} of its {self.rows} rows hold work of several steps." if rest else f"{text}."

    def _numbers(self) -> str:
        if self.shift is None:
            return "The device numbers its steps in its own way"
        if self.shift == 0:
            return "The device numbers its steps as the marks do"
        return f"The device calls step {max(-self.shift, 0)} of the marks {max(self.shift, 0)}, and so on"


def step_clocks(trace: HostTrace) -> StepClocks | None:
    """Compares the rows of steps on devices with the marks on the host; None unless a trace has both."""
    return trace.derived("step clocks", _compare_clocks)


def _compare_clocks(trace: HostTrace) -> StepClocks | None:
    steps = steps_of(trace)
    if steps.source != "markers" or steps.line < 0:
        return None
    rows = _step_rows(trace, steps)
    if not len(rows):
        return None
    step = _match_steps(trace, steps, rows)
    known = step >= 0
    start = trace.events.start_ps
    delay = start[rows[known]] - steps.start_ps[step[known]]
    shifts = _shifts(trace, steps, rows[known], step[known])
    return StepClocks(
        rows=len(rows),
        matched=int(known.sum()),
        shift=shifts.pop() if len(shifts) == 1 else None,
        delay_ps=int(np.median(delay)) if len(delay) else None,
    )


def _step_rows(trace: HostTrace, steps: HostSteps) -> I64:
    """Rows of steps that the profiler drew on devices, or laid onto their streams under the names of the marks."""
    events = trace.events
    drawn = events.kind == EventKind.DEVICE_STEP
    derived = np.flatnonzero(
        look_up(trace.lines.kind == LineKind.DERIVED, events.line) & (events.kind == EventKind.SCOPE)
    )
    wanted = set(steps.name)
    types = {kind for kind in distinct(events.type[derived]).tolist() if _type_name(trace, kind) in wanted}
    laid = derived[np.isin(events.type[derived], list(types))]
    rows = union(np.flatnonzero(drawn), laid)
    return rows[events.duration_ps[rows] > 0]


def _type_name(trace: HostTrace, kind: int) -> str:
    return trace.strings[trace.event_types.name[kind]]


def _match_steps(trace: HostTrace, steps: HostSteps, rows: I64) -> I64:
    """The step to which nearly all work inside each row belongs: int64 of shape (rows,), -1 without one."""
    events, plane = trace.events, look_up(trace.lines.plane, trace.events.line)
    work = np.flatnonzero(is_device_work(trace) & (steps.label >= 0))
    work = work[np.argsort(events.start_ps[work], kind="stable")]
    found = np.full(len(rows), -1, np.int64)
    for device in distinct(plane[rows]).tolist():
        own = work[plane[work] == device]
        start, label, length = events.start_ps[own], steps.label[own], events.duration_ps[own]
        for at in np.flatnonzero(plane[rows] == device).tolist():
            begin = int(events.start_ps[rows[at]])
            low, high = np.searchsorted(start, [begin, begin + int(events.duration_ps[rows[at]])])
            found[at] = _main_step(label[low:high], length[low:high])
    return found


def _main_step(label: I64, length: I64) -> int:
    if not len(label):
        return -1
    first = int(label.min())
    time = np.bincount(label - first, length)
    return first + int(time.argmax()) if time.max() >= _SURE * length.sum() else -1


def _shifts(trace: HostTrace, steps: HostSteps, rows: I64, step: I64) -> set[int | None]:
    """What the numbers of rows and of their steps differ by; None for a row without a number."""
    if not steps.numbered:
        return {None}
    found = [_number_at_end(trace.name_of(row)) for row in rows.tolist()]
    numbers = steps.number[step].tolist()
    return {None if each is None else each - number for each, number in zip(found, numbers, strict=True)}


def _number_at_end(name: str) -> int | None:
    digits = name[len(name.rstrip(_DIGITS)) :][-_MOST_DIGITS:]
    return int(digits) if digits else None
