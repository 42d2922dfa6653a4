"""Links the work of a device to its launches by their order, where the recording has no ids that link them.

    host     |call|call|call|                    queues work in order: the first call launched the first kernel, ...
    gpu        |kernel---|kernel---|kernel---|

That says which call launched which work only if every call has its work in the recording, and no work starts before its
call.
"""

from __future__ import annotations

import numpy as np

from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import I32, I64, Mask, look_up
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind

_LAUNCHED = (K.KERNEL, K.COLLECTIVE)
_IN_TIME = 0.99  # of the work starts after its call: clocks of devices are a little off


def link_by_order(trace: HostTrace, cause: I32, device: Mask) -> None:
    """Links kernels to launches in place, where none of the kernels has a link and there are as many launches.

    Args:
        cause: int32 of shape (events,), the event on another line that made this one happen, or -1.
        device: bool of shape (events,), which events are measured work of devices.
    """
    events = trace.events
    work = np.flatnonzero(device & np.isin(events.kind, _LAUNCHED))
    if not len(work) or (cause[work] >= 0).any():
        return
    if (trace.stat_ints(stat_names.CORRELATION_ID, 0, rows=work) > 0).any():  # the call is named, but not recorded
        return
    calls = np.flatnonzero((events.kind == K.RUNTIME_CALL) & look_up(trace.lines.kind == LineKind.THREAD, events.line))
    calls = calls[has_trait(trace, events.type[calls], CallTrait.LAUNCHES_KERNEL)] if len(calls) else calls
    if len(calls) != len(work):
        return
    calls, work = _sort_by_start(trace, calls), _sort_by_start(trace, work)
    if np.mean(events.start_ps[work] >= events.start_ps[calls]) >= _IN_TIME:
        cause[work] = calls


def _sort_by_start(trace: HostTrace, rows: I64) -> I64:
    ordered: I64 = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    return ordered
