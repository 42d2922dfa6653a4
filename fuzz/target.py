"""What is called for each broken file; started by `run.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import atheris
import numpy as np

_INSTRUMENTED = ("xspace", "kineto", "perfetto", "riegeli", "nsight", "flight_recorder", "plain_pickle")

with atheris.instrument_imports(include=[f"stepscope.formats.{name}" for name in _INSTRUMENTED]):
    from stepscope.errors import UnreadableError
    from stepscope.formats.flight_recorder import reader as flight_recorder
    from stepscope.formats.kineto import document, text
    from stepscope.formats.kineto import reader as kineto
    from stepscope.formats.kineto.scanning import PartScanner
    from stepscope.formats.nsight import reader as nsight
    from stepscope.formats.perfetto import reader as perfetto
    from stepscope.formats.riegeli import blocks
    from stepscope.formats.riegeli import reader as riegeli
    from stepscope.formats.xspace import lines, reader
    from stepscope.model import HostTrace

_PARTS = lines._PART_BYTES, 48
_PIECES = text._PIECE_BYTES, 300
_COMPARED = {
    "events": ("start_ps", "duration_ps", "type", "line", "kind", "traits"),
    "event_stats": ("name", "tag", "value", "offsets"),
    "strings": ("blob", "offsets"),
}
_ROOMS = text._ROOM_BYTES, 100
_SCANNERS: tuple[Callable[[], PartScanner], ...] = (PartScanner, lambda: PartScanner(part_bytes=100, threads=3))


def read_xspace(data: bytes) -> HostTrace:
    """Reads an XSpace file; one of an odd length in many parts, on several threads."""
    lines._PART_BYTES = _PARTS[len(data) % 2]
    return reader.read(data, "a.xplane.pb", "")


def read_trace_json(data: bytes) -> HostTrace:
    """Reads a trace as JSON; one of an odd length piece by piece, in windows that are smaller than some events and that
    several threads scan, which has to give what reading it as a whole gives."""
    whole = _read_json(data, 0)
    if len(data) % 2:
        _require_equal(whole, _read_json(data, 1))
    return whole


def read_perfetto(data: bytes) -> HostTrace:
    """Reads a Perfetto trace."""
    return perfetto.read(data, "a.pftrace", "")


def read_riegeli(data: bytes) -> HostTrace:
    """Reads a Riegeli file as if every checksum were right: no search finds one that is."""
    blocks.is_right = lambda content, checksum: True
    return riegeli.read(data, "a.xplane.riegeli", "")


def read_nsight(data: bytes) -> HostTrace:
    """Reads a database of Nsight Systems."""
    return nsight.read_sqlite(data, "a.sqlite", "")


def read_flight_recorder(data: bytes) -> HostTrace:
    """Reads a dump of the flight recorder."""
    return flight_recorder.read(data, "nccl_trace_rank_0", "")


def _read_json(data: bytes, way: int) -> HostTrace:
    text._PIECE_BYTES, text._ROOM_BYTES = _PIECES[way], _ROOMS[way]
    document.PartScanner = _SCANNERS[way]  # type: ignore[misc]
    return kineto.read(_pieces(data) if way else data, "a.pt.trace.json", "")


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _PIECES[1]] for at in range(0, len(data), _PIECES[1]))


def _require_equal(one: HostTrace, other: HostTrace) -> None:
    for name, columns in _COMPARED.items():
        for column in columns:
            if not np.array_equal(getattr(getattr(one, name), column), getattr(getattr(other, name), column)):
                raise AssertionError(f"{name}.{column} differs when it is read in pieces")


TARGETS: dict[str, Callable[[bytes], HostTrace]] = {
    "xspace": read_xspace,
    "trace_json": read_trace_json,
    "perfetto": read_perfetto,
    "riegeli": read_riegeli,
    "nsight": read_nsight,
    "flight_recorder": read_flight_recorder,
}


def main() -> None:
    """Hands over to libFuzzer, which does not return."""
    read = TARGETS[sys.argv.pop(1)]

    def attempt(data: bytes) -> None:
        """A file gives a sound trace or one plain error; anything else is a finding."""
        try:
            trace = read(data)
        except UnreadableError:
            return
        trace.check()
        for stats in (trace.event_stats, trace.type_stats, trace.plane_stats):
            for row in range(min(len(stats), 8)):
                trace.stat_value(stats, row)

    atheris.Setup(sys.argv, attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
