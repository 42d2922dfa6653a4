"""Speedscope's JSON: a profile for each track, with the start and the end of each event.

Times are microseconds with all their decimals.  Events of a line that overlap without nesting are on another track.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from stepscope.export.content import Content, contents, display_names
from stepscope.export.fragments import Fragments, Table, no_stats
from stepscope.model import HostTrace
from stepscope.model.arrays import I64
from stepscope.vocabulary.python import place_of

SCHEMA = "https://www.speedscope.app/file-format-schema.json"

_AT_ONCE = 1 << 16


def pieces(traces: Iterable[HostTrace], hosts: int = 1) -> Iterator[bytes]:
    """The file in pieces."""
    frames: list[bytes] = []
    yield b'{"$schema":"' + SCHEMA.encode() + b'","exporter":"stepscope","profiles":['
    comma = b""
    for content in contents(traces, hosts):
        yield from _profiles(content, len(frames), comma)
        frames += _frames(content)
        comma = b"," if content.tracks or comma else b""
    yield b'\n],"shared":{"frames":[\n' + b",\n".join(frames) + b"]}}\n"


def _frames(content: Content) -> Iterator[bytes]:
    """The frame of each event type, whether an event has it or not."""
    for text in content.trace.strings.texts(display_names(content.trace)):
        name, file, line = place_of(text)
        place = {} if file is None else {"file": file, "line": line}
        yield msgspec.json.encode({"name": name or "(no name)", **place})


def _profiles(content: Content, first_frame: int, comma: bytes) -> Iterator[bytes]:
    """The profile of each track."""
    table = _line_parts(content, first_frame)
    track = content.track[content.order >> 1]
    by_track = np.argsort(track, kind="stable")
    bounds = np.searchsorted(track[by_track], np.arange(len(content.tracks) + 1)).tolist()
    end_us = float(content.time_ps(np.array([content.trace.span_ps()[1]]))[0]) / 1e6
    for at, one in enumerate(content.tracks):
        head = {"type": "evented", "name": f"{one.process.name} {one.name}".strip(), "unit": "microseconds"}
        yield comma + b"\n" + msgspec.json.encode(head | {"startValue": 0, "endValue": end_us})[:-1] + b',"events":['
        comma = b","
        order = content.order[by_track[bounds[at] : bounds[at + 1]]]
        for first in range(0, len(order), _AT_ONCE):
            lines = _event_lines(content, order[first : first + _AT_ONCE], table)
            yield lines if first else lines[1:]  # without the comma before the first
        yield b"]}"


def _line_parts(content: Content, first_frame: int) -> Table:
    """What stands before the time of an event: of type `i` fragment 2 * i + 1 for a start, the next for an end."""
    fragments = Fragments()
    for frame in range(first_frame, first_frame + len(content.trace.event_types)):
        fragments.add(f',\n{{"type":"{letter}","frame":{frame},"at":'.encode() for letter in "OC")
    fragments.add([b"}"])
    return fragments.table()


def _event_lines(content: Content, order: I64, table: Table) -> bytes:
    """A line for each start and each end."""
    events, row, is_end = content.trace.events, content.rows[order >> 1], order & 1
    parts = np.zeros((len(order), 3), np.int32)
    parts[:, 0] = 2 * events.type[row] + 1 + is_end
    time = events.start_ps[row] + is_end * events.duration_ps[row]
    glue = np.array([0, len(table.sizes) - 1], np.int32)
    return table.lines(parts, content.time_ps(time), np.full(len(order), -1), glue, no_stats(len(order)))
