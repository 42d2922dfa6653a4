"""Ranges laid onto the streams of devices: when the work of an annotation, a module or a scope of a program ran there.

A range of the host is on a stream from the start of the first to the end of the last piece of work that was launched
inside it and ran on that stream.  Work belongs to a range by its launching call, whatever framework recorded the two.
Scopes of compiled programs are no ranges of the host; `program_scopes` finds them.  Each stream with such work gets
lines of its own above it.  These lines are numbered on from the lines of the trace.  A scope can be selected like an
event; its number continues those of the trace's events (`scope_place`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.timeline.index import Index, Window, cut_window, lay_out
from stepscope.analysis.timeline.tracks import Group, Track
from stepscope.analysis.trace.attribution import Attribution, HowKnown, attribute
from stepscope.analysis.trace.grouping import COPIES, forest, is_device_work, spread_labels
from stepscope.analysis.trace.module_calls import module_calls
from stepscope.analysis.trace.user_ranges import ranges_and_steps
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import I32, I64, U8, Mask, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_annotations, holds_scopes
from stepscope.vocabulary.scopes import named_scopes

# ---- The named scopes of compiled programs on the streams of devices -------------------------------------------------
# when the ops of a scope ran, one row per level.  XLA programs keep, for each instruction, the path of the
# framework's op: `jit(step)/encoder/layer_1/dot_general` under `jax.named_scope`, flax and `tf.name_scope`.
# TensorFlow writes such a path to each kernel.  A stretch of a stream whose work lies in one scope is one range of
# it.  It ends with its step, and where work outside of the scope runs; work whose path is unknown does not end it.


MOST_LEVELS = 10
"""Deeper scopes are left out."""


@dataclass(frozen=True)
class ScopeRanges:
    """Ranges of scopes, each column int64 of shape (n,).

    Attributes:
        event: the first piece of work of each.
        stream: its line in the trace.
        start, end: from when to when, ps.
        level: 0 for an outermost scope, 1 for one inside it, and so on.
        name: its place in `names`; `names`: the different names, each the last part of a path.
    """

    event: I64
    stream: I64
    start: I64
    end: I64
    level: I64
    name: I64
    names: tuple[str, ...]


def find_scope_ranges(trace: HostTrace) -> ScopeRanges:
    """The ranges of all scopes on all streams, in no order."""
    if not (trace.has_stat(stat_names.HLO_OP) or trace.has_stat(stat_names.FRAMEWORK_OP)):
        return _no_ranges()
    found = attribute(trace)
    scopes, names, name_of = _number_scopes([name for name, _ in found.ops])
    if not names:
        return _no_ranges()
    place = np.flatnonzero(_is_scoped_work(trace, found))
    rows = found.rows[place]
    start = trace.events.start_ps[rows]
    order = np.lexsort((start, trace.events.line[rows]))
    rows, start = rows[order], start[order]
    end, line = start + trace.events.duration_ps[rows], trace.events.line[rows].astype(np.int64)
    step, path = steps_of(trace).label[rows], scopes[found.op[place[order]]]
    cut = np.ones(len(rows), np.bool_)
    cut[1:] = (line[1:] != line[:-1]) | (step[1:] != step[:-1])
    parts: list[tuple[I64, ...]] = []
    for level in range(scopes.shape[1] if len(rows) else 0):
        scope = path[:, level]
        first = np.flatnonzero(cut | np.append(True, scope[1:] != scope[:-1]))
        last = np.maximum.reduceat(end, first)
        named = scope[first] >= 0
        first, last = first[named], last[named]
        parts.append((rows[first], line[first], start[first], last, np.full(len(first), level), name_of[scope[first]]))
    if not parts:
        return _no_ranges()
    event, stream, begins, ends, levels, name = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ScopeRanges(event, stream, begins, ends, levels, name, names)


def _no_ranges() -> ScopeRanges:
    none = np.empty(0, np.int64)
    return ScopeRanges(none, none, none, none, none, none, ())


def _number_scopes(ops: Sequence[str]) -> tuple[I32, tuple[str, ...], I64]:
    """The scopes around each op: int32 of shape (ops, levels), -1 where it is inside fewer; the names of the scopes,
    and for each scope the place of its name.  Scopes of one name inside different ones are different."""
    paths = [named_scopes(name)[:MOST_LEVELS] for name in ops]
    scopes = np.full((len(ops), max(map(len, paths), default=0)), -1, np.int32)
    numbers: dict[tuple[str, ...], int] = {}
    for at, path in enumerate(paths):
        for level in range(len(path)):
            scopes[at, level] = numbers.setdefault(path[: level + 1], len(numbers))
    names = {path[-1]: None for path in numbers}
    place = {name: at for at, name in enumerate(names)}
    return scopes, tuple(names), np.array([place[path[-1]] for path in numbers], np.int64)


def _is_scoped_work(trace: HostTrace, found: Attribution) -> Mask:
    """The work whose path is known, without copies: bool of shape (work,).

    An instruction that XLA made up, such as a fusion of reductions, may have no path.  Devices on which the profiler
    wrote rows of scopes itself are left out.
    """
    lines = trace.lines
    derived = np.flatnonzero((lines.kind == LineKind.DERIVED) & (lines.event_end > lines.event_begin)).tolist()
    has_rows = np.isin(lines.plane, [lines.plane[line] for line in derived if holds_scopes(trace.line_label(line))])
    own = np.isin(found.source, (HowKnown.OWN, HowKnown.GRAPH)) & (found.op >= 0)
    copies = np.isin(trace.events.kind[found.rows], (*COPIES, EventKind.MEMSET))
    has_path = np.array([*("/" in name for name, _ in found.ops), False])[found.op]
    nameless = (found.instruction > 0) & ~has_path
    scoped: Mask = own & ~copies & ~nameless & ~has_rows[trace.events.line[found.rows]]
    return scoped


ANNOTATIONS, MODULES, SCOPES = 0, 1, 2
_NAMES = ("Annotations", "Modules", "Scopes")
_KINDS = ("projected", "projected", "scoped")


@dataclass(frozen=True)
class Projection:
    """All ranges on streams, in the order of their lines.

    Attributes:
        stream: int64 of shape (lines,), the line of the trace on which the work of each projected line ran.
        what: int64 of shape (lines,), `ANNOTATIONS`, `MODULES` or `SCOPES`.
        line: int32 of shape (ranges,), the projected line of each range.
        event: int32 of shape (ranges,), the range on the host; of a scope its first piece of work.
        type: int32 of shape (ranges,), the range's type of event; scopes are numbered on from the types of the trace.
        kind: uint8 of shape (ranges,), the kind of event, `SCOPE` for scopes.
        index: rows and levels of the lines; what it calls events are places in `event`.
        scopes: the names of the scopes.
    """

    stream: I64
    what: I64
    line: I32
    event: I32
    type: I32
    kind: U8
    index: Index
    scopes: tuple[str, ...]


@dataclass(frozen=True)
class ProjectedWindow:
    """Slices of projected lines.

    Attributes:
        window: the slices; their events are those of `Projection.event`, and the numbers of scopes.
        type, kind: int32 and uint8 of shape (slices,), see `Projection`.
    """

    window: Window
    type: I32
    kind: U8


@dataclass(frozen=True)
class _Ranges:
    """Ranges on streams, each int64 of shape (n,): the range on the host, the stream, and from when to when."""

    event: I64
    stream: I64
    start: I64
    end: I64


def projection_of(trace: HostTrace) -> Projection:
    """The ranges of a trace on its streams, computed once."""
    return trace.derived("timeline projection", _project)


def find_projected(
    trace: HostTrace, begin_ps: int, end_ps: int, rows: Sequence[int] | I64, width: int, most: int
) -> ProjectedWindow:
    """The slices of rows of the projection; see `index.find_slices`."""
    found = projection_of(trace)
    window = cut_window(found.index, begin_ps, end_ps, rows, width, most)
    place = window.event
    number = np.where(found.kind[place] == EventKind.SCOPE, len(trace.events) + place, found.event[place])
    return ProjectedWindow(replace(window, event=number.astype(np.int32)), found.type[place], found.kind[place])


def scope_place(trace: HostTrace, number: int) -> int | None:
    """The place in the projection of the scope that has a number; None for an event of the trace.

    Raises:
        UsageError: neither an event nor a scope has this number.
    """
    if 0 <= number < len(trace.events):
        return None
    found, place = projection_of(trace), number - len(trace.events)
    if not (0 <= place < len(found.kind) and found.kind[place] == EventKind.SCOPE):
        raise UsageError(f"there is no event {number}", hint=f"events are numbered 0 to {len(trace.events) - 1}")
    return place


def times_of(trace: HostTrace, numbers: I64) -> tuple[I64, I64]:
    """Start and duration of events and scopes, each int64 of shape (n,), in ps."""
    own = len(trace.events)
    is_event = numbers < own
    if is_event.all():
        return trace.events.start_ps[numbers], trace.events.duration_ps[numbers]
    rows, at = projection_of(trace).index.rows, np.maximum(numbers - own, 0)
    row = np.where(is_event, numbers, 0)
    return (
        np.where(is_event, trace.events.start_ps[row], rows.start[at]),
        np.where(is_event, trace.events.duration_ps[row], rows.duration[at]),
    )


def streams_of(trace: HostTrace, numbers: I64) -> I64:
    """The line of the trace on which each event is, or the work of each scope ran: int64 of shape (n,)."""
    own = len(trace.events)
    is_event = numbers < own
    if is_event.all():
        return trace.events.line[numbers].astype(np.int64)
    found = projection_of(trace)
    stream = found.stream[found.line[np.maximum(numbers - own, 0)]]
    return np.where(is_event, trace.events.line[np.where(is_event, numbers, 0)], stream)


def scope_name(trace: HostTrace, number: int) -> str | None:
    """The name of a type that is numbered on from the types of the trace; None if there is none of that number."""
    names, at = projection_of(trace).scopes, number - len(trace.event_types)
    return names[at] if 0 <= at < len(names) else None


def add_projections(trace: HostTrace, groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups of a trace, with a track for each projected line above the stream to which it belongs."""
    found = projection_of(trace)
    own: dict[int, list[Track]] = {}
    for at, line in enumerate(found.stream.tolist()):
        own.setdefault(line, []).append(_make_track(trace, found, at))
    return tuple(_insert_tracks(group, own) for group in groups) if own else tuple(groups)


def _insert_tracks(group: Group, own: dict[int, list[Track]]) -> Group:
    tracks: list[Track] = []
    for track in group.tracks:
        tracks += [replace(each, detail=track.name) for each in own.get(track.line, [])]
        tracks.append(track)
    return replace(group, tracks=tuple(tracks))


def _make_track(trace: HostTrace, found: Projection, at: int) -> Track:
    line = len(trace.lines) + at
    rows, events = found.index.row_count(at), found.index.event_count(at)
    what = int(found.what[at])
    return Track(f"t{line}", _NAMES[what], "", _KINDS[what], line, rows, events)


def _project(trace: HostTrace) -> Projection:
    scopes = find_scope_ranges(trace)
    parts: tuple[_Ranges | ScopeRanges, ...] = (_lay_annotations(trace), _lay_modules(trace), scopes)
    what = np.repeat([ANNOTATIONS, MODULES, SCOPES], [len(part.event) for part in parts])
    event, stream, start, end = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("event", "stream", "start", "end")
    )
    is_scope = what == SCOPES
    types, kind, inner = trace.events.type[event], trace.events.kind[event], event.copy()
    types[is_scope], kind[is_scope] = len(trace.event_types) + scopes.name, EventKind.SCOPE
    inner[is_scope] = scopes.level
    order = np.lexsort((inner, -(end - start), start, what, stream))
    key = stream[order] * len(_NAMES) + what[order]
    lines, first, line = np.unique(key, return_index=True, return_inverse=True)
    bounds = np.append(first, len(key)).astype(np.int64)
    drawn = np.ones(len(key), np.bool_)
    index = lay_out(start[order], (end - start)[order], drawn, bounds[:-1].copy(), bounds[1:].copy())
    return Projection(
        lines // len(_NAMES), lines % len(_NAMES), line.astype(np.int32), event[order].astype(np.int32), types[order],
        kind[order], index, scopes.names,
    )  # fmt: skip


def _lay_annotations(trace: HostTrace) -> _Ranges:
    return _lay_onto_streams(trace, ranges_and_steps(trace), ~_has_annotations(trace))


def _has_annotations(trace: HostTrace) -> Mask:
    """The lines of devices on which the profiler laid the annotations itself: bool of shape (lines,)."""
    derived = np.flatnonzero(trace.lines.kind == LineKind.DERIVED).tolist()
    planes = [trace.lines.plane[line] for line in derived if holds_annotations(trace.line_label(line))]
    found: Mask = np.isin(trace.lines.plane, planes)
    return found


def _lay_modules(trace: HostTrace) -> _Ranges:
    return _lay_onto_streams(trace, module_calls(trace), np.ones(len(trace.lines), np.bool_))


def _lay_onto_streams(trace: HostTrace, ranges: I64, lines: Mask) -> _Ranges:
    """From when to when each range has work on each of some lines, that of the ranges inside it included."""
    events, links = trace.events, forest(trace)
    label = np.full(len(events), -1, np.int32)
    label[ranges] = np.arange(len(ranges), dtype=np.int32)
    launched = is_device_work(trace) & (links.cause >= 0) & look_up(lines, events.line)
    work = np.flatnonzero(launched) if len(ranges) else ranges[:0]
    inside = spread_labels(trace, label)
    start = events.start_ps[work]
    known = inside[work] >= 0
    level = _unite(inside[work], events.line[work], start, start + events.duration_ps[work], known)
    above = _outer_ranges(trace, ranges, inside)
    parts = [level]
    while len(level.event):
        outer = above[level.event]
        level = _unite(outer, level.stream, level.start, level.end, outer >= 0)
        parts.append(level)
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("event", "stream", "start", "end"))
    event, stream, start, end = columns
    found = _unite(event, stream, start, end, np.ones(len(event), np.bool_))
    return replace(found, event=ranges[found.event])


def _unite(event: I64 | I32, stream: I64 | I32, start: I64, end: I64, chosen: Mask) -> _Ranges:
    """One stretch for each range and stream: from the first start to the last end."""
    key = event[chosen].astype(np.int64) << 32 | stream[chosen]
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if not len(first):
        none = np.empty(0, np.int64)
        return _Ranges(none, none, none, none)
    starts = np.minimum.reduceat(start[chosen][order], first)
    ends = np.maximum.reduceat(end[chosen][order], first)
    return _Ranges(key[first] >> 32, key[first] & 0xFFFFFFFF, starts, ends)


def _outer_ranges(trace: HostTrace, ranges: I64, inside: I32) -> I64:
    """The place of the range around each range, or of the one that caused it; -1 for none.

    Links of a damaged file may form a circle; an outer range that does not start before an inner one is left out.
    """
    links, start = forest(trace), trace.events.start_ps
    parent, cause = links.parent[ranges], links.cause[ranges]
    outer = np.where(parent >= 0, inside[np.maximum(parent, 0)], -1)
    outer = np.where((outer < 0) & (cause >= 0), inside[np.maximum(cause, 0)], outer).astype(np.int64)
    row = ranges[np.maximum(outer, 0)] if len(ranges) else outer
    is_before = (start[row] < start[ranges]) | ((start[row] == start[ranges]) & (row < ranges))
    return np.where(is_before, outer, -1)
