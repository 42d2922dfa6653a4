"""The first part of reading an XSpace file: from bytes to the tables of the kernels, without numpy.

The format dictates the order, since a plane's names may come after its lines: metadata is read first, then events are
counted, then decoded directly into their final place.  `reader` makes the trace of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from stepscope.formats.heads import CRLF_START
from stepscope.formats.xspace import schema
from stepscope.formats.xspace.lines import LineReader
from stepscope.formats.xspace.names import Interner
from stepscope.formats.xspace.planes import Failures, PlaneFields, PlaneReader, StatColumns
from stepscope.kernels import wire
from stepscope.records import dataclass

_INTEGERS = (2, 3)  # the tags of an unsigned and of a signed integer, as in `StatTag`
_HEAD_BYTES = 64

Bytes = bytes | memoryview | wire.Source


@dataclass
class Decoded:
    """A file as it is decoded.

    Attributes:
        size, head: the file's size, and its first bytes.
        failures: where reading of the file itself failed.
        planes: its planes; None if nothing in the file can be used, and then all that follows is empty.
        lines: its lines, with their events.
        line_names, line_displays: int32 of shape (lines,), string rows.
        plane_stats: the stats of the planes; type_stats: those of the event types.
        texts: the texts that the file itself has, by the numbers of their fields.
        strings: the string table.
        declared_start, declared_stop: of the session, in ns since 1970; None if unknown.
        joined: where the next of several joined profiles begins, and the size of the file that it is in.
        left_out: the names of stats that events may have in the file and have not here.
    """

    size: int
    head: bytes
    failures: Failures
    planes: PlaneReader | None = None
    lines: LineReader | None = None
    line_names: Any = ()
    line_displays: Any = ()
    plane_stats: StatColumns = ((), (), ())
    type_stats: StatColumns = ((), (), ())
    texts: dict[int, list[str]] = field(default_factory=dict)
    strings: Interner | None = None
    declared_start: int | None = None
    declared_stop: int | None = None
    joined: list[tuple[int, int]] = field(default_factory=list)
    left_out: frozenset[str] = frozenset()


def decode(
    data: Bytes | Iterator[Bytes], *, may_be_joined: bool = True, left_out: frozenset[str] = frozenset()
) -> Decoded:
    """Decodes one XSpace file.  Of profiles that were joined into one file, it decodes the first.

    Args:
        data: the file's bytes, uncompressed; any size.  If it is an iterator over one of these, only the decoder holds
            it, and frees its memory at the end.
        may_be_joined: whether another profile may follow; not where parts of one profile repeat the names of planes.
        left_out: names of stats that are not kept of events.
    """
    content = next(data) if isinstance(data, Iterator) else data
    source = content if isinstance(content, wire.Source) else wire.Source(content)
    space = PlaneFields.scan(source, array("q", [0]), array("q", [source.size]), schema.SPACE_PLANES)
    decoded = Decoded(source.size, source.head(_HEAD_BYTES), space.failures, left_out=left_out)
    strings = Interner(source.view())
    _, begins, ends = space.messages(schema.SPACE_PLANES)
    planes = PlaneReader(source, (begins, ends), strings, left_out)
    if decoded.head.startswith(CRLF_START) or not (len(planes.lines[0]) or any(planes.plane_name)):
        return decoded
    decoded.plane_stats = planes.plane_stats()
    starts = _declared_times(decoded.plane_stats, planes, strings, schema.START_TIME_STAT)
    stops = _declared_times(decoded.plane_stats, planes, strings, schema.STOP_TIME_STAT)
    another = _find_another_profile(space, begins, planes, [plane for plane, _ in starts]) if may_be_joined else None
    if another is not None:
        first = decode(source.take(another), left_out=left_out)
        first.joined.append((another, source.size))
        return first
    decoded.declared_start = starts[-1][1] if starts else None
    decoded.declared_stop = stops[-1][1] if stops else None
    lines = LineReader(source, planes.lines_of_planes(), planes.lines[1:], decoded.declared_start)
    decoded.line_names = strings.add(lines.header[:, wire.LINE_NAME])
    decoded.line_displays = strings.add(lines.header[:, wire.DISPLAY_NAME])
    lines.decode(strings, bool(left_out))
    decoded.type_stats = planes.type_stats()
    decoded.texts = {number: _read_texts(source.view(), space, number) for number in schema.SPACE_TEXTS}
    planes.release_buffer()
    lines.release_source()
    strings.release_buffer()
    decoded.planes, decoded.lines, decoded.strings = planes, lines, strings
    return decoded


def _find_another_profile(space: PlaneFields, begins: Any, planes: PlaneReader, of_sessions: list[int]) -> int | None:
    """Where the second of several joined profiles begins; None if there is one.

    Joined files are one valid file, and so is a profile to which planes were appended.  But only a profile says when
    its session started, and it says that once.  The next one begins with the first plane behind that whose name was
    there before.

    Args:
        of_sessions: the planes that say when a session started, ascending.
    """
    if len(set(of_sessions)) < 2:
        return None
    seen: set[int] = set()
    repeated = []
    for plane, name in enumerate(planes.plane_name):
        if name in seen and plane > of_sessions[0]:
            repeated.append(plane)
        seen.add(name)
    begin = begins[repeated[0] if repeated else 0]
    ends: list[int] = [end for end in space.columns[:, wire.FIELD_STOP] if end <= begin]
    return max(ends)


def _declared_times(stats: StatColumns, planes: PlaneReader, strings: Interner, stat: str) -> list[tuple[int, int]]:
    """The planes that declare a time of their session, and that time, in the order of the file."""
    wanted = strings.find(stat)
    environment = [name == schema.ENVIRONMENT_PLANE for name in planes.names]
    names, tags, values = stats
    return [
        (plane, values[row])
        for row, plane in enumerate(planes.plane_stat_ranges[0])
        if environment[plane] and names[row] == wanted and tags[row] in _INTEGERS and values[row] > 0
    ]


def _read_texts(buf: memoryview, space: PlaneFields, number: int) -> list[str]:
    _, begins, ends = space.messages(number)
    return [bytes(buf[a:b]).decode("utf-8", "replace") for a, b in zip(begins, ends, strict=True)]
