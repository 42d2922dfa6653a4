"""Which events are the collectives of a host.

On a host without a device it is the communication library's own record that counts, not the call that only hands the
work to its thread.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind, select_thread_events
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.vocabulary.collectives import is_library_call

K = EventKind


def collective_rows(trace: HostTrace) -> I64:
    """The collective events: those on the devices, else the communication library's records on the host."""
    device = events_of_kind(trace, K.COLLECTIVE)
    device = device[is_device_work(trace)[device]]
    if len(device) or trace.device_planes():
        return device
    calls = select_thread_events(trace, events_of_kind(trace, K.COLLECTIVE_CALL))
    types = trace.events.type[calls]
    by_library = [at for at in distinct(types).tolist() if is_library_call(trace.strings[trace.event_types.name[at]])]
    return calls[np.isin(types, by_library)] if by_library else calls[~_inside_call(trace, calls)]


def _inside_call(trace: HostTrace, calls: I64) -> Mask:
    parent = forest(trace).parent[calls]
    inner: Mask = (parent >= 0) & (trace.events.kind[np.maximum(parent, 0)] == K.COLLECTIVE_CALL)
    return inner
