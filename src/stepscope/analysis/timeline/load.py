"""How busy a group of tracks is over time, which its row shows while it is collapsed."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.timeline.index import is_drawn, level_for
from stepscope.analysis.timeline.tracks import Group, activity_ps, all_groups, groups_of, loaded_lines
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import HostTrace, LineKind
from stepscope.model.arrays import F64, I64, Mask, look_up
from stepscope.records import dataclass

_WIDTH = 1200  # pixels of a usual window


@dataclass(frozen=True)
class _Spans:
    """The times during which lanes are at work, as `kernels.pyramid.unite` returns them."""

    first: I64
    start: I64
    busy: I64


def group_load(trace: HostTrace, group: Group, begin_ps: int, cells: int, level: int) -> F64:
    """How many of a group's lanes are at work, on average over each cell: float64 of shape (cells,).

    A device is one lane, which is at work while any of its streams is.  On a host each thread is a lane, and elsewhere
    each line; these are at work while they are in any event.
    """
    spans = _spans_of(trace, group)
    out = np.zeros(cells)
    lanes = np.arange(len(spans.first) - 1)
    kernels.pyramid.cover(spans.first, spans.start, spans.busy, lanes, begin_ps, level, out)
    return out / float(1 << level)


def prepare_windows(trace: HostTrace) -> None:
    """Computes all that every window of the timeline needs, so that no window has to wait for it."""
    activity_ps(trace)
    begin, end = trace.span_ps()
    level = level_for(begin, max(end, begin + 1), _WIDTH)
    for group in all_groups(groups_of(trace)):
        # The first look at a large trace goes to memory that nothing has been read from yet, or to the disk.
        group_load(trace, group, begin >> level, -(-end >> level) - (begin >> level), level)


def _spans_of(trace: HostTrace, group: Group) -> _Spans:
    return trace.derived(f"timeline load {group.id}", lambda host: _find_spans(host, group))


def _find_spans(trace: HostTrace, group: Group) -> _Spans:
    if group.kind == "device":
        return _unite_device_work(trace, np.array(group.lines(), np.int64))
    lines = loaded_lines(trace, group.lines())
    begin, end = trace.lines.event_begin[lines], trace.lines.event_end[lines]
    return _unite_spans(trace.events.start_ps, trace.events.duration_ps, is_drawn(trace), begin, end)


def _unite_device_work(trace: HostTrace, lines: I64) -> _Spans:
    """The work of all streams as one lane; of all lines if the device has no measured work."""
    chosen = np.zeros(len(trace.lines), np.bool_)
    chosen[lines] = True
    measured = chosen & np.isin(trace.lines.kind, (LineKind.STREAM, LineKind.DEVICE_OPS))
    rows = np.flatnonzero(is_device_work(trace) & look_up(measured, trace.events.line))
    if not len(rows):
        rows = np.flatnonzero(is_drawn(trace) & look_up(chosen, trace.events.line))
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    start, duration = trace.events.start_ps[rows], trace.events.duration_ps[rows]
    return _unite_spans(start, duration, np.ones(len(rows), np.bool_), np.zeros(1, np.int64), np.array([len(rows)]))


def _unite_spans(start: I64, duration: I64, drawn: Mask, begin: I64, end: I64) -> _Spans:
    room = int((end - begin).sum()) + len(begin)
    out_start, out_busy = np.empty(room, np.int64), np.empty(room, np.int64)
    first = np.empty(len(begin) + 1, np.int64)
    kernels.pyramid.unite(start, duration, drawn, begin, end, first, out_start, out_busy)
    return _Spans(first, out_start[: first[-1]].copy(), out_busy[: first[-1]].copy())
