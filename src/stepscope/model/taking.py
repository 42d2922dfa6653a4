"""Takes a part of a trace as a trace of its own, and adds to what is known of its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.model.arrays import I64
from stepscope.model.kinds import StatTag
from stepscope.model.tables import Events, Stats
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


def add_texts(trace: HostTrace, name: str, rows: I64, texts: Sequence[str]) -> HostTrace:
    """The trace with one more stat of some events, a text.

    Args:
        rows: the events, each once; texts: one for each of them.
    """
    distinct = list(dict.fromkeys(texts))
    strings, places = trace.strings.add_texts([name.encode(), *(text.encode() for text in distinct)])
    row_of = dict(zip(distinct, places[1:], strict=True))
    order = np.argsort(rows)
    value = np.array([row_of[text] for text in texts], np.int64)[order]
    stats, owners = trace.event_stats, rows[order]
    at = stats.offsets[owners + 1]
    counts = np.zeros(len(stats.offsets), np.int64)
    counts[owners + 1] = 1
    more = Stats(
        name=np.insert(stats.name, at, np.int32(places[0])),
        tag=np.insert(stats.tag, at, np.uint8(StatTag.STRING)),
        value=np.insert(stats.value, at, value),
        offsets=stats.offsets + np.cumsum(counts),
    )
    return replace(trace, strings=strings, event_stats=more, _derived={})
