"""Facts about every event that several analyses ask for, computed once per trace, and quick ways to ask for them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, U8, Mask

# What may stand around an event, each with its bit in the column of `_around`.
_BIT_OF: dict[EventKind, int] = {
    EventKind.INPUT_WAIT: 1,
    EventKind.BACKWARD: 2,
    EventKind.EXECUTOR: 4,
    EventKind.ANNOTATION: 8,
    EventKind.OP: 16,
}


def on_threads(trace: HostTrace) -> Mask:
    """Events on threads of the host: bool of shape (events,)."""
    return trace.derived("on threads", lambda host: (host.lines.kind == LineKind.THREAD)[host.events.line])


def of_kinds(kind: U8, kinds: Iterable[EventKind]) -> Mask:
    """Which of the events are of one of some kinds: bool of the shape of `kind`."""
    found = np.zeros(kind.shape, np.bool_)
    for each in kinds:
        found |= kind == each
    return found


def rows_of(trace: HostTrace, kind: EventKind) -> I64:
    """The rows of all events of a kind, found once per trace."""
    found: I64 = trace.derived(f"rows of {kind.name}", lambda host: np.flatnonzero(of_kinds(host.events.kind, (kind,))))
    return found


def inside(trace: HostTrace, rows: I64, kind: EventKind) -> Mask:
    """Which of the events are of a kind, or have one of it around them; it is one of those that `_BIT_OF` lists."""
    found: Mask = (trace.derived("around", _around)[rows] & np.uint8(_BIT_OF[kind])) != 0
    return found


def inside_another(trace: HostTrace, rows: I64, kind: EventKind) -> Mask:
    """Which of the events have one of a kind around them, themselves not counted; the kind as in `inside`."""
    parent = forest(trace).parent[rows].astype(np.int64)
    found: Mask = (parent >= 0) & inside(trace, parent, kind)
    return found


def _around(trace: HostTrace) -> U8:
    bits = np.zeros(256, np.uint8)
    for kind, bit in _BIT_OF.items():
        bits[kind] = bit
    out = np.empty(len(trace.events), np.uint8)
    kernels.nesting.around(trace.events.kind, forest(trace).parent, bits, out)
    return out
