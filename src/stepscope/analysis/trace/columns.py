"""Facts about every event that several analyses need, computed once per trace."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, U8, Mask
from stepscope.vocabulary.lookup import traits_by_type

# Enclosing kinds that are tracked, each with its bit in the column of `_enclosing_kinds`.
_BIT_OF: dict[EventKind, int] = {
    EventKind.INPUT_WAIT: 1,
    EventKind.BACKWARD: 2,
    EventKind.EXECUTOR: 4,
    EventKind.ANNOTATION: 8,
    EventKind.OP: 16,
}


def is_thread_event(trace: HostTrace) -> Mask:
    """Whether each event is on a host thread: bool of shape (events,)."""
    return trace.derived("on threads", lambda host: (host.lines.kind == LineKind.THREAD)[host.events.line])


def is_any_kind(kind: U8, kinds: Iterable[EventKind]) -> Mask:
    """Whether each event has one of `kinds`: bool of the shape of `kind`."""
    found: Mask | None = None
    for each in kinds:
        here: Mask = kind == int(each)
        found = here if found is None else np.logical_or(found, here, out=found)
    return np.zeros(kind.shape, np.bool_) if found is None else found


def events_of_kind(trace: HostTrace, kind: EventKind) -> I64:
    """The rows of all events of a kind, computed once per trace."""
    found: I64 = trace.derived(
        f"rows of {kind.name}", lambda host: np.flatnonzero(is_any_kind(host.events.kind, (kind,)))
    )
    return found


def is_call_with(trace: HostTrace, traits: IntFlag) -> Mask:
    """Whether each event is a Python call whose name has one of some traits: bool of shape (events,)."""
    types = trace.derived("types of Python calls", _python_types)
    if not len(types):
        return np.zeros(len(trace.events), np.bool_)
    found: Mask = (traits_by_type(trace, types, traits) != 0)[trace.events.type]
    return found & is_any_kind(trace.events.kind, (EventKind.PYTHON_CALL,))


def _python_types(trace: HostTrace) -> I64:
    """The types of Python calls, ascending."""
    is_python = np.zeros(len(trace.event_types), np.bool_)
    is_python[trace.events.type[events_of_kind(trace, EventKind.PYTHON_CALL)]] = True
    return np.flatnonzero(is_python)


def is_inside(trace: HostTrace, rows: I64, kind: EventKind) -> Mask:
    """Whether each event has the given kind or lies inside an event of it; `kind` is one of those in `_BIT_OF`."""
    found: Mask = (trace.derived("around", _enclosing_kinds)[rows] & np.uint8(_BIT_OF[kind])) != 0
    return found


def is_inside_another(trace: HostTrace, rows: I64, kind: EventKind) -> Mask:
    """Whether each event lies inside another event of the given kind; `kind` as in `is_inside`."""
    parent = forest(trace).parent[rows].astype(np.int64)
    found: Mask = (parent >= 0) & is_inside(trace, parent, kind)
    return found


def _enclosing_kinds(trace: HostTrace) -> U8:
    bits = np.zeros(256, np.uint8)
    for kind, bit in _BIT_OF.items():
        bits[kind] = bit
    out = np.empty(len(trace.events), np.uint8)
    kernels.nesting.around(trace.events.kind, forest(trace).parent, bits, out)
    return out
