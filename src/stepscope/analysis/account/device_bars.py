"""What each device does during the step that is accounted for, and what it waits for while it does nothing.

The account follows what the step waits for, so that work beside it is in none of its causes; this is the other view:
all of a device's own work by kind, and the account's causes only for the time that the device idles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.account.causes import Cause, causes_of_work
from stepscope.analysis.account.devices import busy_by_device, work_of_device
from stepscope.analysis.account.pieces import Pieces
from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import U8
from stepscope.records import dataclass

# While a device does several things at once, it computes, else it communicates.
_FIRST = (Cause.DEVICE_COMPUTE, Cause.COMMUNICATION)
_ORDER = (*_FIRST, *(cause for cause in Cause if cause not in _FIRST))
_NOTHING = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class DeviceBar:
    """A device during one step.

    Attributes:
        device: `GPU:0`; busy_ps: how long it works.
        causes_ps: what it does, and while it idles what is waited for, by name of cause; they add up to the step.
    """

    device: str
    busy_ps: int
    causes_ps: dict[str, int]


def spans_by_cause(
    trace: HostTrace, plane: int, pieces: Pieces | None, cause: U8 | None, within: Spans | None = None
) -> tuple[Spans, ...]:
    """When each cause holds on a device, in the order of Cause; no two overlap.

    Args:
        pieces, cause: of the steps, which say what is waited for while the device idles; None without steps.
        within: only then; None for the whole recording.
    """
    busy, found = busy_by_device(trace).get(plane, _NOTHING), [_NOTHING] * len(Cause)
    rows, counted = work_of_device(trace, plane), _NOTHING
    if within is not None:
        busy, begin = busy & within, trace.events.start_ps[rows]
        rows = rows[within.touches(begin, begin + trace.events.duration_ps[rows])]
    if pieces is not None and cause is not None:
        for each in Cause:
            here = cause == each
            found[each] = Spans.union(pieces.start_ps[here], pieces.end_ps[here]) - busy
    causes = causes_of_work(trace)[trace.events.kind[rows]]
    for each in _ORDER:
        own = spans_of(trace, rows[causes == int(each)])
        own = (own if within is None else own & within) - counted
        found[each], counted = found[each] | own, counted | own
    return tuple(found)


def device_bars(trace: HostTrace, planes: Sequence[int], pieces: Pieces, cause: U8) -> tuple[DeviceBar, ...]:
    """Each of some devices during the pieces of one step, in the order of the planes."""
    if not len(pieces):
        return ()
    step = Spans(pieces.start_ps.min(keepdims=True), pieces.end_ps.max(keepdims=True))
    bars = []
    for plane in planes:
        parts = spans_by_cause(trace, plane, pieces, cause, step)
        spent = {each.name.lower(): parts[each].total for each in Cause if parts[each].total}
        bars.append(DeviceBar(device_name(trace, plane), (busy_by_device(trace)[plane] & step).total, spent))
    return tuple(bars)
