"""Makes traces of XSpace files: bytes in, columns out; damage is skipped and reported.

`decoding` comes before it: it needs no numpy, so that it can run while the modules here are imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stepscope.errors import Problem
from stepscope.formats.naming import join_names
from stepscope.formats.spool.layout import FRAMEWORK_LOST
from stepscope.formats.xspace import classify, schema
from stepscope.formats.xspace.damage import Damage, unreadable_error
from stepscope.formats.xspace.decoding import Bytes, Decoded, decode
from stepscope.formats.xspace.events import EventColumns
from stepscope.formats.xspace.kinds import restore_kinds
from stepscope.formats.xspace.lines import LineReader
from stepscope.formats.xspace.names import Interner
from stepscope.formats.xspace.planes import PlaneReader, StatColumns
from stepscope.kernels import wire
from stepscope.model import (
    Events,
    EventTypes,
    HostTrace,
    LineKind,
    Lines,
    PlaneKind,
    Planes,
    Stats,
    Strings,
    take_events,
)
from stepscope.model.arrays import I32, I64, U8, blocks_of, distinct


def read(
    data: Bytes | Iterator[Bytes] | Decoded,
    source: str,
    host: str,
    *,
    may_be_joined: bool = True,
) -> HostTrace:
    """Reads one XSpace file.  Of profiles that were joined into one file, it reads the first.

    Args:
        data: the file's bytes, uncompressed; any size.  If it is an iterator over one buffer, only the reader holds
            that buffer, and frees its memory before it builds the last columns.  Or what `decode` made of it.
        source: the name to use in messages.
        host: the host's name; if empty, the name in the file is used.
        may_be_joined: whether another profile may follow; not where parts of one profile repeat the names of planes.

    Returns:
        The trace.  If the file is cut or damaged, it holds all that can be read, with `partial` and `problems` set.

    Raises:
        UnreadableError: nothing in the file can be used.
    """
    decoded = data if isinstance(data, Decoded) else decode(data, may_be_joined=may_be_joined)
    trace = _make_trace(decoded, source, host)
    for begin, size in decoded.joined:
        joined = _joined_problem(begin, size, source)
        trace = replace(trace, problems=(joined, *trace.problems), partial=True)
    return trace


def _make_trace(decoded: Decoded, source: str, host: str) -> HostTrace:
    planes, lines, strings = decoded.planes, decoded.lines, decoded.strings
    if planes is None or lines is None or strings is None:
        raise unreadable_error(decoded.head, source)
    damage = Damage(decoded.size)
    damage.add_outermost(decoded.failures.at[0], decoded.failures.codes[0])
    for failures in planes.failures:
        damage.add(np.asarray(failures.at), np.asarray(failures.codes), np.asarray(failures.ends))
    for lost in planes.lost_stats:
        damage.add_stats(lost.count, lost.first, lost.code)
    columns = EventColumns.of(lines)
    types = _type_table(planes, columns)
    columns.sort()
    columns.note_damage(lines, damage)
    of_events = Stats(columns.stat_name, columns.stat_tag, columns.stat_value, columns.stat_offsets)
    of_types = _stats_of(decoded.type_stats, np.asarray(planes.types.stats)[:, wire.STAT_ENTRY], len(types))
    of_planes = _stats_of(decoded.plane_stats, np.asarray(planes.plane_stat_ranges[0]), len(planes.names))
    table = _finish_strings(strings, of_events)
    plane_table = _plane_table(planes)
    line_table = _line_table(decoded, planes, lines, columns, plane_table, table)
    events = _event_table(table, columns, types, line_table, plane_table, of_events)
    of_types = restore_kinds(events, of_types, table)
    framework_lost = _find_lost_framework(table, source)
    repeated = _find_repeated_planes(plane_table, line_table, table, source)
    start = lines.session_start_ns
    return join_python_calls(
        HostTrace(
            host=host or next(filter(None, decoded.texts[schema.SPACE_HOSTNAMES]), "localhost"),
            planes=plane_table,
            lines=line_table,
            events=events,
            event_types=types,
            event_stats=of_events,
            type_stats=of_types,
            plane_stats=of_planes,
            strings=table,
            start_unix_ns=start,
            stop_unix_ns=decoded.declared_stop if start == decoded.declared_start else None,
            source=source,
            problems=(
                *damage.problems(len(events), source),
                *repeated,
                *framework_lost,
            ),
            partial=damage.partial or bool(framework_lost or repeated),
            recorder_messages=tuple(decoded.texts[schema.SPACE_ERRORS] + decoded.texts[schema.SPACE_WARNINGS]),
            framework=classify.detect_framework(table),
            left_out=decoded.left_out,
        )
    )


def _joined_problem(begin: int, size: int, source: str) -> Problem:
    return Problem(
        "joined",
        "another profile begins here",
        path=source,
        offset=begin,
        kept="the first profile",
        lost=f"the {size - begin:,} bytes from there on",
        hint="files were joined; give each of them as a file of its own",
    )


def _find_repeated_planes(planes: Planes, lines: Lines, strings: Strings, source: str) -> list[Problem]:
    """A warning if planes with events have one name: perhaps profiles that do not say when they started were joined."""
    used = distinct(lines.plane[lines.event_end > lines.event_begin])
    names, counts = np.unique(planes.name[used], return_counts=True)
    repeated = [strings[name] for name in names[(counts > 1) & (names > 0)].tolist()]
    if not repeated:
        return []
    reason = f"several parts of this file are named {join_names(repeated, limit=3)}"
    return [
        Problem(
            "repeated-planes",
            reason,
            path=source,
            kept="the events of all of them, as if of one profile",
            lost="which of them belong together",
            hint="two profiles were probably joined; give each of them as a file of its own",
        )
    ]


def _find_lost_framework(strings: Strings, source: str) -> list[Problem]:
    """A warning if the framework's profiler recorded and its part could not be stored, as the capture has noted."""
    if strings.find(FRAMEWORK_LOST) < 0:
        return []
    return [
        Problem(
            "framework-lost",
            "the part of the framework's own profiler could not be stored",
            path=source,
            kept="what Stepscope recorded itself",
            lost="the ops of the framework and the kernels of its devices",
            hint="free space in the temporary folder, or set TMPDIR to one on a larger disk, and record again",
        )
    ]


def _stats_of(columns: StatColumns, owner: I64, n_owners: int) -> Stats:
    """The stats of some owners, given the owner of each; these ascend."""
    name, tag, value = map(np.asarray, columns)
    return Stats(name, tag, value, np.searchsorted(owner, np.arange(n_owners + 1)))


def _type_table(planes: PlaneReader, columns: EventColumns) -> EventTypes:
    """The event types of the metadata, and a nameless one for each id without metadata."""
    plane, ids = [np.asarray(planes.types.plane)], [np.asarray(planes.types.columns)[:, wire.META_ID]]
    lost = np.flatnonzero(columns.type < 0)
    if len(lost):
        next_row = len(planes.types)
        raw = columns.unnamed
        of_plane = np.asarray(planes.lines[0])[np.searchsorted(columns.event_base, lost, side="right") - 1]
        rows, first = np.unique(of_plane, return_index=True)
        for row, a, b in zip(rows, first, np.append(first[1:], len(lost)), strict=True):
            unique, inverse = np.unique(raw[a:b], return_inverse=True)
            columns.type[lost[a:b]] = next_row + inverse
            next_row += len(unique)
            plane.append(np.full(len(unique), row))
            ids.append(unique)
    nameless = np.zeros(sum(len(part) for part in ids[1:]), np.int32)
    return EventTypes(
        name=np.concatenate([np.asarray(planes.type_name), nameless]),
        display_name=np.concatenate([np.asarray(planes.type_display), nameless]),
        plane=np.concatenate(plane).astype(np.int32),
        metadata_id=np.concatenate(ids),
    )


def _finish_strings(strings: Interner, stats: Stats) -> Strings:
    """The finished string table.  It also sets the names of the stats that count an aggregate's occurrences."""
    blob, offsets = np.empty(strings.table.size, np.uint8), np.empty(strings.count + 1, np.int64)
    strings.table.copy(blob, offsets)
    table, row = Strings(blob, offsets), -1
    for part in blocks_of(len(stats)):
        counts = np.flatnonzero(stats.name[part] == wire.NAME_OCCURRENCES)
        if len(counts):
            table, row = (table, row) if row >= 0 else table.add_text(schema.OCCURRENCES_STAT.encode())
            stats.name[part][counts] = row
    return table


def _event_table(
    strings: Strings, columns: EventColumns, types: EventTypes, lines: Lines, planes: Planes, stats: Stats
) -> Events:
    type_kind, type_traits = classify.classify_types(strings, types.name, types.plane, planes.kind)
    line = np.repeat(np.arange(len(lines), dtype=np.int32), np.diff(columns.event_base))
    kind, traits = classify.classify_events(columns.type, line, columns.flags, type_kind, type_traits, lines.kind)
    events = Events(columns.start_ps, columns.duration_ps, columns.type, line, kind, traits)
    classify.mark_16bit(strings, events, types, stats)
    classify.mark_compiles(strings, events, stats)
    return events


def _plane_table(planes: PlaneReader) -> Planes:
    kinds = [schema.plane_kind(name) for name in planes.names]
    return Planes(
        plane_id=np.array(planes.plane_id, np.int64),
        name=np.array(planes.plane_name, np.int32),
        kind=np.array([kind for kind, _ in kinds], np.uint8),
        ordinal=np.array([ordinal for _, ordinal in kinds], np.int32),
    )


def _line_table(
    decoded: Decoded, planes: PlaneReader, lines: LineReader, columns: EventColumns, of: Planes, strings: Strings
) -> Lines:
    header, plane = np.asarray(lines.header), np.array(planes.lines[0], np.int32)
    names = np.array(decoded.line_names, np.int32)
    return Lines(
        plane=plane,
        line_id=header[:, wire.LINE_ID].copy(),
        name=names,
        display_name=np.array(decoded.line_displays, np.int32),
        display_id=header[:, wire.DISPLAY_ID].copy(),
        start_ns=header[:, wire.START_NS].copy(),
        duration_ps=header[:, wire.DURATION_PS].copy(),
        kind=_line_kinds(of.kind[plane], names, header[:, wire.LINE_ID], strings),
        event_begin=columns.event_base[:-1].copy(),
        event_end=columns.event_base[1:].copy(),
    )


def _line_kinds(plane_kinds: U8, names: I32, ids: I64, strings: Strings) -> U8:
    rows = zip(plane_kinds.tolist(), names.tolist(), ids.tolist(), strict=True)
    kinds = [schema.line_kind(PlaneKind(plane), strings[name], number) for plane, name, number in rows]
    return np.array(kinds, np.uint8)


# ---- Python calls of the main thread ---------------------------------------------------------------------------------
# Puts the Python calls of the main thread on the line that has the rest of that thread.
#
# Stepscope records the Python calls of TensorFlow programs itself, since TensorFlow's profiler records none where a
# program starts it.  In the file they are a plane of their own, with the number of the thread; TensorFlow writes a
# hash.  Only on one line do ops nest in the calls that made them.

_MAIN_THREAD = "MainThread"  # as Python names it
_PYTHON_THREAD = "python"  # as the system names the thread that runs the interpreter


def join_python_calls(trace: HostTrace) -> HostTrace:
    """The trace with the main thread's Python calls on that thread's line; the same trace if there are none, or no line
    of the host that is certainly that thread."""
    calls = _lines_called(trace, schema.PYTHON_PLANE, _MAIN_THREAD)
    threads = _lines_called(trace, schema.HOST_PLANE, _PYTHON_THREAD)
    if len(calls) != 1 or not len(threads):
        return trace
    events = trace.lines.event_end[threads] - trace.lines.event_begin[threads]
    line = trace.events.line.copy()
    line[int(trace.lines.event_begin[calls[0]]) : int(trace.lines.event_end[calls[0]])] = threads[events.argmax()]
    moved = replace(trace, events=replace(trace.events, line=line), _derived={})
    rows = np.arange(len(line))
    return take_events(moved, rows, trace.events.start_ps, trace.events.duration_ps)[0]


def _lines_called(trace: HostTrace, plane: str, name: str) -> I64:
    """The lines with events of a plane and a name."""
    planes, names = trace.strings.find(plane), trace.strings.find(name)
    if planes <= 0 or names <= 0:
        return np.empty(0, np.int64)
    of_plane = trace.planes.name[trace.lines.plane] == planes
    used = (trace.lines.event_end > trace.lines.event_begin) & (trace.lines.kind == LineKind.THREAD)
    found: I64 = np.flatnonzero(of_plane & used & (trace.lines.name == names))
    return found
