"""The layout of a spool on disk.  The training process writes it, so this module needs only the standard library.

    MAGIC, then records until the end of the file, each:
        uint32 length of the head, uint32 length of the body, little-endian
        head: a JSON object whose "is" names the type of the record
        body: empty, except for chunks

    session   once, first: host, framework, and the capture's clock and the wall clock at the same moment, in ns
    chunk     events of one line: names, kind, stats of single events; body int32 name, int64 begin, int64 end of each
    facts     stats of a plane
    note      a sentence for the user
    cut       what ended the program during the capture
    end       once, last: the clock at the end

Each record is self-contained, so a file that is cut anywhere can be read up to its last complete record.
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
FRAMEWORK_LOST = "framework_part_lost"  # a fact of a capture whose framework recorded and could not store it
WITHOUT_FRAMEWORK = "captured_without_framework"  # a fact of a capture by Stepscope's own tracers alone
WORKERS_PLANE = "/device:CUSTOM:Worker processes (Stepscope)"  # a line for each, with its batches
USAGE_PLANE = "/device:CUSTOM:Processor time of threads (Stepscope)"  # a line for each, with what it used
RAN_NS, QUEUED_NS = "ran_ns", "queued_ns"  # stats: how long a thread ran, and was ready without a processor
SAMPLE_TIMES_PLANE = "/device:CUSTOM:Times of stack samples (Stepscope)"  # one line: a moment for each sample
INTERPRETING_PLANE = "/device:CUSTOM:Interpreter samples (Stepscope)"  # a line for each thread: what samples found
STATEMENTS_PLANE = "/device:CUSTOM:Statement samples (Stepscope)"  # a line for each thread: where in functions it was
RUNS_PYTHON, IN_CALL, EITHER = "python", "call", "either"  # these: it interprets, is in compiled code, or one of these
COMPILATIONS_PLANE = "/device:CUSTOM:Compilations (Stepscope)"  # what TensorFlow traces and PyTorch compiles
GRAPH_LINES_PLANE = "/device:CUSTOM:Lines of graphs (Stepscope)"  # an event for each op of TensorFlow's graphs
BYTES_KEY = "\x00bytes"  # JSON has no bytes: {BYTES_KEY: text of code points below 256}

StatValue = int | float | str | bytes


def format_statement(frame: str, line: int, called: str, flow: str = "") -> str:
    """The name of an event of STATEMENTS_PLANE; `flow` says where its value goes to, such as `to=14,return`."""
    return f"{frame} @{line} {called} {flow}" if flow else f"{frame} @{line} {called}"


@dataclass(frozen=True)
class Chunk:
    """Some events of one line.

    Attributes:
        plane, line, line_id: their place.
        kind: the name of an EventKind, for all of them.
        names: the distinct names.
        name: int32, the row of each event in `names`.
        begin, end: int64, ns of the capture's clock.
        stats: the stats of events, by row.
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
    """The magic bytes and the first record."""
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
        "stats": {str(row): _pack_stats(stats) for row, stats in events.stats.items()},
    }
    return record(
        head, b"".join(_little_endian(column).tobytes() for column in (events.name, events.begin, events.end))
    )


def facts(plane: str, stats: Mapping[str, StatValue]) -> bytes:
    """The record of a plane's stats."""
    return record({"is": "facts", "plane": plane, "stats": _pack_stats(stats)})


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
    """A record with any head and body."""
    text = json.dumps(head, separators=(",", ":")).encode("utf-8", "replace")
    return b"".join((LENGTHS.pack(len(text), len(body)), text, body))


def records(data: bytes) -> Iterator[tuple[dict[str, Any], memoryview]]:
    """Heads and bodies of all complete records.  It stops without an error at the first incomplete record."""
    view, at = memoryview(data), len(MAGIC)
    while at + LENGTHS.size <= len(view):
        head_size, body_size = LENGTHS.unpack_from(view, at)
        begin = at + LENGTHS.size
        at = begin + head_size + body_size
        if at > len(view):
            return
        try:
            head = json.loads(bytes(view[begin : begin + head_size]))
        except (ValueError, RecursionError):
            return
        if not isinstance(head, dict):
            return
        yield head, view[begin + head_size : at]


def unpack_stats(stats: Mapping[str, Any]) -> dict[str, StatValue]:
    """Reverses `_pack_stats`.  Raises KeyError, ValueError or AttributeError for values that are not stats."""
    return {key: _unpack_value(value) for key, value in stats.items()}


def _unpack_value(value: Any) -> StatValue:
    if isinstance(value, dict):
        return bytes(value[BYTES_KEY].encode("latin-1"))
    if isinstance(value, StatValue):
        return value
    raise ValueError(f"{value!r} is not the value of a stat")


def _pack_stats(stats: Mapping[str, StatValue]) -> dict[str, Any]:
    return {
        key: {BYTES_KEY: value.decode("latin-1")} if type(value) is bytes else value for key, value in stats.items()
    }


def _little_endian(column: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return column
    swapped = column[:]
    swapped.byteswap()
    return swapped
