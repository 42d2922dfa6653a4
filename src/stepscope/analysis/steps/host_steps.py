"""The steps of one host as a value, and helpers shared by the ways to find them."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

import numpy as np

from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.serving import Batch

COMPUTES = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.COLLECTIVE)

StepSource = Literal["markers", "inferred", "none"]

# A step at the edge of the capture with less than this share of the usual device work is cut.  The last inferred step,
# whose end is unmarked, also counts as cut if its length differs this much from the others.
WHOLE_STEP_SHARE = 0.8


@dataclass(frozen=True)
class HostSteps:
    """The steps of one host, in order of time.

    Attributes:
        source: how they were found.
        how: the same in one sentence.
        confidence: 0 to 1 for inferred steps, None for others.
        number: int64 of shape (steps,), the step number of the marks, else 0, 1, 2, ...
        name: one name per step.
        start_ps, end_ps: int64 of shape (steps,).
        complete: bool of shape (steps,), False for a step cut by the edge of the capture.
        label: int32 of shape (events,), the step that each event belongs to, or -1.
        numbered: the numbers are the program's own.
        line: the line with the marks, -1 without one.
        backlog: int64 of shape (n,), device work outside all steps that was launched before the first mark.
        batch: what each step of a model server works on, as its mark says; empty where no mark says it.
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
    batch: tuple[Batch | None, ...] = ()


def backlog_end(trace: HostTrace, backlog: I64, own: I64) -> int:
    """When devices have finished the work launched before the first step, ps.

    At the latest when they start `own`, the work of that step.  The smallest possible time if either kind of work is
    missing.
    """
    start, duration = trace.events.start_ps, trace.events.duration_ps
    if not len(backlog) or not len(own):
        return int(np.iinfo(np.int64).min)
    return int(min((start[backlog] + duration[backlog]).max(), start[own].min()))


def follow_device(trace: HostTrace, label: I32, device: Mask, backlog: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Moves step bounds to follow the device, or the threads that run its programs: they may lag behind the host.

    A step ends when its mark has ended and its device work is finished.  It starts when its mark starts, but not before
    the previous step has ended; the first step not before the device has finished the backlog.  If the host waits for
    the device, these are the marks themselves.  XProf instead takes the first to the last device event of a step, and
    so loses the time in which the device waits.
    """
    events = np.flatnonzero(device & (label >= 0))
    if not len(events):
        return start, end
    start = np.append(np.maximum(start[:1], backlog_end(trace, backlog, events[label[events] == 0])), start[1:])
    done = np.maximum(start, end)
    np.maximum.at(done, label[events], trace.events.start_ps[events] + trace.events.duration_ps[events])
    end = np.maximum.accumulate(done)
    return np.maximum(start, np.append(start[:1], end[:-1])), end


def unfinished_steps(label: I32, work: Mask, n_steps: int) -> Mask:
    """Which last steps had not finished when the capture ended: bool of shape (steps,).

    A loop that waits for no result runs ahead of the device, so its last steps have no work yet.  The last step with
    work is unfinished too, since more of it may be missing.  If earlier steps lack work as well, nothing is concluded.
    """
    late = np.zeros(n_steps, np.bool_)
    busy = distinct(label[work & (label >= 0)])
    if 2 <= len(busy) == busy[-1] - busy[0] + 1 and busy[-1] < n_steps - 1:
        late[busy[-1] :] = True
    return late


def drop_enclosed(trace: HostTrace, rows: I64, others: Mask) -> I64:
    """The events that none of `others` encloses."""
    parent = forest(trace).parent
    above = parent[rows]
    while (going := (above >= 0) & ~others[above]).any():
        above = np.where(going, parent[above], above)
    free: I64 = rows[above < 0]
    return free


def keep_fullest_line(trace: HostTrace, rows: I64) -> I64:
    """The events on the line that has most of them; `rows` holds at least one."""
    line = trace.events.line[rows]
    there: I64 = rows[line == np.bincount(line).argmax()]
    return there
