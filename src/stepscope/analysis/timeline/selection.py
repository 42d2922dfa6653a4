"""The events of a selection, which is a window of time on some tracks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope import kernels
from stepscope.analysis.timeline.index import is_drawn
from stepscope.errors import UsageError
from stepscope.model import HostTrace
from stepscope.model.arrays import look_up
from stepscope.records import dataclass


@dataclass(frozen=True)
class NameRow:
    """All events of one name in a selection.  Times are in ps and count only what lies inside the window.

    Attributes:
        name: the events' name.
        type: the first event type of that name.
        events: their number.
        total_ps: their time; `self_ps`: their time without that of the events directly inside them.
    """

    name: str
    type: int
    events: int
    total_ps: int
    self_ps: int


@dataclass(frozen=True)
class Selection:
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


def sum_selection(trace: HostTrace, begin_ps: int, end_ps: int, lines: Sequence[int], most: int = 500) -> Selection:
    """Sums the events of some lines in a window of time, by name.

    Raises:
        UsageError: the window is empty.
    """
    if end_ps <= begin_ps:
        raise UsageError(f"the selection from {begin_ps} to {end_ps} ps is empty")
    names, first_type, key_of_type = np.unique(trace.event_types.name, return_index=True, return_inverse=True)
    key = look_up(key_of_type.astype(np.int32), trace.events.type)
    chosen = np.asarray(lines, np.int64)
    count, total, own = (np.zeros(len(names), np.int64) for _ in range(3))
    events = kernels.selection.add_up(
        trace.events.start_ps, trace.events.duration_ps, is_drawn(trace), key, trace.lines.event_begin[chosen],
        trace.lines.event_end[chosen], begin_ps, end_ps, count, total, own,
    )  # fmt: skip
    own = np.maximum(own, 0)  # events directly inside one event may overlap each other
    there = np.flatnonzero(count)
    there = there[np.lexsort((-count[there], -total[there], -own[there]))]
    rows = tuple(
        NameRow(trace.strings[names[at]], int(first_type[at]), int(count[at]), int(total[at]), int(own[at]))
        for at in there[:most].tolist()
    )
    others = there[most:]
    left = tuple(int(sums[others].sum()) for sums in (count, total, own))
    rest = NameRow(f"{len(others):,} other names", -1, *left) if len(others) else None
    return Selection(int(events), len(there), int(total.sum()), int(own.sum()), rows, rest)
