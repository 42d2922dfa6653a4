"""The events of a selection, which is a window of time on some tracks: summed by name, op or track."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stepscope import kernels
from stepscope.analysis.timeline.index import is_drawn
from stepscope.analysis.timeline.tracks import all_groups, groups_of
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, Mask, look_up
from stepscope.records import dataclass

_OPS = (EventKind.OP, EventKind.BACKWARD, EventKind.COLLECTIVE_CALL)
_FRAMES = (EventKind.STEP_MARK, EventKind.DEVICE_STEP, EventKind.SCOPE)
_NO_OP = "(no op)"


@dataclass(frozen=True)
class NameRow:
    """All events of one name, op or track in a selection.  Times are in ps and count only what lies inside the window.

    Attributes:
        name: the events' name, or that of their op or track.
        type: the first event type of that name; the row of the track's line; -1 for an op.
        events: their number.
        total_ps: their time; `self_ps`: their time without that of the events directly inside them.
    """

    name: str
    type: int
    events: int
    total_ps: int
    self_ps: int


@dataclass(frozen=True)
class SelectionSum:
    """A selection, summed by name.

    Attributes:
        events: the number of events that overlap it; `names`: the number of their names.
        total_ps, self_ps: sums over all events.
        rows: the names with most self time, at most as many as requested.
        rest: the sum of all others; None if there are none.
    """

    events: int
    names: int
    total_ps: int
    self_ps: int
    rows: tuple[NameRow, ...]
    rest: NameRow | None


@dataclass(frozen=True)
class _Keys:
    """By what events are summed: int32 of shape (events,), the number of each one's name; and name and type of each."""

    of_event: I32
    names: Sequence[str]
    types: Sequence[int]


def sum_selection(
    trace: HostTrace, begin_ps: int, end_ps: int, lines: Sequence[int], by: str = "name", most: int = 500
) -> SelectionSum:
    """Sums the events of some lines in a window of time.

    Args:
        by: "name", "op" (that of device work, else the innermost op around) or "track".

    Raises:
        UsageError: the window is empty, or nothing is summed by that.
    """
    if end_ps <= begin_ps:
        raise UsageError(f"the selection from {begin_ps} to {end_ps} ps is empty")
    if by not in _KEYS:
        raise UsageError(f"a selection is not summed by {by!r}", hint=f"by {', '.join(_KEYS)}")
    keys = trace.derived(f"selection by {by}", _KEYS[by])
    names = keys.names
    chosen, key = np.asarray(lines, np.int64), keys.of_event
    count, total, own = (np.zeros(len(names), np.int64) for _ in range(3))
    events = kernels.selection.add_up(
        trace.events.start_ps, trace.events.duration_ps, trace.derived("timeline summed", _is_summed), key,
        trace.lines.event_begin[chosen],
        trace.lines.event_end[chosen], begin_ps, end_ps, count, total, own,
    )  # fmt: skip
    own = np.maximum(own, 0)  # events directly inside one event may overlap each other
    there = np.flatnonzero(count)
    there = there[np.lexsort((-count[there], -total[there], -own[there]))]
    rows = tuple(
        NameRow(names[at], int(keys.types[at]), int(count[at]), int(total[at]), int(own[at]))
        for at in there[:most].tolist()
    )
    others = there[most:]
    left = tuple(int(sums[others].sum()) for sums in (count, total, own))
    rest = NameRow(f"{len(others):,} other names", -1, *left) if len(others) else None
    return SelectionSum(int(events), len(there), int(total.sum()), int(own.sum()), rows, rest)


def _is_summed(trace: HostTrace) -> Mask:
    """Which drawn events do something: marks of steps, and ranges laid onto a device, only frame what others do."""
    summed: Mask = is_drawn(trace) & ~is_any_kind(trace.events.kind, _FRAMES)
    return summed


def _keys_by_name(trace: HostTrace) -> _Keys:
    names, first_type, key_of_type = np.unique(trace.event_types.name, return_index=True, return_inverse=True)
    key = look_up(key_of_type.astype(np.int32), trace.events.type)
    return _Keys(key, [trace.strings[name] for name in names.tolist()], first_type.tolist())


def _keys_by_track(trace: HostTrace) -> _Keys:
    names = [""] * len(trace.lines)
    for group in all_groups(groups_of(trace)):
        for track in group.tracks:
            if track.line >= 0:
                names[track.line] = f"{group.name} \N{MIDDLE DOT} {track.name}"
    return _Keys(trace.events.line.astype(np.int32), names, range(len(names)))


def _keys_by_op(trace: HostTrace) -> _Keys:
    found, numbers = attribute(trace), {_NO_OP: 0}
    nearest = np.empty(len(trace.events), np.int32)
    kernels.nesting.nearest(forest(trace).parent, is_any_kind(trace.events.kind, _OPS), nearest)
    inside, key = np.flatnonzero(nearest >= 0), np.zeros(len(trace.events), np.int32)
    types, of_event = np.unique(trace.events.type[nearest[inside]], return_inverse=True)
    own = [trace.strings[trace.event_types.name[each]] for each in types.tolist()]
    key[inside] = look_up(_numbered(numbers, own), of_event)
    key[found.rows] = np.append(_numbered(numbers, [name for name, _ in found.ops]), np.int32(0))[found.op]
    return _Keys(key, list(numbers), [-1] * len(numbers))


def _numbered(numbers: dict[str, int], names: Sequence[str]) -> I32:
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)


_KEYS: dict[str, Callable[[HostTrace], _Keys]] = {"name": _keys_by_name, "op": _keys_by_op, "track": _keys_by_track}
