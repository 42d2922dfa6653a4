"""Puts the events of a framework's profiler on the monotonic clock, when the system's clock was set during a capture.

Stepscope's own tracers read the monotonic clock; frameworks' profilers read the system's.  If that jumps, a step of
theirs seems to last an hour, or all seem to last a thousandth.  Both record the marks of the steps, and each mark tells
which moments of the two clocks belong together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.model import HostTrace
    from stepscope.model.arrays import F64

_LEAST_NS = 100_000_000  # a clock that is slewed differs by up to 0.05 % of the time
_SLEWED = 0.001
_ALL_OF_IT = 0.9
_FEWEST_MARKS = 2
_NUMBER = re.compile(r"(\d+)$")
_PS = 1000

Marks = dict[int, tuple[int, int]]
"""The start and the end of each step, in ps, by its number."""


def measure_jump_ns(clock_ns: int, unix_ns: int) -> int:
    """By how much the system's clock was set, if it was; 0 for differences that adjusting its rate makes.

    Args:
        clock_ns, unix_ns: how far the monotonic clock and the system's clock have moved.
    """
    jump_ns = unix_ns - clock_ns
    return jump_ns if abs(jump_ns) > max(_LEAST_NS, round(_SLEWED * clock_ns)) else 0


def describe_jump(jump_ns: int, settled: bool | None) -> str:
    """A sentence for the reader of the profile.

    Args:
        settled: whether the framework's events are on the monotonic clock now; None if there are none.
    """
    way = "forward" if jump_ns > 0 else "back"
    text = f"the system's clock was set {way} by {abs(jump_ns) / 1e9:,.1f} s during this capture"
    if settled is None:
        return f"{text}; steps and events are on the monotonic clock"
    if settled:
        return f"{text}; the framework's events were put on the monotonic clock, by the marks of the steps"
    return f"{text}, and there are too few step marks to correct the framework's times: do not rely on them"


def settle_events(content: bytes, own: HostTrace) -> bytes | None:
    """The framework's profile with its events on the clock of our own; None if the marks do not allow that.

    Args:
        content: the framework's profile, as XSpace.
        own: what Stepscope recorded; its times count from the start of the framework's profile.
    """
    import numpy as np

    from stepscope.formats.xspace.reader import read
    from stepscope.formats.xspace.writer import write
    from stepscope.model.taking import take_events

    trace = read(content, "", "")
    theirs, ours = find_marks(trace), find_marks(own)
    both = sorted(theirs.keys() & ours.keys(), key=lambda number: theirs[number])
    if len(both) < _FEWEST_MARKS:
        return None
    moments = np.array([theirs[number] for number in both], np.float64).reshape(-1)
    settled = np.array([ours[number] for number in both], np.float64).reshape(-1)
    if (np.diff(moments) < 0).any() or (np.diff(settled) < 0).any():  # set back into the time of the capture
        return None

    moments, settled = _split_jump(moments, settled)

    def place(times: F64) -> F64:
        inside = np.interp(times, moments, settled)
        inside = np.where(times < moments[0], settled[0] - (moments[0] - times), inside)
        return np.where(times > moments[-1], settled[-1] + (times - moments[-1]), inside)

    start = place(trace.events.start_ps.astype(np.float64))
    end = place((trace.events.start_ps + trace.events.duration_ps).astype(np.float64))
    start_ps = np.rint(start).astype(np.int64)
    duration_ps = np.maximum(np.rint(end).astype(np.int64) - start_ps, 0)
    return write(take_events(trace, np.arange(len(start_ps)), start_ps, duration_ps)[0])


def _split_jump(moments: F64, settled: F64) -> tuple[F64, F64]:
    """Adds two points where one stretch between marks holds the whole jump: what is near its start counts from there,
    and what is near its end from the end.  Otherwise times between marks are stretched evenly."""
    import numpy as np

    longer = np.diff(moments) - np.diff(settled)
    at = int(longer.argmax())
    length = float(settled[at + 1] - settled[at])
    if longer[at] < _LEAST_NS * _PS or longer[at] < _ALL_OF_IT * longer.sum() or longer[at] < length:
        return moments, settled
    between = np.array([moments[at] + length, moments[at + 1] - length])
    places = np.array([settled[at + 1], settled[at]])
    return np.insert(moments, at + 1, between), np.insert(settled, at + 1, places)


def find_marks(trace: HostTrace) -> Marks:
    """The step marks of a trace's host, each number once: by its stat, or by the end of its name as PyTorch writes."""
    import numpy as np

    from stepscope.model import EventKind, PlaneKind

    events = trace.events
    rows = np.flatnonzero(events.kind == EventKind.STEP_MARK)
    rows = rows[trace.planes.kind[trace.lines.plane[events.line[rows]]] == PlaneKind.HOST]
    marks: Marks = {}
    for row in rows[np.argsort(events.start_ps[rows], kind="stable")].tolist():
        stat = trace.stats_of_event(row).get("step_num")
        found = _NUMBER.search(trace.name_of(row))
        number = stat if isinstance(stat, int) else int(found[1]) if found else None
        if number is not None:
            start = int(events.start_ps[row])
            marks.setdefault(number, (start, start + int(events.duration_ps[row])))
    return marks
