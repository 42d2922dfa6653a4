"""Scans a window of text on several threads, with the same result as on one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from stepscope.kernels import trace_json as scan
from stepscope.model.arrays import U8
from stepscope.records import dataclass

_PART_BYTES = 1 << 20  # a smaller part is not worth a thread
_MOST_THREADS = 8
_MOST_MISTAKES = 4


@dataclass
class _Part:
    """A part of a window: its scanner, where it starts and, once done, why the scan stopped."""

    scanner: scan.Scanner
    begin: int
    done: Future[int]


class PartScanner:
    """Scans window after window of a text.

    The start of a part is a guess: a brace that looks like the start of an event.  The part counts if the part before
    it ended exactly there and nothing in it was damaged.  Otherwise it is read again in order.  So the result, text ids
    included, always equals that of reading in order.

    Attributes:
        whole: the scanner that has read everything that counts.
        at: where the next element starts.
    """

    def __init__(self, part_bytes: int = _PART_BYTES, threads: int | None = None) -> None:
        self.whole = scan.Scanner()
        self.at = 0
        self._part_bytes = part_bytes
        self._threads = min(_count_cores(), _MOST_THREADS) if threads is None else threads
        self._others: list[scan.Scanner] = []
        self._pool: ThreadPoolExecutor | None = None
        self._mistakes = 0

    def scan(self, text: U8, at: int, end: int) -> int:
        """Scans `text[at:end]`; returns MORE or CLOSED, as `Scanner.scan` does."""
        self.at = at
        begins = self._guess_starts(text, at, end)
        with self._start_parts(text, end, begins) as parts:
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

    def _guess_starts(self, text: U8, at: int, end: int) -> list[int]:
        """Where all parts except the first probably start."""
        count = min(self._threads, (end - at) // self._part_bytes)
        if count < 2 or self.whole.recovering or self._mistakes >= _MOST_MISTAKES:
            return []
        even = [at + (end - at) * part // count for part in range(1, count)]
        found = [scan.find_event(text, guess, even_end) for guess, even_end in zip(even, [*even[1:], end], strict=True)]
        return [begin for begin, even_end in zip(found, [*even[1:], end], strict=True) if begin < even_end]

    @contextmanager
    def _start_parts(self, text: U8, end: int, begins: list[int]) -> Iterator[list[_Part]]:
        """Scans parts on other threads.  What the parts still in the list at the end have read is discarded."""
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
        """Takes over what a part has read.  False if it started in the wrong place, or is damaged."""
        part.done.result()
        if part.begin != self.at or self.whole.recovering or part.scanner.damaged:
            return False
        self.whole.absorb(part.scanner)
        self.at = part.scanner.at
        return True


def _count_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
