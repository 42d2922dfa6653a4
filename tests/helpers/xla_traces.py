"""Traces of XLA programs that ran, with their instructions, as a recorder writes them.

trace_of({"jit_f(1)": program(...)}, [Ran("stream 1", "dot_1", 0, 10, {"hlo_op": "dot.1", ...})], device="gpu")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xspace_build import event, event_name, line, plane, plane_stat, stat, stat_name

from stepscope.formats.xspace.reader import read
from stepscope.model import HostTrace

US = 1_000_000  # ps

Value = int | float | str | bytes

_PLANES = {
    "gpu": "/device:GPU:0",
    "gpu 1": "/device:GPU:1",
    "tpu": "/device:TPU:0",
    "cpu": "/host:CPU",
    "host": "/host:CPU",
}


@dataclass(frozen=True)
class Ran:
    """An event: its line, its name, start and duration in us, its stats and those of its type."""

    line: str
    name: str
    at: int
    us: int
    stats: Mapping[str, Value] = field(default_factory=dict)
    type_stats: Mapping[str, Value] = field(default_factory=dict)
    place: str = ""


def trace_of(
    programs: Mapping[str, bytes],
    events: Sequence[Ran],
    device: str = "gpu",
    facts: Mapping[str, Value] | None = None,
    captured: Mapping[str, Value] | None = None,
) -> HostTrace:
    """The trace of a host; events without a place ran on the device.

    Args:
        facts: of the device; captured: what a capture by Stepscope wrote about itself.
    """
    places = {place: [each for each in events if (each.place or device) == place] for place in _PLANES}
    data = _metadata(programs)
    for place, here in places.items():
        if here or place == device:
            data += _plane(_PLANES[place], here, facts or {} if place == device else {})
    if captured:
        data += _plane("/stepscope:capture", [], captured)
    return read(data, "drawn", "host")


def _metadata(programs: Mapping[str, bytes]) -> bytes:
    entries = [
        event_name(at, label, stats=[stat(1, proto)]) for at, (label, proto) in enumerate(programs.items(), start=1)
    ]
    return plane("/host:metadata", stat_name(1, "Hlo Proto"), *entries)


def _plane(name: str, events: Sequence[Ran], facts: Mapping[str, Value]) -> bytes:
    names = _Names()
    own = [plane_stat(names.of(key), value) for key, value in facts.items()]
    types = {(each.name, tuple(each.type_stats.items())): at for at, each in enumerate(events, start=1)}
    metadata = [
        event_name(at, label, stats=[stat(names.of(key), value) for key, value in stats])
        for (label, stats), at in types.items()
    ]
    lines = []
    for at, label in enumerate(dict.fromkeys(each.line for each in events), start=1):
        inside = [
            event(
                types[each.name, tuple(each.type_stats.items())], each.at * US, each.us * US,
                [stat(names.of(key), value) for key, value in each.stats.items()],
            )
            for each in events
            if each.line == label
        ]  # fmt: skip
        lines.append(line(label, *inside, line_id=at))
    return plane(name, *own, *metadata, *lines, *names.entries())


class _Names:
    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self._ids.setdefault(name, len(self._ids) + 1)

    def entries(self) -> list[bytes]:
        return [stat_name(at, name) for name, at in self._ids.items()]
