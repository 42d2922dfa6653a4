"""How long each device waits for input in each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.grouping import is_device_work
from stepscope.analysis.hosts import breakdown_of
from stepscope.analysis.stepping import steps_of
from stepscope.model import EventKind, HostTrace, LineKind

I64 = NDArray[np.int64]

_TAKES_INPUT = (EventKind.COPY_HOST_TO_DEVICE, EventKind.INFEED)
_COMPUTES = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.COLLECTIVE, EventKind.GRAPH_LAUNCH)


@dataclass(frozen=True)
class CoreWait:
    """One device, or the host where there is none, and its waiting time in ps in each step of the host."""

    core: str
    per_step_ps: list[int]


def core_waits(trace: HostTrace) -> list[CoreWait]:
    """The waiting time of every device that computed; of the host if none did.

    A device waits for input while the step waits for its next batch, or data is copied to the device, and the device
    does nothing else.
    """
    device = is_device_work(trace)
    computes = device & np.isin(trace.events.kind, _COMPUTES)
    if not computes.any():
        return [CoreWait("host", breakdown_of(trace).categories_ps()["input"].tolist())]
    steps, kind = steps_of(trace), trace.events.kind
    plane = trace.lines.plane[trace.events.line]
    threads = (trace.lines.kind == LineKind.THREAD)[trace.events.line]
    waits = np.flatnonzero((kind == EventKind.INPUT_WAIT) & threads & (steps.label >= 0))
    takes = device & np.isin(kind, _TAKES_INPUT)
    found = []
    for row in np.unique(plane[computes]).tolist():
        here = device & (plane == row)
        busy = np.flatnonzero(here & ~takes)
        either = np.concatenate([waits, np.flatnonzero(here)])
        waiting = _covered(trace, either, steps.start_ps, steps.end_ps) - _covered(
            trace, busy, steps.start_ps, steps.end_ps
        )
        found.append(CoreWait(trace.plane_name(row), waiting.tolist()))
    return found


def _covered(trace: HostTrace, rows: I64, begin: I64, stop: I64) -> I64:
    """The part of each span `begin:stop` that the union of some events covers: int64 of shape (spans,)."""
    if not len(rows):
        return np.zeros(len(begin), np.int64)
    start = trace.events.start_ps[rows]
    order = np.argsort(start, kind="stable")
    start = start[order]
    reached = np.maximum.accumulate(start + trace.events.duration_ps[rows][order])
    first = np.append(True, start[1:] > reached[:-1])
    low, high = start[first], reached[np.append(first[1:], True)]
    before = np.append(0, np.cumsum(high - low))

    def until(time: I64) -> I64:
        at = np.searchsorted(low, time, side="right") - 1
        inside = np.clip(time - low[at], 0, (high - low)[at])
        return np.where(at >= 0, before[at] + inside, 0)

    covered: I64 = until(stop) - until(begin)
    return covered
