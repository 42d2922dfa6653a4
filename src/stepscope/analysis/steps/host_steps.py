"""The steps of one host as a value, and what every way to find them needs."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

import numpy as np

from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64, Mask
from stepscope.records import dataclass

COMPUTES = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.COLLECTIVE)

StepSource = Literal["markers", "inferred", "none"]

# A step at the capture's edge with less than this share of the usual device work was cut by the edge; the last of
# inferred steps, whose end nothing marks, also if it is this much shorter or longer than the others.
WHOLE_STEP_SHARE = 0.8


@dataclass(frozen=True)
class HostSteps:
    """The steps of one host, in order of time.

    Attributes:
        source: how they were found.
        how: the same in one sentence.
        confidence: 0 to 1 for inferred steps, None for others.
        number: int64 of shape (steps,), the step number of the marks, else 0, 1, 2, ...
        name: one name a step.
        start_ps, end_ps: int64 of shape (steps,).
        complete: bool of shape (steps,); False for a step cut by the capture's edge.
        label: int32 of shape (events,), the step that each event belongs to, or -1.
        numbered: True if the numbers are the program's own.
        line: the line that the marks are on, -1 if they are on none.
        backlog: int64 of shape (n,), device work in no step that was launched before the first mark.
    """

    source: StepSource
    how: str
    confidence: float | None
    number: I64
    name: tuple[str, ...]
    start_ps: I64
    end_ps: I64
    complete: Mask
    label: I32
    numbered: bool = False
    line: int = -1
    backlog: I64 = field(default_factory=lambda: np.empty(0, np.int64))


def backlog_end(trace: HostTrace, backlog: I64, own: I64) -> int:
    """When devices are done with what was launched before the first step, ps: at the latest when they begin with `own`,
    the work of that step; the smallest time if they have no work of either kind."""
    start, duration = trace.events.start_ps, trace.events.duration_ps
    if not len(backlog) or not len(own):
        return int(np.iinfo(np.int64).min)
    return int(min((start[backlog] + duration[backlog]).max(), start[own].min()))


def follow_device(trace: HostTrace, label: I32, device: Mask, backlog: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Moves step bounds to what the device does, or the threads that run its programs: they may lag behind the host.

    A step ends when its mark has ended and its device work is done; it begins when its mark begins, but not before
    the step before it has ended; the first not before the device is done with the backlog.  Where the host waits for
    the device these are the marks themselves.  XProf takes the first to the last device event of such a step instead
    and so loses the time in which the device waits for it.
    """
    events = np.flatnonzero(device & (label >= 0))
    if not len(events):
        return start, end
    start = np.append(np.maximum(start[:1], backlog_end(trace, backlog, events[label[events] == 0])), start[1:])
    done = np.maximum(start, end)
    np.maximum.at(done, label[events], trace.events.start_ps[events] + trace.events.duration_ps[events])
    end = np.maximum.accumulate(done)
    return np.maximum(start, np.append(start[:1], end[:-1])), end


def not_yet_run(label: I32, work: Mask, n_steps: int) -> Mask:
    """True for the last steps if the capture ended before their work had run: a loop that waits for no result is ahead
    of the device.  Every step before them has work; where some have none, having none is usual.  The last that has some
    counts among them, for nothing tells whether that is all of it."""
    late = np.zeros(n_steps, np.bool_)
    busy = np.unique(label[work & (label >= 0)])
    if 2 <= len(busy) == busy[-1] - busy[0] + 1 and busy[-1] < n_steps - 1:
        late[busy[-1] :] = True
    return late


def inside_none(trace: HostTrace, rows: I64, others: Mask) -> I64:
    """Those of the events that none of the other events encloses."""
    parent = forest(trace).parent
    above = parent[rows]
    while (going := (above >= 0) & ~others[above]).any():
        above = np.where(going, parent[above], above)
    free: I64 = rows[above < 0]
    return free


def on_fullest_line(trace: HostTrace, rows: I64) -> I64:
    """Those of the events that are on the line with most of them; at least one event."""
    line = trace.events.line[rows]
    there: I64 = rows[line == np.bincount(line).argmax()]
    return there
