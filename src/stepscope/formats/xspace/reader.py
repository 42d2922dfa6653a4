"""Reads XSpace files: bytes in, columns out; damage is skipped and reported.

The format dictates the order, since a plane's names may come after its lines: metadata is read first, then events are
counted, then decoded directly into their final place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stepscope.errors import Problem
from stepscope.formats.heads import CRLF_START
from stepscope.formats.naming import join_names
from stepscope.formats.spool.layout import FRAMEWORK_LOST
from stepscope.formats.xspace import classify, schema
from stepscope.formats.xspace.damage import Damage, unreadable_error
from stepscope.formats.xspace.kinds import restore_kinds
from stepscope.formats.xspace.lines import EventColumns, LineReader
from stepscope.formats.xspace.names import Interner
from stepscope.formats.xspace.pages import Pages
from stepscope.formats.xspace.planes import Bytes, Fields, PlaneReader
from stepscope.formats.xspace.threads import join_python_calls
from stepscope.kernels import wire
from stepscope.model import Events, EventTypes, HostTrace, Lines, PlaneKind, Planes, Stats, StatTag, Strings
from stepscope.model.arrays import I32, I64, U8, blocks_of, distinct


def read(
    data: bytes | Iterator[bytes | memoryview], source: str, host: str, *, may_be_joined: bool = True
) -> HostTrace:
    """Reads one XSpace file.  Of profiles that were joined into one file, it reads the first.

    Args:
        data: the file's bytes, uncompressed; any size.  If it is an iterator over one buffer, only the reader holds
            that buffer, and frees its memory before it builds the last columns.
        source: the name to use in messages.
        host: the host's name; if empty, the name in the file is used.
        may_be_joined: whether another profile may follow; not where parts of one profile repeat the names of planes.

    Returns:
        The trace.  If the file is cut or damaged, it holds all that can be read, with `partial` and `problems` set.

    Raises:
        UnreadableError: nothing in the file can be used.
    """
    content = next(data) if isinstance(data, Iterator) else data
    pages = Pages(content if isinstance(data, Iterator) else None)
    buf = np.frombuffer(content, np.uint8)
    buf.flags.writeable = False  # as it is for bytes; the kernels accept one type of array
    damage = Damage(len(buf))
    space = _scan_space(buf, damage)
    strings = Interner(buf)
    _, begins, ends = space.messages(schema.SPACE_PLANES)
    planes = PlaneReader(buf, (begins, ends), strings, damage)
    if buf[: len(CRLF_START)].tobytes() == CRLF_START or not (len(planes.lines[0]) or planes.plane_name.any()):
        raise unreadable_error(buf, source)
    plane_stats = planes.plane_stats()
    another = _find_another_profile(space, begins, planes, plane_stats) if may_be_joined else None
    if another is not None:
        first = read(iter([memoryview(content)[:another]]), source, host)
        joined = _joined_problem(another, len(buf), source)
        return replace(first, problems=(joined, *first.problems), partial=True)
    declared_start, stop = _session_times(planes, plane_stats)
    lines = LineReader(buf, pages, planes.planes, planes.lines[1:], declared_start)
    line_names = strings.add(lines.header[:, wire.LINE_NAME]), strings.add(lines.header[:, wire.DISPLAY_NAME])
    columns = lines.decode(strings)
    types = _type_table(planes, lines, columns)
    lines.sort(columns)
    lines.note_damage(damage)
    of_events = Stats(columns.stat_name, columns.stat_tag, columns.stat_value, columns.stat_offsets)
    of_types = planes.type_stats(len(types))
    table = _finish_strings(strings, of_events)
    line_table = _line_table(planes, lines, *line_names, table)
    texts = {number: _read_texts(buf, space, number) for number in schema.SPACE_TEXTS}
    planes.release_buffer()
    lines.release_buffer()
    del data, content, buf, strings  # frees the file's memory for the columns below
    events = _event_table(table, columns, lines, types, line_table, planes, of_events)
    of_types = restore_kinds(events, of_types, table)
    framework_lost = _find_lost_framework(table, source)
    repeated = _find_repeated_planes(planes, line_table, table, source)
    return join_python_calls(
        HostTrace(
            host=host or next(filter(None, texts[schema.SPACE_HOSTNAMES]), "localhost"),
            planes=_plane_table(planes),
            lines=line_table,
            events=events,
            event_types=types,
            event_stats=of_events,
            type_stats=of_types,
            plane_stats=plane_stats,
            strings=table,
            start_unix_ns=lines.session_start_ns,
            stop_unix_ns=stop if lines.session_start_ns == declared_start else None,
            source=source,
            problems=(
                *damage.problems(len(events), source),
                *repeated,
                *framework_lost,
            ),
            partial=damage.partial or bool(framework_lost or repeated),
            recorder_messages=tuple(texts[schema.SPACE_ERRORS] + texts[schema.SPACE_WARNINGS]),
            framework=classify.detect_framework(table),
        )
    )


def _find_another_profile(space: Fields, begins: I64, planes: PlaneReader, stats: Stats) -> int | None:
    """Where the second of several joined profiles begins; None if there is one.

    Joined files are one valid file, and so is a profile to which planes were appended.  But only a profile says when
    its session started, and it says that once.  The next one begins with the first plane behind that whose name was
    there before.
    """
    sessions = distinct(_declared_times(planes, stats, schema.START_TIME_STAT)[0])
    if len(sessions) < 2:
        return None
    _, first_of_name = np.unique(planes.plane_name, return_index=True)
    repeats = np.ones(len(begins), np.bool_)
    repeats[first_of_name] = False
    repeats[: sessions[0] + 1] = False
    ends = space.columns[:, wire.FIELD_STOP]
    return int(ends[ends <= begins[np.argmax(repeats)]].max())


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


def _find_repeated_planes(planes: PlaneReader, lines: Lines, strings: Strings, source: str) -> list[Problem]:
    """A warning if planes with events have one name: perhaps profiles that do not say when they started were joined."""
    used = distinct(lines.plane[lines.event_end > lines.event_begin])
    names, counts = np.unique(planes.plane_name[used], return_counts=True)
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


def _scan_space(buf: Bytes, damage: Damage) -> Fields:
    fields = Fields.scan(buf, np.zeros(1, np.int64), np.full(1, len(buf)))
    damage.add_outermost(int(fields.bad_at[0]), int(fields.bad_code[0]))
    return fields


def _read_texts(buf: Bytes, space: Fields, number: int) -> list[str]:
    _, begins, ends = space.messages(number)
    return [buf[a:b].tobytes().decode("utf-8", "replace") for a, b in zip(begins, ends, strict=True)]


def _session_times(planes: PlaneReader, stats: Stats) -> tuple[int | None, int | None]:
    """Start and end of the session in ns since 1970, as the file declares them; None if unknown."""

    def last(name: str) -> int | None:
        _, values = _declared_times(planes, stats, name)
        return int(values[-1]) if len(values) else None

    return last(schema.START_TIME_STAT), last(schema.STOP_TIME_STAT)


def _declared_times(planes: PlaneReader, stats: Stats, name: str) -> tuple[I64, I64]:
    """The planes that declare a time of their session, and that time: int64 of shape (stats of this name,)."""
    plane = np.repeat(np.arange(len(planes.planes)), np.diff(stats.offsets))
    environment = np.array([each.kind == PlaneKind.ENVIRONMENT for each in planes.planes], np.bool_)
    whole = np.isin(stats.tag, (StatTag.INT, StatTag.UINT))
    declared = environment[plane] & whole & (stats.value > 0) & (stats.name == planes.strings.find(name))
    return plane[declared], stats.value[declared]


def _type_table(planes: PlaneReader, lines: LineReader, columns: EventColumns) -> EventTypes:
    """The event types of the metadata, and a nameless one for each id without metadata."""
    plane, ids = [planes.types.plane], [planes.types.ids]
    lost = np.flatnonzero(columns.type < 0)
    if len(lost):
        next_row = len(planes.types)
        raw = columns.unnamed
        of_plane = planes.lines[0][np.searchsorted(lines.event_base, lost, side="right") - 1]
        rows, first = np.unique(of_plane, return_index=True)
        for row, a, b in zip(rows, first, np.append(first[1:], len(lost)), strict=True):
            unique, inverse = np.unique(raw[a:b], return_inverse=True)
            columns.type[lost[a:b]] = next_row + inverse
            next_row += len(unique)
            plane.append(np.full(len(unique), row))
            ids.append(unique)
    nameless = np.zeros(sum(len(part) for part in ids[1:]), np.int32)
    return EventTypes(
        name=np.concatenate([planes.type_name, nameless]),
        display_name=np.concatenate([planes.type_display, nameless]),
        plane=np.concatenate(plane).astype(np.int32),
        metadata_id=np.concatenate(ids),
    )


def _finish_strings(strings: Interner, stats: Stats) -> Strings:
    """The finished string table.  It also sets the names of the stats that count an aggregate's occurrences."""
    table = strings.strings()
    row = -1
    for part in blocks_of(len(stats)):
        counts = np.flatnonzero(stats.name[part] == wire.NAME_OCCURRENCES)
        if len(counts):
            table, row = (table, row) if row >= 0 else table.add_text(schema.OCCURRENCES_STAT.encode())
            stats.name[part][counts] = row
    return table


def _event_table(
    strings: Strings,
    columns: EventColumns,
    lines: LineReader,
    types: EventTypes,
    line_table: Lines,
    planes: PlaneReader,
    stats: Stats,
) -> Events:
    plane_kinds = np.array([plane.kind for plane in planes.planes], np.uint8)
    type_kind, type_traits = classify.classify_types(strings, types.name, types.plane, plane_kinds)
    line = np.repeat(np.arange(len(line_table), dtype=np.int32), np.diff(lines.event_base))
    kind, traits = classify.classify_events(columns.type, line, columns.flags, type_kind, type_traits, line_table.kind)
    events = Events(columns.start_ps, columns.duration_ps, columns.type, line, kind, traits)
    classify.mark_16bit(strings, events, types, stats)
    classify.mark_compiles(strings, events, stats)
    return events


def _plane_table(planes: PlaneReader) -> Planes:
    return Planes(
        plane_id=planes.plane_id,
        name=planes.plane_name,
        kind=np.array([plane.kind for plane in planes.planes], np.uint8),
        ordinal=np.array([plane.ordinal for plane in planes.planes], np.int32),
    )


def _line_table(planes: PlaneReader, lines: LineReader, names: I32, display_names: I32, strings: Strings) -> Lines:
    header = lines.header
    return Lines(
        plane=planes.lines[0].astype(np.int32),
        line_id=header[:, wire.LINE_ID].copy(),
        name=names,
        display_name=display_names,
        display_id=header[:, wire.DISPLAY_ID].copy(),
        start_ns=header[:, wire.START_NS].copy(),
        duration_ps=header[:, wire.DURATION_PS].copy(),
        kind=_line_kinds(planes, lines, names, strings),
        event_begin=lines.event_base[:-1].copy(),
        event_end=lines.event_base[1:].copy(),
    )


def _line_kinds(planes: PlaneReader, lines: LineReader, names: I32, strings: Strings) -> U8:
    rows = zip(planes.lines[0].tolist(), names.tolist(), lines.header[:, wire.LINE_ID].tolist(), strict=True)
    kinds = [schema.line_kind(planes.planes[plane].kind, strings[name], number) for plane, name, number in rows]
    return np.array(kinds, np.uint8)
