"""Facts about every event that several analyses need, computed once per trace."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.event_kinds import rows_of_kinds
from stepscope.analysis.trace.grouping import forest, kind_table
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, U8, Mask, look_up
from stepscope.vocabulary.lookup import traits_by_type

# Enclosing kinds that are tracked, each with its bit in the column of `_enclosing_kinds`.
_BIT_OF: dict[EventKind, int] = {
    EventKind.INPUT_WAIT: 1,
    EventKind.BACKWARD: 2,
    EventKind.EXECUTOR: 4,
    EventKind.ANNOTATION: 8,
    EventKind.OP: 16,
}


_NO_TIMES = "no-times"  # the code of the problem


def is_thread_event(trace: HostTrace) -> Mask:
    """Whether each event is on a host thread: bool of shape (events,)."""
    return trace.derived("on threads", lambda host: look_up(host.lines.kind == LineKind.THREAD, host.events.line))


def holds_sums_only(trace: HostTrace) -> bool:
    """True if a recorder added up what ran, so that no time in the trace is one that was recorded."""
    return any(problem.code == _NO_TIMES for problem in trace.problems)


def is_any_kind(kind: U8, kinds: Iterable[EventKind]) -> Mask:
    """Whether each event has one of `kinds`: bool of the shape of `kind`."""
    return look_up(kind_table(kinds), kind)


def events_of_kind(trace: HostTrace, *kinds: EventKind) -> I64:
    """The rows of all events of one or several kinds, ascending."""
    return rows_of_kinds(trace, kinds)


def select_thread_events(trace: HostTrace, rows: I64) -> I64:
    """Those of some events that are on host threads."""
    found: I64 = rows[(trace.lines.kind == LineKind.THREAD)[trace.events.line[rows]]]
    return found


def is_call_with(trace: HostTrace, traits: IntFlag) -> Mask:
    """Whether each event is a Python call whose name has one of some traits: bool of shape (events,)."""
    types = trace.derived("types of Python calls", _python_types)
    if not len(types):
        return np.zeros(len(trace.events), np.bool_)
    found = look_up(traits_by_type(trace, types, traits) != 0, trace.events.type)
    found &= trace.events.kind == EventKind.PYTHON_CALL
    return found


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
