"""A window of text scanned by several threads, with the result that one would have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from stepscope.kernels import trace_json as scan
from stepscope.model.arrays import U8
from stepscope.records import dataclass

_PART_BYTES = 1 << 20  # below which starting a thread is not worth it
_MOST_THREADS = 8
_MOST_MISTAKES = 4


@dataclass
class _Part:
    """A part of a window: what scans it, where it begins, and, once it is done, what the scan stopped for."""

    scanner: scan.Scanner
    begin: int
    done: Future[int]


class PartScanner:
    """Scans window after window of a text.

    Where a part of a window begins is a guess: at a brace that looks like that of an event.  What was read from there
    counts if the part before, read from its own start, ended exactly there, and nothing in it was damaged.  Otherwise
    it is read again in order, so that the result is always that of reading in order.  Texts get their ids in order too.

    Attributes:
        whole: has read all that counts.
        at: where the next element begins.
    """

    def __init__(self, part_bytes: int = _PART_BYTES, threads: int | None = None) -> None:
        self.whole = scan.Scanner()
        self.at = 0
        self._part_bytes = part_bytes
        self._threads = min(_cores(), _MOST_THREADS) if threads is None else threads
        self._others: list[scan.Scanner] = []
        self._pool: ThreadPoolExecutor | None = None
        self._mistakes = 0

    def scan(self, text: U8, at: int, end: int) -> int:
        """Scans `text[at:end]`; returns MORE or CLOSED, as `Scanner.scan` does."""
        self.at = at
        begins = self._begins(text, at, end)
        with self._parts(text, end, begins) as parts:
            why = self._scan_in_order(text, end, begins[0] if begins else end)
            while why == scan.STOPPED and parts and self._absorb(parts[0]):
                why = parts.pop(0).done.result()
        if why == scan.STOPPED:
            self._mistakes += 1
            why = self._scan_in_order(text, end, end)
        return why

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _scan_in_order(self, text: U8, end: int, stop: int) -> int:
        why = self.whole.scan(text, self.at, end, stop)
        self.at = self.whole.at
        return why

    def _begins(self, text: U8, at: int, end: int) -> list[int]:
        """Where all parts but the first probably begin."""
        count = min(self._threads, (end - at) // self._part_bytes)
        if count < 2 or self.whole.recovering or self._mistakes >= _MOST_MISTAKES:
            return []
        even = [at + (end - at) * part // count for part in range(1, count)]
        found = [scan.find_event(text, guess, even_end) for guess, even_end in zip(even, [*even[1:], end], strict=True)]
        return [begin for begin, even_end in zip(found, [*even[1:], end], strict=True) if begin < even_end]

    @contextmanager
    def _parts(self, text: U8, end: int, begins: list[int]) -> Iterator[list[_Part]]:
        """Scans parts on other threads.  Those that are left in the list at the end count as never read."""
        self._pool = self._pool or (ThreadPoolExecutor(self._threads - 1, "stepscope-scan") if begins else None)
        self._others += [scan.Scanner() for _ in range(len(begins) - len(self._others))]
        parts: list[_Part] = []
        for scanner, begin, stop in zip(self._others, begins, [*begins[1:], end], strict=False):
            assert self._pool is not None
            parts.append(_Part(scanner, begin, self._pool.submit(scanner.scan, text, begin, end, stop)))
        started = list(parts)
        try:
            yield parts
        finally:
            wait([part.done for part in started])
            for part in parts:
                part.scanner.forget()

    def _absorb(self, part: _Part) -> bool:
        """Takes over what a part has read.  False if it began in the wrong place, or is damaged."""
        part.done.result()
        if part.begin != self.at or self.whole.recovering or part.scanner.damaged:
            return False
        self.whole.absorb(part.scanner)
        self.at = part.scanner.at
        return True


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
