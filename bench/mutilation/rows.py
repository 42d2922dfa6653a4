"""A recording as the rows of its file, so that rows can be taken away, moved and renamed before a reader sees them.

Kineto's JSON and XSpace files are both read into `Recording` and written from it.  What no mutilation touches comes out
as it went in.  Nothing here knows how Stepscope reads a file.
"""

from __future__ import annotations

import copy
import gzip
import json
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import wire

PS_PER_US = 1_000_000
PS_PER_NS = 1_000

# What a row tells, as far as a mutilation asks.
PYTHON, OP, MARK, CALL, WAIT, STREAM_WAIT, DEVICE, DEVICE_SPAN, LINK, OTHER = (
    "python", "op", "mark", "call", "wait", "stream wait", "device", "device span", "link", "other",
)  # fmt: skip
HOST_ROWS = {PYTHON, OP, MARK, CALL, WAIT}

_DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
_CALL_CATEGORIES = {"cuda_runtime", "cuda_driver", "runtime", "hip_runtime"}
_LINK_STATS = {"correlation", "External id", "external id", "correlation_id", "_p", "_c", "_pt", "_ct", "run_id", "id",
               "parent_id", "group_id", "flow"}  # fmt: skip


@dataclass
class Row:
    """One row of a file.

    Attributes:
        what: one of the words above.
        place: the process or plane; a text or a number in Kineto's files.
        line: the thread or stream, which is a key of `Recording.lines` for XSpace.
        start, duration: ps; `duration` is None for a row without one.
        stats: name to value; values of XSpace are (field number, value).
        raw: the rest of the row: the JSON object, or the fields of the event's type.
    """

    what: str
    place: Any
    line: Any
    name: str
    start: int
    duration: int | None
    stats: dict[str, Any]
    raw: Any

    @property
    def end(self) -> int:
        """Where it ends, ps."""
        return self.start + (self.duration or 0)


@dataclass
class Recording:
    """All rows of a file, and what stands around them.

    `form` is "kineto" or "xspace", `head` what the writer of that form needs.
    """

    form: str
    head: Any
    rows: list[Row] = field(default_factory=list)

    def copy(self) -> Recording:
        """A recording whose rows may be changed."""
        rows = [replace(row, stats=dict(row.stats)) for row in self.rows]
        return Recording(self.form, copy.deepcopy(self.head), rows)

    def encode(self) -> bytes:
        """The file."""
        return _write_kineto(self) if self.form == "kineto" else _write_xspace(self)

    @property
    def suffix(self) -> str:
        """How the name of its file ends."""
        return ".pt.trace.json" if self.form == "kineto" else ".xplane.pb"


def read(path: Path) -> Recording:
    """The rows of a file.  Raises ValueError if it is neither form."""
    data = path.read_bytes()
    if path.name.endswith(".xplane.pb"):
        return read_xspace(data)
    return read_kineto(json.loads(gzip.decompress(data) if path.suffix == ".gz" else data))


def is_link(stat: str) -> bool:
    """Whether a stat's value links rows."""
    return stat in _LINK_STATS


# ---- Kineto's JSON ---------------------------------------------------------------------------------------------------


def read_kineto(content: dict[str, Any]) -> Recording:
    """The rows of Kineto's JSON; names of processes and threads stay in the head."""
    head = {key: value for key, value in content.items() if key != "traceEvents"}
    names, rows = [], []
    for event in content["traceEvents"]:
        if event.get("ph") == "M":
            names.append(event)
            continue
        duration = event.get("dur")
        rows.append(
            Row(
                _what_kineto(event), event.get("pid"), event.get("tid"), event.get("name", ""),
                round(float(event.get("ts", 0)) * PS_PER_US),
                None if duration is None else round(float(duration) * PS_PER_US),
                dict(event.get("args") or {}), event,
            )
        )  # fmt: skip
    return Recording("kineto", {"head": head, "names": names}, rows)


def _what_kineto(event: dict[str, Any]) -> str:
    category, name = str(event.get("cat", "")).lower(), str(event.get("name", ""))
    if event.get("ph") in ("s", "t", "f"):
        return LINK
    if event.get("ph") != "X":
        return OTHER
    if category in _DEVICE_CATEGORIES:
        return DEVICE
    if category == "gpu_user_annotation":
        return DEVICE_SPAN
    if category == "cuda_sync" or "StreamWaitEvent" in name:
        return STREAM_WAIT
    if category in _CALL_CATEGORIES:
        return WAIT if "ynchronize" in name or name == "hipMemcpyWithStream" else CALL
    if category == "python_function":
        return PYTHON
    if category in ("user_annotation", "cpu_op", "operator"):
        return MARK if name.startswith("ProfilerStep") else OP
    return OTHER


def _write_kineto(recording: Recording) -> bytes:
    events = list(recording.head["names"])
    for row in recording.rows:
        event = {**row.raw, "pid": row.place, "tid": row.line, "name": row.name, "ts": row.start / PS_PER_US}
        if row.duration is not None:
            event["dur"] = row.duration / PS_PER_US
        if row.stats or "args" in event:
            event["args"] = row.stats
        events.append(event)
    return json.dumps({**recording.head["head"], "traceEvents": events}).encode()


# ---- XSpace ----------------------------------------------------------------------------------------------------------


@dataclass
class Plane:
    """A plane without its events: the other fields, names of stats, lines as (fields, start in ns)."""

    name: str
    fields: list[wire.Field]
    stat_names: dict[int, str]
    lines: list[tuple[list[wire.Field], int, str]]


def read_xspace(data: bytes) -> Recording:
    """The rows of an XSpace file."""
    planes, others, rows = [], [], []
    for one in wire.fields(data):
        if one[0] != 1:
            others.append(one)
            continue
        plane, events = _read_plane(one[3], len(planes))
        planes.append(plane)
        rows += events
    return Recording("xspace", {"planes": planes, "others": others}, rows)


def _read_plane(data: bytes, index: int) -> tuple[Plane, list[Row]]:
    all_fields = list(wire.fields(data))
    name = next((value.decode("utf-8", "replace") for number, _, _, value in all_fields if number == 2), "")
    stat_names = dict(_entry(value) for number, _, _, value in all_fields if number == 5)
    plane = Plane(name, [one for one in all_fields if one[0] not in (3, 4, 5)], {}, [])
    plane.stat_names = {key: _name_of(entry) for key, entry in stat_names.items()}
    types = dict(_entry(value) for number, _, _, value in all_fields if number == 4)
    rows: list[Row] = []
    for number, _, _, value in all_fields:
        if number != 3:
            continue
        inside = list(wire.fields(value))
        start = next((wire.signed(found) for key, _, found, _ in inside if key == 3), 0)
        title = next((text.decode("utf-8", "replace") for key, _, _, text in inside if key == 2), "")
        plane.lines.append(([one for one in inside if one[0] not in (3, 4)], start, title))
        at = (index, len(plane.lines) - 1)
        rows += [_read_event(one[3], plane, at, types) for one in inside if one[0] == 4]
    return plane, rows


def _entry(data: bytes) -> tuple[int, bytes]:
    key, value = 0, b""
    for number, _, found, content in wire.fields(data):
        key, value = (found, value) if number == 1 else (key, content if number == 2 else value)
    return key, value


def _name_of(entry: bytes) -> str:
    return next((text.decode("utf-8", "replace") for number, _, _, text in wire.fields(entry) if number == 2), "")


def _read_event(data: bytes, plane: Plane, at: tuple[int, int], types: dict[int, bytes]) -> Row:
    kind, offset, duration, stats, rest = 0, 0, None, {}, []
    for one in wire.fields(data):
        number, _, value, content = one
        if number == 1:
            kind = value
        elif number == 2:
            offset = wire.signed(value)
        elif number == 3:
            duration = value
        elif number == 4:
            name, found = _read_stat(content, plane.stat_names)
            stats[name] = found
        else:
            rest.append(one)
    entry = types.get(kind, b"")
    name, start = _name_of(entry), plane.lines[at[1]][1]
    type_fields = [one for one in wire.fields(entry) if one[0] not in (1, 2)]
    what = _what_xspace(plane.name, plane.lines[at[1]][2], name, stats)
    return Row(what, plane.name, at, name, start * PS_PER_NS + offset, duration, stats, (type_fields, rest))


def _read_stat(data: bytes, names: dict[int, str]) -> tuple[str, tuple[int, Any]]:
    name, found = "", (0, None)
    for number, wire_type, value, content in wire.fields(data):
        if number == 1:
            name = names.get(value, str(value))
        elif number == 7:
            found = (7, names.get(value, ""))
        else:
            found = (number, content if wire_type == wire.LENGTH else value)
    return name, found


_WAITS = ("block_until_ready", "Await", "wait for completion", "BlockHostUntilReady", "BufferSequencingEvent", "_value",
          "__float__", "ynchronize", "CopyRawToHost", "await", "IssueEvent")  # fmt: skip


def _what_xspace(plane: str, line: str, name: str, stats: dict[str, Any]) -> str:
    if plane.startswith("/device:") and not plane.startswith("/device:CUSTOM"):
        return DEVICE_SPAN if line in ("Steps", "XLA Modules", "Framework Ops", "Framework Name Scope") else DEVICE
    if not plane.startswith("/host:CPU"):
        return OTHER
    if "StreamWaitEvent" in name:
        return STREAM_WAIT
    if any(word in name for word in _WAITS):
        return WAIT
    if name.startswith("$"):
        return PYTHON
    if "step_num" in stats:
        return MARK
    return CALL if name.startswith(("cu", "hip")) else OP


def _write_xspace(recording: Recording) -> bytes:
    out = b""
    by_line: dict[tuple[int, int], list[Row]] = {}
    for row in recording.rows:
        by_line.setdefault(row.line, []).append(row)
    for index, plane in enumerate(recording.head["planes"]):
        lines = {number: by_line.get((index, number), []) for number in range(len(plane.lines))}
        out += wire.text(1, _write_plane(plane, lines))
    return out + b"".join(wire.raw(one) for one in recording.head["others"])


def _write_plane(plane: Plane, lines: dict[int, list[Row]]) -> bytes:
    stat_ids = {name: key for key, name in plane.stat_names.items()}
    type_ids: dict[tuple[str, bytes], int] = {}
    fields = [one if one[0] != 2 else (2, wire.LENGTH, 0, plane.name.encode()) for one in plane.fields]
    out = b"".join(map(wire.raw, fields))
    for number, rows in lines.items():
        head, start, _ = plane.lines[number]
        start = min([start, *(row.start // PS_PER_NS for row in rows)])
        events = b"".join(wire.text(4, _write_event(row, start, stat_ids, type_ids)) for row in rows)
        out += wire.text(3, b"".join(map(wire.raw, head)) + wire.number(3, start & wire.MASK_64) + events)
    for (name, rest), key in type_ids.items():
        entry = wire.number(1, key) + wire.text(2, name.encode()) + rest
        out += wire.text(4, wire.number(1, key) + wire.text(2, entry))
    for name, key in stat_ids.items():
        out += wire.text(5, wire.number(1, key) + wire.text(2, wire.number(1, key) + wire.text(2, name.encode())))
    return out


def _write_event(row: Row, start_ns: int, stat_ids: dict[str, int], type_ids: dict[tuple[str, bytes], int]) -> bytes:
    type_fields, rest = row.raw
    kind = type_ids.setdefault((row.name, b"".join(map(wire.raw, type_fields))), len(type_ids) + 1)
    out = wire.number(1, kind)
    if all(one[0] != 5 for one in rest):  # an event with a number of occurrences has no time
        out += wire.number(2, (row.start - start_ns * PS_PER_NS) & wire.MASK_64)
    if row.duration is not None:
        out += wire.number(3, row.duration)
    for name, value in row.stats.items():
        out += wire.text(4, _write_stat(name, value, stat_ids))
    return out + b"".join(map(wire.raw, rest))


def _write_stat(name: str, found: tuple[int, Any], stat_ids: dict[str, int]) -> bytes:
    number, value = found
    key = stat_ids.setdefault(name, max(stat_ids.values(), default=0) + 1)
    out = wire.number(1, key)
    if number == 0:
        return out
    if number == 7:
        return out + wire.number(7, stat_ids.setdefault(value, max(stat_ids.values(), default=0) + 1))
    if isinstance(value, bytes):
        return out + wire.text(number, value)
    if number == 2:
        return out + wire.raw((2, wire.FIXED64, value, b""))
    return out + wire.number(number, value)


def stat_of(value: float | int | str) -> tuple[int, Any]:
    """A value as a stat of XSpace."""
    if isinstance(value, str):
        return 5, value.encode()
    if isinstance(value, float):
        return 2, struct.unpack("<Q", struct.pack("<d", value))[0]
    return 4, value & wire.MASK_64
