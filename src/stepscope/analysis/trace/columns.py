"""Facts about every event that several analyses ask for, computed once per trace, and quick ways to ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

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


def type_names(trace: HostTrace, types: NDArray[np.integer]) -> dict[int, str]:
    """The names of the event types that occur in a column of them, by row of the table of types."""
    present = np.flatnonzero(np.bincount(types, minlength=1))
    return dict(zip(present.tolist(), _names_of_types(trace, present), strict=True))


def _names_of_types(trace: HostTrace, present: I64) -> list[str]:
    known: dict[int, str] = trace.derived("type names", lambda _: {})
    rows = present.tolist()
    missing = [row for row in rows if row not in known]
    if missing:
        known.update(zip(missing, trace.strings.texts(trace.event_types.name[missing]), strict=True))
    return [known[row] for row in rows]


def named(trace: HostTrace, types: NDArray[np.integer], test: Callable[[str], object]) -> Mask:
    """Which events, given by their types, have a name that passes a test: bool of the shape of `types`."""
    present = np.flatnonzero(np.bincount(types, minlength=1))
    passed = np.fromiter(map(bool, map(test, _names_of_types(trace, present))), np.bool_, len(present))
    if not passed.any():
        return np.zeros(len(types), np.bool_)
    table = np.zeros(len(trace.event_types), np.bool_)
    table[present[passed]] = True
    found: Mask = table[types]
    return found


def named_each(trace: HostTrace, types: NDArray[np.integer], tests: Sequence[Callable[[str], object]]) -> list[Mask]:
    """The same for up to eight tests at once, which is quicker than one after the other."""
    present = np.flatnonzero(np.bincount(types, minlength=1))
    bits = np.zeros(len(trace.event_types), np.uint8)
    names = _names_of_types(trace, present)
    bits[present] = [sum(bool(test(name)) << at for at, test in enumerate(tests)) for name in names]
    of_event = bits[types]
    return [(of_event & np.uint8(1 << at)) != 0 for at in range(len(tests))]
