"""Puts planes together that were written in several parts, as profiles beyond the limit of a message are."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from stepscope.model import HostTrace, Stats, take_events
from stepscope.model.arrays import I32, I64, number_pairs


def join_parts(trace: HostTrace) -> HostTrace:
    """The trace with one plane of each name, and in a plane one line of each number and name."""
    plane_of, first_planes = _number_in_order(trace.planes.name.astype(np.int64), np.zeros(len(trace.planes), np.int64))
    if len(first_planes) == len(trace.planes):
        return trace
    of_lines = plane_of[trace.lines.plane]
    names, _ = number_pairs(trace.lines.line_id, trace.lines.name.astype(np.int64))
    line_of, first_lines = _number_in_order(of_lines.astype(np.int64), names.astype(np.int64))
    moved = replace(trace, events=replace(trace.events, line=line_of[trace.events.line]), _derived={})
    rows = np.arange(len(trace.events))
    part, _ = take_events(moved, rows, trace.events.start_ps, trace.events.duration_ps)
    lines = {field.name: getattr(part.lines, field.name)[first_lines] for field in fields(trace.lines)}
    lines["plane"] = of_lines[first_lines]
    lines["event_begin"] = part.lines.event_begin[: len(first_lines)].copy()
    lines["event_end"] = part.lines.event_end[: len(first_lines)].copy()
    planes = {field.name: getattr(trace.planes, field.name)[first_planes] for field in fields(trace.planes)}
    types = replace(
        trace.event_types,
        plane=plane_of[trace.event_types.plane],
        metadata_id=np.arange(1, len(trace.event_types) + 1, dtype=np.int64),  # those of the parts clash
    )
    return replace(
        part,
        planes=type(trace.planes)(**planes),
        lines=type(trace.lines)(**lines),
        event_types=types,
        plane_stats=_join_stats(trace.plane_stats, plane_of, len(first_planes)),
        _derived={},
    )


def _number_in_order(outer: I64, inner: I64) -> tuple[I32, I64]:
    """Numbers distinct pairs by their first rows, those of one `outer` together: the number of each row, first rows."""
    pairs, first = number_pairs(outer, inner)
    groups, first_of_group = number_pairs(outer, np.zeros(len(outer), np.int64))
    order = np.lexsort((first, first_of_group[groups[first]]))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[pairs], first[order]


def _join_stats(stats: Stats, owner_of: I32, owners: int) -> Stats:
    """The stats with the owners that are one now."""
    owner = np.repeat(owner_of, np.diff(stats.offsets))
    order = np.argsort(owner, kind="stable")
    offsets = np.searchsorted(owner[order], np.arange(owners + 1)).astype(np.int64)
    return Stats(name=stats.name[order], tag=stats.tag[order], value=stats.value[order], offsets=offsets)
