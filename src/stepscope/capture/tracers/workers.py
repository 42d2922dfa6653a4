"""Collects what the program's worker processes record while a capture runs; see `stepscope.capture.workers`."""

from __future__ import annotations

import itertools
import os
import time
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.capture import workers
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Clock, Probe
from stepscope.formats.spool import layout
from stepscope.formats.spool.layout import Chunk

_PATIENCE_S, _LOOK_S = 0.5, 0.01  # a worker looks every 0.1 s
_MOST_BYTES = 1 << 28  # of one worker's file
_number = itertools.count(1).__next__


class WorkersTracer(Probe):
    """Asks the workers to record, and takes over what they wrote once the capture has ended."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._place: Path | None = None
        self._since_ns = 0
        self._ended = False

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Asks the workers to record."""
        workers.install()
        self._since_ns = clock()
        self._folder = workers.shared_folder()
        if self._folder is not None:
            name = f"{os.getpid()}-{_number()}"
            self._place = self._folder / name
            workers.write_now(self._folder, f"{name} {options.stack_samples_hz}")

    def stop(self) -> None:
        """Asks them to stop; they need a moment to write."""
        if self._folder is not None:
            workers.clear_now(self._folder)
        self._ended = True

    def drain(self) -> list[Chunk]:
        """What the workers recorded, once the capture has ended."""
        place, self._place = (self._place, None) if self._ended else (None, self._place)
        if place is None or self._folder is None:
            return []
        until = time.monotonic() + _PATIENCE_S
        while any(place.glob("*.part")) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        chunks = [_drop_earlier(chunk, self._since_ns) for path in sorted(place.glob("*.*")) for chunk in _read(path)]
        workers.remove_folder(self._folder)
        return chunks


def _drop_earlier(chunk: Chunk, since_ns: int) -> Chunk:
    """The chunk without events that started before the capture, such as the batch that a worker was at."""
    kept = [row for row, begin in enumerate(chunk.begin) if begin >= since_ns]
    if len(kept) == len(chunk.begin):
        return chunk
    name, begin, end = (
        array(each.typecode, [each[row] for row in kept]) for each in (chunk.name, chunk.begin, chunk.end)
    )
    return replace(chunk, name=name, begin=begin, end=end)


def _read(path: Path) -> Iterator[Chunk]:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES)
    for head, body in layout.records(data):
        if head.get("is") == "chunk":
            yield _chunk(head, body)


def _chunk(head: dict[str, Any], body: memoryview) -> Chunk:
    """The chunk of a record that a worker of this machine wrote."""
    count = len(body) // layout.EVENT_BYTES
    name, begin, end = array("i"), array("q"), array("q")
    name.frombytes(body[: 4 * count])
    begin.frombytes(body[4 * count : 12 * count])
    end.frombytes(body[12 * count :])
    return Chunk(head["plane"], head["line"], head["id"], head["kind"], head["names"], name, begin, end)
