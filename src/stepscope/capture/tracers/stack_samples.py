"""Samples the Python stacks of all threads: the cost does not depend on how often functions are called.

Every sample walks over the stacks.  Equal frames of consecutive samples are joined, so that a line looks like that of a
tracer of function calls, with the resolution of the sampling.  A frame in two consecutive samples counts as running all
the time between them.
"""

from __future__ import annotations

import sys
import threading
import time
from array import array
from dataclasses import field
from types import CodeType, FrameType

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Clock
from stepscope.capture.tracers.python_calls import name_codes
from stepscope.capture.tracers.ticker import SHORT_PATIENCE_S, THREAD_PREFIX, Ticker
from stepscope.formats.spool.layout import Chunk
from stepscope.records import dataclass

PLANE = "/device:CUSTOM:Python stack samples (Stepscope)"
_MOST_FRAMES = 128
_BYTES_OF_RANGE = 130


@dataclass
class Thread:
    """One thread: the frames of its last sample, outermost first, each with its start, and the frames that have
    ended."""

    name: str
    number: int
    open: list[tuple[CodeType, int]] = field(default_factory=list)
    ended: list[tuple[CodeType, int, int]] = field(default_factory=list)


class StackSampler:
    """Samples the stacks of all threads `stack_samples_hz` times a second."""

    def __init__(self) -> None:
        self._clock: Clock = time.perf_counter_ns
        self._threads: dict[int, Thread] = {}  # those of the last sample, by Python's thread id, which is reused
        self._gone: list[Thread] = []
        self._ticker: Ticker | None = None
        self._last_ns = 0
        self._lock = threading.Lock()

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts sampling."""
        self._clock = clock
        self._last_ns = clock()
        self._ticker = Ticker("sampler", 1 / options.stack_samples_hz, self.sample)
        self._ticker.start()

    def stop(self) -> None:
        """Ends the sampling and every range that is open."""
        if self._ticker is not None:
            self._ticker.stop(SHORT_PATIENCE_S)
        with self._lock:
            for thread in self._threads.values():
                self._end(thread, 0, self._last_ns)

    def abandon(self) -> None:
        """Nothing: there is no hook in this process."""

    def sample(self) -> None:
        """Takes one sample of every thread but Stepscope's own."""
        named = {thread.ident: thread for thread in threading.enumerate()}
        frames = sys._current_frames()
        now = self._clock()
        with self._lock:
            for ident, frame in frames.items():
                known = named.get(ident)
                if known is None or not known.name.startswith(THREAD_PREFIX):
                    self._note(self._thread(ident, known), frame, now)
            for ident in self._threads.keys() - frames.keys():
                self._forget(ident)
            self._last_ns = now

    def _note(self, thread: Thread, frame: FrameType | None, now: int) -> None:
        stack: list[CodeType] = []
        while frame is not None and len(stack) < _MOST_FRAMES:
            stack.append(frame.f_code)
            frame = frame.f_back
        stack.reverse()
        common = 0
        for (code, _), seen in zip(thread.open, stack, strict=False):
            if code is not seen:
                break
            common += 1
        self._end(thread, common, now)
        thread.open += [(code, now) for code in stack[common:]]

    @staticmethod
    def _end(thread: Thread, depth: int, now: int) -> None:
        """Ends the frames that are deeper than `depth`."""
        thread.ended += [(code, begin, max(begin, now)) for code, begin in thread.open[depth:]]
        del thread.open[depth:]

    def _thread(self, ident: int, named: threading.Thread | None) -> Thread:
        name, number = (named.name, named.native_id or ident) if named else (f"thread {ident}", ident)
        known = self._threads.get(ident)
        if known is not None and known.number != number:
            self._forget(ident)
            known = None
        if known is None:
            known = self._threads[ident] = Thread(name, number)
        return known

    def _forget(self, ident: int) -> None:
        """A thread has ended, at the latest after the last sample."""
        thread = self._threads.pop(ident)
        self._end(thread, 0, self._last_ns)
        self._gone.append(thread)

    def waiting_bytes(self) -> int:
        """About how much memory the ranges take."""
        with self._lock:
            return _BYTES_OF_RANGE * sum(len(thread.ended) for thread in (*self._threads.values(), *self._gone))

    def drain(self) -> list[Chunk]:
        """The ranges that have ended, a chunk for each thread that has any."""
        with self._lock:
            threads = [*self._threads.values(), *self._gone]
            taken = [(thread, thread.ended) for thread in threads if thread.ended]
            self._gone.clear()
            for thread, _ in taken:
                thread.ended = []
        return [_chunk(thread, ranges) for thread, ranges in taken]


def _chunk(thread: Thread, ranges: list[tuple[CodeType, int, int]]) -> Chunk:
    names, name = name_codes(code for code, _, _ in ranges)
    begin, end = array("q", [each[1] for each in ranges]), array("q", [each[2] for each in ranges])
    return Chunk(PLANE, thread.name, thread.number, "PYTHON_CALL", names, name, begin, end)
