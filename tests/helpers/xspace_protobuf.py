"""What TensorFlow's protobuf library reads from XSpace files, as plain Python.

Runs as a program of its own, because importing TensorFlow takes seconds and does not go back:

    python xspace_protobuf.py OUTPUT FILE...
"""

from __future__ import annotations

import pickle
import struct
import sys
from pathlib import Path
from typing import Any

TAGS = {"double_value": "double", "uint64_value": "uint", "int64_value": "int", "str_value": "text",
        "ref_value": "text", "bytes_value": "bytes"}  # fmt: skip


def view(data: bytes) -> list[Any]:
    """Planes as nested tuples: names instead of ids, bits instead of doubles, events in the order of a HostTrace."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    space.ParseFromString(data)
    return [_plane(plane) for plane in space.planes]


def _plane(plane: Any) -> tuple[Any, ...]:
    texts = {key: entry.name for key, entry in plane.stat_metadata.items()}
    types = {
        key: (entry.name, entry.display_name, _stats(entry.stats, texts)) for key, entry in plane.event_metadata.items()
    }
    lines = [_line(line, types, texts) for line in plane.lines]
    return plane.id, plane.name, _stats(plane.stats, texts), lines


def _line(line: Any, types: dict[int, Any], texts: dict[int, str]) -> tuple[Any, ...]:
    events = [
        (
            line.timestamp_ns * 1000 + event.offset_ps,
            event.duration_ps,
            *types.get(event.metadata_id, ("", "", ())),
            _counts(event) + _stats(event.stats, texts),
        )
        for event in line.events
    ]
    events.sort(key=lambda event: (event[0], -event[1]))
    return line.id, line.name, line.display_name, line.display_id, line.timestamp_ns, line.duration_ps, events


def _counts(event: Any) -> tuple[Any, ...]:
    counted = event.WhichOneof("data") == "num_occurrences"
    return (("num_occurrences", "int", event.num_occurrences),) if counted else ()


def _stats(stats: Any, texts: dict[int, str]) -> tuple[Any, ...]:
    return tuple((texts.get(stat.metadata_id, ""), *_value(stat, texts)) for stat in stats)


def _value(stat: Any, texts: dict[int, str]) -> tuple[str, Any]:
    which = stat.WhichOneof("value")
    if which is None:
        return "none", None
    value = getattr(stat, which)
    if which == "ref_value":
        value = texts.get(value, "")
    return TAGS[which], struct.pack("<d", value) if which == "double_value" else value


if __name__ == "__main__":
    output, *paths = sys.argv[1:]
    Path(output).write_bytes(pickle.dumps({path: view(Path(path).read_bytes()) for path in paths}))
