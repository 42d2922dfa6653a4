"""How long each device waits for input in each step."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import every_step
from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import COMPUTING, is_device_work
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass

_TAKES_INPUT = (EventKind.COPY_HOST_TO_DEVICE, EventKind.INFEED)


@dataclass(frozen=True)
class CoreWait:
    """One device, or the host if there is none, and its waiting time in ps in each step of the host."""

    core: str
    per_step_ps: list[int]


def core_waits(trace: HostTrace) -> list[CoreWait]:
    """The waiting time of every device that computed; of the host if none did.

    A device waits for input while the step waits for its next batch or data is copied to the device, and the device
    does nothing else.
    """
    work = np.flatnonzero(is_device_work(trace))
    kind, plane = trace.events.kind[work], trace.lines.plane[trace.events.line[work]]
    computing = np.bincount(plane[is_any_kind(kind, COMPUTING)])
    if not computing.any():
        account = every_step(trace)
        return [CoreWait("host", account.causes_ps()[:, Cause.INPUT].tolist() if account else [])]
    steps = steps_of(trace)
    waits = events_of_kind(trace, EventKind.INPUT_WAIT)
    waiting = spans_of(trace, waits[is_thread_event(trace)[waits] & (steps.label[waits] >= 0)])
    takes = is_any_kind(kind, _TAKES_INPUT)
    found = []
    for row in np.flatnonzero(computing).tolist():
        here = plane == row
        busy = spans_of(trace, work[here & ~takes])
        either = waiting | spans_of(trace, work[here])
        waited = either.overlap_ps(steps.start_ps, steps.until_ps) - busy.overlap_ps(steps.start_ps, steps.until_ps)
        found.append(CoreWait(device_name(trace, row), waited.tolist()))
    return found
