"""How a spool lies on the disk.  Written in the training process, so this needs nothing but the standard library.

    MAGIC, then records until the end of the file, each:
        uint32 length of the head, uint32 length of the body, little-endian
        head: JSON, an object whose "is" tells what the record is
        body: empty but for chunks

    session   once, first: host, framework, the clock's reading and the wall clock's at one moment, in ns
    chunk     events of one line: names, kind, stats of single events; body int32 name, int64 begin, int64 end of each
    facts     stats of a plane
    note      a sentence for the user
    cut       what ended the program during the capture
    end       once, last: the clock's reading at the end

Every record is complete in itself, so a file that ends anywhere is good up to its last complete record.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from stepscope.records import dataclass

MAGIC = b"stepscope spool 1\n"
LENGTHS = struct.Struct("<II")
EVENT_BYTES = 4 + 8 + 8
WITHOUT_FRAMEWORK = "captured_without_framework"  # a fact of a capture by Stepscope's own tracers alone
BYTES_KEY = "\x00bytes"  # JSON has no bytes: {BYTES_KEY: text of code points below 256}

StatValue = int | float | str | bytes


@dataclass(frozen=True)
class Chunk:
    """Some events of one line.

    Attributes:
        plane, line, line_id: where they stand.
        kind: the name of an EventKind, for all of them.
        names: the distinct names.
        name: int32, the row in `names` of each event.
        begin, end: int64, ns of the capture's clock.
        stats: row of an event -> its stats.
    """

    plane: str
    line: str
    line_id: int
    kind: str
    names: list[str]
    name: array[int] = field(default_factory=lambda: array("i"))
    begin: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    stats: dict[int, dict[str, StatValue]] = field(default_factory=dict)


def session(host: str, framework: str, clock_ns: int, unix_ns: int) -> bytes:
    """The first record, with the magic before it."""
    return MAGIC + record({"is": "session", "host": host, "framework": framework, "clock": clock_ns, "unix": unix_ns})


def chunk(events: Chunk) -> bytes:
    """The record of a chunk."""
    head = {
        "is": "chunk",
        "plane": events.plane,
        "line": events.line,
        "id": events.line_id,
        "kind": events.kind,
        "names": events.names,
        "stats": {str(row): _packed(stats) for row, stats in events.stats.items()},
    }
    return record(head, b"".join(_little(column).tobytes() for column in (events.name, events.begin, events.end)))


def facts(plane: str, stats: Mapping[str, StatValue]) -> bytes:
    """The record of a plane's stats."""
    return record({"is": "facts", "plane": plane, "stats": _packed(stats)})


def note(text: str) -> bytes:
    """The record of a sentence for the user."""
    return record({"is": "note", "text": text})


def cut(by: str) -> bytes:
    """The record of what ended the program during the capture, such as `os._exit`."""
    return record({"is": "cut", "by": by})


def end(clock_ns: int) -> bytes:
    """The last record."""
    return record({"is": "end", "clock": clock_ns})


def record(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    """One record."""
    text = json.dumps(head, separators=(",", ":")).encode("utf-8", "replace")
    return b"".join((LENGTHS.pack(len(text), len(body)), text, body))


def records(data: bytes) -> Iterator[tuple[dict[str, Any], memoryview]]:
    """Heads and bodies of all complete records; ends quietly where the first incomplete one begins."""
    view, at = memoryview(data), len(MAGIC)
    while at + LENGTHS.size <= len(view):
        head, body = LENGTHS.unpack_from(view, at)
        begin = at + LENGTHS.size
        at = begin + head + body
        if at > len(view):
            return
        try:
            told = json.loads(bytes(view[begin : begin + head]))
        except (ValueError, RecursionError):
            return
        if not isinstance(told, dict):
            return
        yield told, view[begin + head : at]


def unpacked(stats: Mapping[str, Any]) -> dict[str, StatValue]:
    """Stats as they were before `_packed`.  Raises KeyError, ValueError or AttributeError for what are none."""
    return {key: _unpacked_value(value) for key, value in stats.items()}


def _unpacked_value(value: Any) -> StatValue:
    if isinstance(value, dict):
        return bytes(value[BYTES_KEY].encode("latin-1"))
    if isinstance(value, StatValue):
        return value
    raise ValueError(f"{value!r} is no value of a stat")


def _packed(stats: Mapping[str, StatValue]) -> dict[str, Any]:
    return {
        key: {BYTES_KEY: value.decode("latin-1")} if isinstance(value, bytes) else value for key, value in stats.items()
    }


def _little(column: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return column
    swapped = column[:]
    swapped.byteswap()
    return swapped
