"""Takes a part of a trace as a trace of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.model.arrays import I64
from stepscope.model.tables import Events
from stepscope.model.trace import HostTrace


def take_events(trace: HostTrace, rows: I64, start_ps: I64, duration_ps: I64) -> tuple[HostTrace, I64]:
    """The trace with only some of its events.  Planes, lines, types and texts keep their rows.

    Args:
        trace: the whole.
        rows: the events to keep, each once.
        start_ps, duration_ps: their times in the new trace; int64 of the shape of `rows`.

    Returns:
        The part, and the row that each of its events has in the whole trace.
    """
    line = trace.events.line[rows]
    order = np.lexsort((-duration_ps, start_ps, line))
    rows, line = rows[order], line[order]
    events = Events(
        start_ps=start_ps[order],
        duration_ps=duration_ps[order],
        type=trace.events.type[rows],
        line=line,
        kind=trace.events.kind[rows],
        traits=trace.events.traits[rows],
    )
    bounds = np.searchsorted(line, np.arange(len(trace.lines) + 1))
    lines = replace(trace.lines, event_begin=bounds[:-1], event_end=bounds[1:])
    part = replace(trace, events=events, lines=lines, event_stats=trace.event_stats.take(rows), _derived={})
    return part, rows
