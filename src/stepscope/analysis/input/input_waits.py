"""How long each device waits for input in each step."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.steps.session_steps import breakdown_of
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import COMPUTING, is_device_work
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, look_up
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
    device = is_device_work(trace)
    computes = device & is_any_kind(trace.events.kind, COMPUTING)
    if not computes.any():
        return [CoreWait("host", breakdown_of(trace).categories_ps()["input"].tolist())]
    steps, kind = steps_of(trace), trace.events.kind
    plane = look_up(trace.lines.plane, trace.events.line)
    threads = is_thread_event(trace)
    waits = np.flatnonzero((kind == EventKind.INPUT_WAIT) & threads & (steps.label >= 0))
    takes = device & is_any_kind(kind, _TAKES_INPUT)
    found = []
    for row in np.unique(plane[computes]).tolist():
        here = device & (plane == row)
        busy = np.flatnonzero(here & ~takes)
        either = np.concatenate([waits, np.flatnonzero(here)])
        waiting = _covered_by_step(trace, either, steps) - _covered_by_step(trace, busy, steps)
        found.append(CoreWait(device_name(trace, row), waiting.tolist()))
    return found


def _covered_by_step(trace: HostTrace, rows: I64, steps: HostSteps) -> I64:
    """Time of each step covered by at least one of the events: int64 of shape (steps,)."""
    return spans_of(trace, rows).overlap_ps(steps.start_ps, steps.end_ps)
