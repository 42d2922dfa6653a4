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

_COARSE_CELLS = 1 << 16  # of a whole trace


@dataclass(frozen=True)
class _Spans:
    """The times during which lanes are at work, as `kernels.pyramid.unite` returns them."""

    first: I64
    start: I64
    busy: I64


@dataclass(frozen=True)
class _Coarse:
    """How long lanes are at work in each cell of a level of their own, for windows with wider cells: a look at a large
    part of a large trace would go to memory all over the place, or to the disk.

    Attributes:
        level: a cell has 2^level ps; first: the number of the first cell, counted from time 0.
        busy_ps: float64 of shape (cells,), all lanes together; whole numbers, so sums of them are exact.
    """

    level: int
    first: int
    busy_ps: F64

    def add_up(self, begin_ps: int, cells: int, level: int) -> F64:
        """The same in wider cells, of which the first starts at a cell of these: float64 of shape (cells,), ps."""
        begin, fold = (begin_ps >> self.level) - self.first, 1 << (level - self.level)
        low = max(0, begin)
        high = max(low, min(len(self.busy_ps), begin + cells * fold))
        cell = (np.arange(low, high) - begin) // fold
        return np.bincount(cell, self.busy_ps[low:high], minlength=cells).astype(np.float64)


def group_load(trace: HostTrace, group: Group, begin_ps: int, cells: int, level: int) -> F64:
    """How many of a group's lanes are at work, on average over each cell: float64 of shape (cells,).

    A device is one lane, which is at work while any of its streams is.  On a host each thread is a lane, and elsewhere
    each line; these are at work while they are in any event.
    """
    coarse = _coarse_of(trace, group)
    if level >= coarse.level and begin_ps % (1 << coarse.level) == 0:
        return coarse.add_up(begin_ps, cells, level) / float(1 << level)
    return _cover(_spans_of(trace, group), begin_ps, cells, level) / float(1 << level)


def _cover(spans: _Spans, begin_ps: int, cells: int, level: int) -> F64:
    """How long lanes are at work in each cell, together: float64 of shape (cells,), ps."""
    out = np.zeros(cells)
    lanes = np.arange(len(spans.first) - 1)
    kernels.pyramid.cover(spans.first, spans.start, spans.busy, lanes, begin_ps, level, out)
    return out


def prepare_windows(trace: HostTrace) -> None:
    """Computes all that every window of the timeline needs, so that no window has to wait for it."""
    activity_ps(trace)
    for group in all_groups(groups_of(trace)):
        _coarse_of(trace, group)


def _spans_of(trace: HostTrace, group: Group) -> _Spans:
    return trace.derived(f"timeline load {group.id}", lambda host: _find_spans(host, group))


def _coarse_of(trace: HostTrace, group: Group) -> _Coarse:
    return trace.derived(f"timeline coarse load {group.id}", lambda host: _find_coarse(host, group))


def _find_coarse(trace: HostTrace, group: Group) -> _Coarse:
    begin, end = trace.span_ps()
    level = level_for(begin, max(end, begin + 1), _COARSE_CELLS)
    first = begin >> level
    return _Coarse(level, first, _cover(_spans_of(trace, group), first << level, -(-end >> level) - first, level))


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
