"""Scans a window of text on several threads, with the same result as on one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import pairwise

from stepscope.formats.threads import MOST_THREADS, usable_cores
from stepscope.kernels import trace_json as scan
from stepscope.model.arrays import U8
from stepscope.records import dataclass

_PART_BYTES = 1 << 20  # a smaller part is not worth a thread
_MOST_MISTAKES = 4
_OWN_SHARE = 0.7  # of a part of the others: whoever calls also takes over what they read


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

    What the other threads read of a window is taken over while they scan the next one.

    Attributes:
        whole: has read all that counts, once `finish` was called.
        at: where the next element starts.
    """

    def __init__(self, part_bytes: int = _PART_BYTES, threads: int | None = None) -> None:
        self.whole = scan.Scanner()
        self.at = 0
        self._part_bytes = part_bytes
        self._threads = min(usable_cores(), MOST_THREADS) if threads is None else threads
        self._idle: list[scan.Scanner] = []
        self._pending: list[scan.Scanner] = []  # what they read comes after what `whole` read
        self._pool: ThreadPoolExecutor | None = None
        self._mistakes = 0

    def scan(self, text: U8, at: int, end: int) -> int:
        """Scans `text[at:end]`; returns MORE or CLOSED, as `Scanner.scan` does."""
        self.at = at
        begins = self._guess_starts(text, at, end)
        with self._start_parts(text, end, begins) as parts:
            why = self._scan_in_order(text, end, begins[0] if begins else end)
            while why == scan.STOPPED and parts and self._continues(parts[0]):
                why = self._take(parts.pop(0))
        if why == scan.STOPPED:
            self._mistakes += 1
            why = self._scan_in_order(text, end, end)
        if why != scan.MORE:
            self.finish()
        return why

    def finish(self) -> None:
        """Takes over what the other threads have read."""
        for scanner in self._pending:
            self.whole.absorb(scanner)
        self._idle += self._pending
        self._pending = []

    def close(self) -> None:
        """Takes over what was read, and ends the threads."""
        self.finish()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _scan_in_order(self, text: U8, end: int, stop: int) -> int:
        self.finish()
        why = self.whole.scan(text, self.at, end, stop)
        self.at = self.whole.at
        return why

    def _guess_starts(self, text: U8, at: int, end: int) -> list[int]:
        """Where all parts except the first probably start."""
        count = min(self._threads, (end - at) // self._part_bytes)
        if count < 2 or self.whole.recovering or self._mistakes >= _MOST_MISTAKES:
            return []
        part_bytes = (end - at) / (count - 1 + _OWN_SHARE)
        even = [at + int(part_bytes * (part + _OWN_SHARE)) for part in range(count - 1)]
        found = [scan.find_event(text, guess, even_end) for guess, even_end in zip(even, [*even[1:], end], strict=True)]
        return [begin for begin, even_end in zip(found, [*even[1:], end], strict=True) if begin < even_end]

    @contextmanager
    def _start_parts(self, text: U8, end: int, begins: list[int]) -> Iterator[list[_Part]]:
        """Scans parts on other threads.  What the parts still in the list at the end have read is discarded."""
        self._pool = self._pool or (ThreadPoolExecutor(self._threads - 1, "stepscope-scan") if begins else None)
        parts: list[_Part] = []
        for begin, stop in pairwise([*begins, end]):
            assert self._pool is not None
            scanner = self._idle.pop() if self._idle else scan.Scanner()
            parts.append(_Part(scanner, begin, self._pool.submit(scanner.scan, text, begin, end, stop)))
        started = list(parts)
        try:
            yield parts
        finally:
            wait([part.done for part in started])
            for part in parts:
                part.scanner.forget()
            self._idle += [part.scanner for part in parts]

    def _continues(self, part: _Part) -> bool:
        """Whether a part starts where reading stands and is sound, so that what it has read counts."""
        part.done.result()
        return part.begin == self.at and not self.whole.recovering and not part.scanner.damaged

    def _take(self, part: _Part) -> int:
        """Puts what a part has read behind what counts; returns what its scan stopped for."""
        self._pending.append(part.scanner)
        self.at = part.scanner.at
        return part.done.result()
