"""Writes Perfetto's packets, by the public protos and apart from the reader.  Messages are dictionaries by field.

Also writes a trace of PyTorch as its second profiler backend writes it: ops and calls as slices in groups, the starts
of a group before its ends; work on GPUs as render stages whose arguments are text.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xspace_build import varint

Value = int | float | str | bytes | Mapping[int, Any] | Sequence[Any]

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDED = 1, 2


def message(fields: Mapping[int, Value]) -> bytes:
    """A message: whole numbers as varints, others as doubles, lists as repeated fields."""
    return b"".join(_field(number, value) for number, value in fields.items())


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, list):
        return b"".join(_field(number, each) for each in value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    content = value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else message(value)
    return varint(number << 3 | 2) + varint(len(content)) + content


def trace(*packets: Mapping[int, Value]) -> bytes:
    """A file of packets."""
    return b"".join(_field(1, packet) for packet in packets)


def thread(uuid: int, pid: int, tid: int, name: str, parent: int = 0) -> dict[int, Value]:
    """The packet that describes a thread's track."""
    return {60: {1: uuid, **({5: parent} if parent else {}), 4: {1: pid, 2: tid, 5: name}}}


def process(uuid: int, pid: int, name: str) -> dict[int, Value]:
    """The packet that describes a process's track."""
    return {60: {1: uuid, 3: {1: pid, 6: name}}}


def begin(time_ns: int, track: int, name: str, **more: Any) -> dict[int, Value]:
    """The start of a slice; `more` are annotations."""
    return {8: time_ns, 10: 1, 11: {9: BEGIN, 11: track, 23: name, 4: [annotation(k, v) for k, v in more.items()]}}


def end(time_ns: int, track: int) -> dict[int, Value]:
    """The end of the innermost slice of a track."""
    return {8: time_ns, 10: 1, 11: {9: END, 11: track}}


def annotation(key: str, value: Any) -> dict[int, Any]:
    """A debug annotation with its name, nested if the value is."""
    return {10: key, **annotated(value)}


def annotated(value: Any) -> dict[int, Any]:
    """The value of a debug annotation."""
    if isinstance(value, bool):
        return {2: int(value)}
    if isinstance(value, int):
        return {4: value}
    if isinstance(value, float):
        return {5: value}
    if isinstance(value, str):
        return {6: value}
    if isinstance(value, dict):
        return {11: [annotation(key, each) for key, each in value.items()]}
    return {12: [annotated(each) for each in value]}


# ---- PyTorch ---------------------------------------------------------------------------------------------------------

_STAGES = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3, "gpu_user_annotation": 4}
_STAGE_NAMES = ("Kernel", "Memcpy", "Memset", "Annotation")
_EXTRA_NAMES = {"device": "device id", "context": "context id", "stream": "stream id"}


def torch_trace(document: Mapping[str, Any]) -> bytes:
    """The events of a trace in PyTorch's JSON as its other backend writes them."""
    events = [event for event in document["traceEvents"] if event.get("ph") == "X" and event.get("cat") != "Trace"]
    base_ns = document.get("baseTimeNanoseconds", 0)
    calls = [event for event in events if event["cat"] not in _STAGES]
    work = [event for event in events if event["cat"] in _STAGES]
    names = {name: row for row, name in enumerate(dict.fromkeys(event["name"] for event in events), 1)}
    categories = {cat: row for row, cat in enumerate(dict.fromkeys(event["cat"] for event in calls), 1)}
    queues = {queue: row for row, queue in enumerate(dict.fromkeys((e["pid"], e["tid"]) for e in work), 100)}
    tracks = {place: row for row, place in enumerate(dict.fromkeys((e["pid"], e["tid"]) for e in calls), 1)}
    labels = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in document["traceEvents"]
        if event.get("ph") == "M" and event["name"] == "thread_name"
    }
    interned = {
        2: [{1: row, 2: name} for name, row in names.items()],
        1: [{1: row, 2: cat} for cat, row in categories.items()],
        24: [{1: row, 2: name} for row, name in enumerate(_STAGE_NAMES, 1)]
        + [{1: row, 2: f"[{tid:05d}] stream {tid}"} for (_, tid), row in queues.items()],
        1000: [{1: row, 3: name} for name, row in names.items()],
        1001: [{1: 1, 2: "registers_per_thread"}],
    }
    clocks = {8: base_ns, 10: 1, 6: {1: [{1: 6, 2: base_ns}, {1: 1, 2: base_ns}]}}
    return trace(
        clocks,
        *(thread(row, pid, tid, labels.get((pid, tid), str(tid))) for (pid, tid), row in tracks.items()),
        {10: 1, 13: CLEARED, 12: interned},
        *(_begin_packet(e, base_ns, tracks[e["pid"], e["tid"]], names, categories) for e in calls),
        *(
            {8: base_ns + _ns(e["ts"]) + _ns(e["dur"]), 10: 1, 11: {9: END, 11: tracks[e["pid"], e["tid"]]}}
            for e in calls
        ),
        *(_stage_packet(e, base_ns, queues[e["pid"], e["tid"]], names) for e in work),
    )


def _ns(time_us: float) -> int:
    return round(time_us * 1000)


def _begin_packet(
    event: Mapping[str, Any], base_ns: int, track: int, names: Mapping[str, int], categories: Mapping[str, int]
) -> dict[int, Value]:
    annotations = [annotation(key, value) for key, value in event.get("args", {}).items()]
    slice_begin = {9: BEGIN, 11: track, 10: names[event["name"]], 3: categories[event["cat"]], 4: annotations}
    return {8: base_ns + _ns(event["ts"]), 10: 1, 13: NEEDED, 11: slice_begin}


def _stage_packet(event: Mapping[str, Any], base_ns: int, queue: int, names: Mapping[str, int]) -> dict[int, Value]:
    args = dict(event.get("args", {}))
    launch: dict[int, Value] = {}
    if "grid" in args:
        for number, key in ((1, "grid"), (2, "block")):
            launch[number] = dict(enumerate(args.pop(key), 1))
        if "registers per thread" in args:
            launch[3] = {1: 1, 4: args.pop("registers per thread")}
    extra = [
        {1: _EXTRA_NAMES.get(key, key), 2: value if isinstance(value, str) else json.dumps(value)}
        for key, value in args.items()
    ]
    stage = {
        2: _ns(event["dur"]), 11: event["pid"], 13: queue, 14: _STAGES[event["cat"]], 20: names[event["name"]],
        **({19: names[event["name"]], 21: launch} if launch else {}), 6: extra,
    }  # fmt: skip
    return {8: base_ns + _ns(event["ts"]), 10: 1, 13: NEEDED, 53: stage}


def packets_of(*packets: Mapping[int, Value]) -> Iterable[bytes]:
    """Each packet with its head."""
    return (_field(1, packet) for packet in packets)
