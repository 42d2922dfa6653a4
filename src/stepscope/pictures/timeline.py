"""A window of a timeline as a drawing: steps, the loop's thread, and what devices did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.timeline.details import short_name
from stepscope.analysis.timeline.index import Window, find_slices, index_of
from stepscope.analysis.timeline.tracks import Track, all_groups, groups_of
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.report import duration_text
from stepscope.report.drawing import Box, Drawing, Line, Word, colour_of, fit_text, ticks_between
from stepscope.report.palette import CATEGORY_COLOURS, KIND_CATEGORIES

WIDTH = 960
_GUTTER = 170
_RULER = 34
_ROW = 15
_GAP = 4
_DEEPEST = 6  # rows drawn of one track
_MOST_ROWS = 30
_MOST_SLICES = 6000
_MARK = "#d1242f"  # the colour of what is pointed out
_CELL = 2  # pixels; shorter neighbours become one box
_LEAST_HINT = 3.0  # pixels of a box that says what it is on hover
_MS = 1e9  # in ps
_FOLDERS = re.compile(r"^.*/(?=[^/]+/[^/]+\.py\b)")  # before the last one of a file of Python
_OVERVIEW_KINDS = frozenset({"steps", "modules", "scopes", "derived", "overhead"})


@dataclass(frozen=True)
class Shown:
    """A picture of a window, and what it shows in words.

    Attributes:
        drawing: the picture.
        start_ms, end_ms: the window.
        tracks: the names of the tracks, top to bottom.
        hidden: the number of tracks with events in the window that found no room.
    """

    drawing: Drawing
    start_ms: float
    end_ms: float
    tracks: tuple[str, ...]
    hidden: int


@dataclass(frozen=True)
class _Strip:
    """A track with its rows of the index."""

    track: Track
    name: str
    rows: range


def draw_window(
    trace: HostTrace, start_ms: float, end_ms: float, width: int = WIDTH, mark: tuple[float, float] | None = None
) -> Shown:
    """Draws what happened in a window.

    Args:
        trace: one host.
        start_ms, end_ms: the window on the time axis of the session.
        width: of the picture in pixels.
        mark: an interval in ms that is pointed out; None for none.

    Raises:
        UsageError: the window is empty or lies outside of the trace.
    """
    begin, end = trace.span_ps()
    first, last = max(int(start_ms * _MS), begin), min(int(end_ms * _MS), end)
    if last <= first:
        raise UsageError(
            f"the window from {start_ms:g} to {end_ms:g} ms is empty",
            hint=f"the trace lasts from {begin / _MS:.3f} to {end / _MS:.3f} ms",
        )
    plot = width - _GUTTER
    found = _busy_strips(trace, first, last, plot)
    chosen = _choose_strips([strip for strip, _ in found], dict(found))
    drawing = _draw(trace, chosen, first, last, width)
    if mark is not None:
        drawing = _point_out(drawing, mark, first, (width - _GUTTER) / (last - first))
    return Shown(drawing, first / _MS, last / _MS, tuple(strip.name for strip in chosen), len(found) - len(chosen))


def usual_window(trace: HostTrace) -> tuple[float, float]:
    """The window to show first, in ms: two steps from the middle of the run, or all of it without steps."""
    steps = steps_of(trace)
    if steps.source == "none" or not len(steps.start_ps):
        begin, end = trace.span_ps()
        return begin / _MS, end / _MS
    middle = max(min(len(steps.start_ps) // 2, len(steps.start_ps) - 2), 0)
    last = min(middle + 1, len(steps.start_ps) - 1)
    return int(steps.start_ps[middle]) / _MS, int(steps.end_ps[last]) / _MS


# -- what is drawn -------------------------------------------------------------------------------------------------


def _busy_strips(trace: HostTrace, first: int, last: int, plot: int) -> list[tuple[_Strip, float]]:
    """The tracks with events in the window, in the order of the timeline, with the time that they are busy."""
    found = []
    for strip in _all_strips(trace):
        window = find_slices(trace, first, last, list(strip.rows[:1]), plot, _MOST_SLICES)
        if len(window.start_ps):
            found.append((strip, float(window.busy_ps.sum())))
    return found


def _all_strips(trace: HostTrace) -> Iterator[_Strip]:
    first_row = index_of(trace).first_row
    for group in all_groups(groups_of(trace)):
        for track in group.tracks:
            if track.line >= 0 and track.rows and not track.is_profiler:
                begin = int(first_row[track.line])
                name = f"{group.name} {track.name}" if group.kind == "device" else track.name
                yield _Strip(track, name, range(begin, begin + min(track.rows, _DEEPEST)))


def _choose_strips(strips: Sequence[_Strip], busy: dict[_Strip, float]) -> list[_Strip]:
    """The tracks that fit: the loop's thread first, then devices, then the busiest, all in their usual order."""

    def worth(strip: _Strip) -> tuple[int, float]:
        is_device = strip.track.kind in ("stream", "ops", "steps")
        return (0 if strip.track.main else 1 if is_device else 3 if strip.track.kind in _OVERVIEW_KINDS else 2), -busy[
            strip
        ]

    kept: set[_Strip] = set()
    room = _MOST_ROWS
    for strip in sorted(strips, key=worth):
        if len(strip.rows) <= room:
            kept.add(strip)
            room -= len(strip.rows)
    return [strip for strip in strips if strip in kept]


def _draw(trace: HostTrace, strips: Sequence[_Strip], first: int, last: int, width: int) -> Drawing:
    scale = (width - _GUTTER) / (last - first)
    boxes: list[Box] = []
    words: list[Word] = []
    lines: list[Line] = []
    y = float(_RULER)
    for strip in strips:
        window = find_slices(trace, first, last, list(strip.rows), (width - _GUTTER) // _CELL, _MOST_SLICES)
        words.append(Word(_GUTTER - 8, y + _ROW - 4, fit_text(strip.name, _GUTTER - 12), "end"))
        boxes += _slice_boxes(trace, window, first, last, scale, y)
        y += _ROW * _used_rows(window) + _GAP
        lines.append(Line(0, y - _GAP / 2, width, y - _GAP / 2))
    height = int(y) + 4
    lines += [Line(x, _RULER - 6, x, height) for x, _ in _ruler(first, last, scale)]
    words += [Word(x, 12, text, "middle", is_faint=True) for x, text in _ruler(first, last, scale)]
    marks, names = _step_marks(trace, first, last, scale, height)
    title = f"{first / _MS:.3f} to {last / _MS:.3f} ms of {trace.host}"
    return Drawing(width, height, title, (*lines, *marks), tuple(boxes), (*words, *names))


def _point_out(drawing: Drawing, mark: tuple[float, float], first: int, scale: float) -> Drawing:
    """The drawing with a bar above an interval, and lines down from its ends."""
    low, high = (min(max(_GUTTER + (at * _MS - first) * scale, _GUTTER), drawing.width) for at in mark)
    bar = Box(low, _RULER - 6, max(high - low, 2.0), 4, _MARK)
    ends = tuple(Line(x, _RULER - 6, x, drawing.height, is_faint=False) for x in (low, high))
    return replace(drawing, boxes=(*drawing.boxes, bar), lines=(*drawing.lines, *ends))


def _used_rows(window: Window) -> int:
    """The number of rows to the last one with a slice."""
    filled = np.flatnonzero(np.diff(window.row_begin))
    return int(filled[-1]) + 1 if len(filled) else 1


def _slice_boxes(trace: HostTrace, window: Window, first: int, last: int, scale: float, y: float) -> Iterator[Box]:
    right_end = _GUTTER + (last - first) * scale
    row = np.repeat(np.arange(len(window.rows)), np.diff(window.row_begin))
    left = _GUTTER + (np.maximum(window.start_ps, first) - first) * scale
    right = _GUTTER + (np.minimum(window.end_ps, last) - first) * scale
    types, kinds = trace.events.type[window.event], trace.events.kind[window.event]
    columns = (each.tolist() for each in (row, left, right, types, window.count, window.busy_ps, kinds))
    for at, low, high, type_row, count, busy, kind in zip(*columns, strict=True):
        if low >= right_end:  # it starts where the window ends
            continue
        name, size = short_name(trace, type_row), max(high - low, 0.7)
        more = f" and {count - 1:,} more" if count > 1 else ""
        hint = f"{name}{more}: {duration_text(busy / _MS)}" if size >= _LEAST_HINT else ""
        label = "" if count > 1 else _FOLDERS.sub("", name)
        yield Box(low, y + at * _ROW, size, _ROW - 1, event_colour(kind, name), label, hint)


def event_colour(kind: int, name: str) -> str:
    """The colour of an event: that of its kind's category, else one of its name's own."""
    category = KIND_CATEGORIES.get(EventKind(kind).name.lower())
    return CATEGORY_COLOURS[category] if category else colour_of(name)


def _ruler(first: int, last: int, scale: float) -> list[tuple[float, str]]:
    ticks = ticks_between(first / _MS, last / _MS, 8)
    digits = max(0, min(6, int(np.ceil(-np.log10(max((last - first) / _MS / 8, 1e-9))))))
    return [(_GUTTER + (tick * _MS - first) * scale, f"{tick:,.{digits}f} ms") for tick in ticks]


def _step_marks(trace: HostTrace, first: int, last: int, scale: float, height: int) -> tuple[list[Line], list[Word]]:
    """A line where each step starts, with its number where there is room."""
    steps = steps_of(trace)
    if steps.source == "none":
        return [], []
    lines, words, free = [], [], 0.0
    for at in np.flatnonzero((steps.start_ps >= first) & (steps.start_ps < last)).tolist():
        x = _GUTTER + (int(steps.start_ps[at]) - first) * scale
        lines.append(Line(x, 16, x, height, is_faint=False))
        if x >= free:
            words.append(Word(x + 3, 26, f"step {int(steps.number[at])}"))
            free = x + 60
    return lines, words
