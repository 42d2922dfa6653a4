"""Whether a device takes part, though nothing of what it does may be recorded."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.model import EventKind, HostTrace, PlaneKind, stat_names
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.vocabulary.lines import is_any_device
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait, OpTrait

LONGEST_DISPATCH_PS = 300_000_000  # dispatching an op takes less; one that takes longer computes, or waits
_OPS = (EventKind.OP, EventKind.BACKWARD)
_READS = CallTrait.READS_VALUE | CallTrait.WAITS


def is_device_plane(trace: HostTrace, plane: int) -> bool:
    """Whether a plane is that of a device of any make: one for rows of a tool is called CUSTOM."""
    kind = PlaneKind(int(trace.planes.kind[plane]))
    return is_any_device(trace.plane_name(plane)) if kind == PlaneKind.CUSTOM_DEVICE else kind.is_device


def is_device_told_of(trace: HostTrace) -> bool:
    """Whether a recording says that a device takes part: calls launch work, ops call a library which computes on GPUs
    only, or a device is listed or has a place for its rows and the ops do not compute themselves."""
    return trace.derived("device is told of", _is_told_of)


def _is_told_of(trace: HostTrace) -> bool:
    calls = events_of_kind(trace, EventKind.RUNTIME_CALL)
    launches = CallTrait.LAUNCHES_KERNEL | CallTrait.LAUNCHES_GRAPH
    if has_trait(trace, trace.events.type[calls], launches).any():
        return True
    ops = np.flatnonzero(is_any_kind(trace.events.kind, _OPS))
    if has_trait(trace, trace.events.type[ops], OpTrait.OF_DEVICE_LIBRARY).any():
        return True
    has_place = any(is_device_plane(trace, plane) for plane in range(len(trace.planes)))
    return (bool(listed_device(trace)) or has_place) and not _do_ops_compute(trace)


def listed_device(trace: HostTrace) -> str:
    """The name of a device that the recorder found on the machine; empty without one."""
    facts = (trace.stats_of_plane(plane) for plane in np.flatnonzero(trace.planes.kind == PlaneKind.HOST).tolist())
    return next((str(found[name]) for found in facts for name in stat_names.DEVICE_LISTED if found.get(name)), "")


def unused_device(trace: HostTrace) -> str:
    """The same of one that the program does not use."""
    return "" if is_device_work(trace).any() or is_device_told_of(trace) else listed_device(trace)


def _do_ops_compute(trace: HostTrace) -> bool:
    """Whether most time of ops, each without those in it, is in some that take longer than starting them, and do not
    wait: the host computes, on a machine whose devices the program does not use."""
    own_ps, dispatch, waits = split_ops(trace)[1:]
    return 2 * int(own_ps[~dispatch & ~waits].sum()) > int(own_ps.sum())


def split_ops(trace: HostTrace) -> tuple[I64, I64, Mask, Mask]:
    """The ops of threads, the time of each without those in it, in ps, which take no longer than starting them, and
    which of the others wait for a device: the rest computes on the host."""
    ops = np.flatnonzero(is_any_kind(trace.events.kind, _OPS) & is_thread_event(trace))
    inner_ps, parent = np.zeros(len(trace.events), np.int64), forest(trace).parent[ops]
    np.add.at(inner_ps, parent[parent >= 0], trace.events.duration_ps[ops][parent >= 0])
    own_ps, types = np.maximum(trace.events.duration_ps[ops] - inner_ps[ops], 0), trace.events.type[ops]
    waits = has_trait(trace, types, CallTrait.READS_VALUE) | has_trait(trace, types, OpTrait.COPIES_AND_WAITS)
    dispatch = own_ps < LONGEST_DISPATCH_PS
    return ops, own_ps, dispatch, waits & ~dispatch


def calls_that_wait(trace: HostTrace) -> I64:
    """Calls after which a device has done what was started before, by what they wait for or read: rows of events,
    ascending."""
    threads = is_thread_event(trace)
    rows = np.flatnonzero(is_any_kind(trace.events.kind, (*_OPS, EventKind.PYTHON_CALL)) & threads)
    rows = rows[has_trait(trace, trace.events.type[rows], _READS)]
    return distinct(np.concatenate([blocking_calls(trace), rows]))


def is_device_silent(trace: HostTrace) -> bool:
    """Whether a device takes part of which no work was recorded."""
    return not is_device_work(trace).any() and is_device_told_of(trace)
