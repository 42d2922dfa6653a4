"""A window of a timeline as plain numbers, which the widget draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.timeline.details import short_name
from stepscope.analysis.timeline.index import find_slices, index_of
from stepscope.analysis.timeline.tracks import all_groups, groups_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I64
from stepscope.pictures.timeline import event_colour

_MS = 1e9  # in ps
_DEEPEST = 12  # rows of one track
_MOST_ROWS = 160
_MOST_SLICES = 12_000
_MOST_STEPS = 2_000
_WIDEST = 4_000


def describe_trace(trace: HostTrace) -> dict[str, Any]:
    """What the widget needs once: the span, the tracks with their rows, and the steps."""
    begin, end = trace.span_ps()
    steps = steps_of(trace)
    count = 0 if steps.source == "none" else min(len(steps.number), _MOST_STEPS)
    return {
        "host": trace.host,
        "start_ms": begin / _MS,
        "end_ms": end / _MS,
        "tracks": _tracks(trace),
        "steps": {
            "number": steps.number[:count].tolist(),
            "start_ms": (steps.start_ps[:count] / _MS).tolist(),
            "end_ms": (steps.end_ps[:count] / _MS).tolist(),
        },
    }


def _tracks(trace: HostTrace) -> list[dict[str, Any]]:
    """The tracks in the order of the timeline, each with its first row of the index and how many are drawn."""
    first_row = index_of(trace).first_row
    found: list[dict[str, Any]] = []
    room = _MOST_ROWS
    for group in all_groups(groups_of(trace)):
        for track in group.tracks:
            rows = min(track.rows, _DEEPEST, room)
            if track.line >= 0 and rows and not track.is_profiler:
                name = f"{group.name} {track.name}" if group.kind == "device" else track.name
                found.append({"name": name, "row": int(first_row[track.line]), "rows": rows})
                room -= rows
    return found


def window_slices(trace: HostTrace, start_ms: float, end_ms: float, width: int) -> dict[str, Any]:
    """The slices of a window, for `width` pixels: columns of equal length, and the texts that `name` counts in.

    `start` and `end` are in ms, `lane` is the row below the top of all tracks, `count` the events in a slice, and
    `colours` those of the names.
    """
    begin, end = trace.span_ps()
    first, last = max(int(start_ms * _MS), begin), min(int(end_ms * _MS), end)
    if last <= first:
        return {"start_ms": start_ms, "end_ms": end_ms, **_columns(trace, np.empty(0, np.int64), 0, 1, 1)}
    tracks = _tracks(trace)
    rows = np.array([row for each in tracks for row in range(each["row"], each["row"] + each["rows"])], np.int64)
    return {
        "start_ms": first / _MS,
        "end_ms": last / _MS,
        **_columns(trace, rows, first, last, min(max(width, 1), _WIDEST)),
    }


def _columns(trace: HostTrace, rows: I64, first: int, last: int, width: int) -> dict[str, Any]:
    if not len(rows):
        return {"lane": [], "start": [], "end": [], "busy": [], "count": [], "name": [], "names": [], "colours": []}
    found = find_slices(trace, first, last, rows, width, max(_MOST_SLICES, 4 * len(rows)))
    types, first_of, name = np.unique(trace.events.type[found.event], return_index=True, return_inverse=True)
    kinds = trace.events.kind[found.event[first_of]].tolist()
    names = [short_name(trace, kind) for kind in types.tolist()]
    return {
        "lane": np.repeat(np.arange(len(rows)), np.diff(found.row_begin)).tolist(),
        "start": (found.start_ps / _MS).tolist(),
        "end": (found.end_ps / _MS).tolist(),
        "busy": (found.busy_ps / _MS).tolist(),
        "count": found.count.tolist(),
        "name": name.tolist(),
        "names": names,
        "colours": [event_colour(kind, name) for kind, name in zip(kinds, names, strict=True)],
    }
