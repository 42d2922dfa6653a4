"""Compares the readers of formats per event, in one process and in turns: `python -m bench.readers`.

    python -m bench.readers --events 230000 --rounds 5

The figure is processor time, of all threads, from bytes to columns: it hardly depends on what else the machine does.
The same profile is read as XSpace, as XSpace in chunks (Riegeli, without compression and with Brotli), and as Stepscope
exports it (`.pftrace`); a trace of PyTorch as its JSON and as its second backend writes it.  Results: READERS.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import kineto, profiles
from bench.kineto_build import read_trace
from bench.process import REPOSITORY

sys.path.append(str(REPOSITORY / "tests" / "helpers"))

RESULTS = Path(__file__).with_name("READERS.md")
_CHUNK = 1 << 20  # bytes of records in a chunk, as the format's writers make them
Read = Callable[[bytes, str, str], object]


class Subject(NamedTuple):
    """A file, what reads it, and what the table says of it."""

    name: str
    read: Read
    path: Path


def subjects(events: int) -> Iterator[Subject]:
    """The files, which are made when they are first needed.  The first is what the others are compared with."""
    from stepscope.formats.kineto.reader import read as read_json
    from stepscope.formats.perfetto.reader import read as read_perfetto
    from stepscope.formats.riegeli.reader import read as read_riegeli
    from stepscope.formats.xspace.reader import read as read_xspace

    xspace = profiles.obtain(events).path
    trace = kineto.obtain(events, None).path
    yield Subject("XSpace", read_xspace, xspace)
    for codec in ("none", "brotli"):
        made = _made(xspace, f".{codec}.riegeli", lambda data, codec=codec: _as_riegeli(data, codec))
        yield Subject(f"XSpace in chunks, {codec}", read_riegeli, made)
    yield Subject(".pftrace, our export", read_perfetto, _made(xspace, ".pftrace", _as_export))
    yield Subject(".pftrace, as PyTorch's", read_perfetto, _made(trace, ".pftrace", lambda _: _as_torch(trace)))
    yield Subject("trace JSON, PyTorch's", read_json, trace)


def _made(source: Path, ending: str, make: Callable[[bytes], bytes]) -> Path:
    path = source.with_name(source.name + ending)
    if not path.exists():
        path.write_bytes(make(source.read_bytes()))
    return path


def _as_riegeli(data: bytes, codec: str) -> bytes:
    """The fields of an XSpace as records."""
    from riegeli_build import riegeli_file, simple_chunk

    from bench import wire

    chunks: list[list[bytes]] = [[]]
    for field in wire.fields(data):
        if sum(map(len, chunks[-1])) > _CHUNK:
            chunks.append([])
        chunks[-1].append(wire.raw(field))
    return riegeli_file([simple_chunk(records, codec) for records in chunks])


def _as_export(data: bytes) -> bytes:
    from stepscope.export import perfetto
    from stepscope.formats.xspace.reader import read

    return b"".join(perfetto.pieces([read(data, "bench", "")]))


def _as_torch(trace: Path) -> bytes:
    from perfetto_build import torch_trace

    document = read_trace(trace)
    for event in document["traceEvents"]:  # packets have no null
        if event.get("ph") == "X":
            event["args"] = {key: value for key, value in event.get("args", {}).items() if value is not None}
    return torch_trace(document)


def measure(all_subjects: Sequence[Subject], rounds: int) -> dict[str, tuple[int, int, float]]:
    """Events, bytes and the least processor seconds of each file.  They take turns."""
    found: dict[str, tuple[int, int, float]] = {}
    for _ in range(rounds):
        for name, read, path in all_subjects:
            data = path.read_bytes()
            gc.collect()
            begin = time.process_time()
            trace = read(data, name, "")
            seconds = time.process_time() - begin
            events = len(trace.events)  # type: ignore[attr-defined]
            found[name] = events, len(data), min(seconds, found[name][2] if name in found else seconds)
    return found


def render(found: dict[str, tuple[int, int, float]], rounds: int) -> str:
    """The table."""
    first = next(iter(found.values()))
    lines = [
        "# Readers",
        "",
        f"Written by `python -m bench.readers`: processor time to columns, least of {rounds} rounds in turns.",
        "",
        "| format | events | bytes per event | ns per event | of XSpace, per event | of XSpace, per byte |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, (events, size, seconds) in found.items():
        per_event, per_byte = (seconds / n * first[k] / first[2] for k, n in enumerate((events, size)))
        lines.append(
            f"| {name} | {events:,} | {size / events:.0f} | {seconds / events * 1e9:.0f} "
            f"| {per_event:.2f} | {per_byte:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.readers", description=__doc__)
    parser.add_argument("--events", type=int, default=1_160_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the figures instead of writing the page")
    options = parser.parse_args(arguments)
    found = measure([*subjects(options.events)], options.rounds)
    if options.json:
        print(json.dumps(found))
    else:
        RESULTS.write_text(render(found, options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
