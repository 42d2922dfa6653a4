"""What is called for each broken file; started by `run.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["stepscope.formats.xspace", "stepscope.formats.kineto"]):
    from stepscope.errors import UnreadableError
    from stepscope.formats.kineto import reader as kineto
    from stepscope.formats.kineto import text
    from stepscope.formats.xspace import lines, reader
    from stepscope.model import HostTrace

_PARTS = lines._PART_BYTES, 48
_PIECES = text._PIECE_BYTES, 300


def read_xspace(data: bytes) -> HostTrace:
    """Reads an XSpace file; one of an odd length in many parts, on several threads."""
    lines._PART_BYTES = _PARTS[len(data) % 2]
    return reader.read(data, "a.xplane.pb", "")


def read_trace_json(data: bytes) -> HostTrace:
    """Reads a trace as JSON; one of an odd length in windows that are smaller than some events."""
    text._PIECE_BYTES = _PIECES[len(data) % 2]
    return kineto.read(data, "a.pt.trace.json", "")


TARGETS: dict[str, Callable[[bytes], HostTrace]] = {"xspace": read_xspace, "trace_json": read_trace_json}


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
