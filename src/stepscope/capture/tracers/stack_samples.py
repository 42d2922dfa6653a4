"""Samples the Python stacks of all threads: the cost does not depend on how often functions are called.

Every sample walks over the stacks.  Equal frames of consecutive samples are joined, so that a line looks like that of a
tracer of function calls, with the resolution of the sampling.  A frame in two consecutive samples counts as running all
the time between them; one in only the first or the second of them, half of it.

A function is named by the line that defines it.  The code of a module has no such line: it is named by the line that
runs, which is what the reader of a script without functions needs.  Stepscope's own frames are left out, but for those
of its demo, which stand for a user's program; and what called the command that runs the program.

Joined frames do not show when the samples between their ends were taken, so these times are recorded, too.

What was sampled is kept in arrays of numbers: objects that stay would have Python's collector run, on this thread, and
more often than the program alone would have it.

Whether a thread interprets Python or is in compiled code is told from the instruction that it runs (`interpreting`).

With each sample, the processor time of the loop's threads is read (`thread_usage`): the sampler is awake anyway, and
waking another thread would interrupt the training once more.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import field
from itertools import repeat
from pathlib import Path
from types import CodeType

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import own_threads
from stepscope.capture.program_files import LIBRARIES, called
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.capture.tracers.interpreting import Instructions, SampledRuns
from stepscope.capture.tracers.statements import Statements, statement_name
from stepscope.capture.tracers.switching import SwitchInterval
from stepscope.capture.tracers.thread_usage import ThreadUsage
from stepscope.capture.tracers.ticker import SHORT_PATIENCE_S, Ticker
from stepscope.formats.spool.layout import INTERPRETING_PLANE, SAMPLE_TIMES_PLANE, STATEMENTS_PLANE, Chunk
from stepscope.kernels.stacks import file_of, read_stacks
from stepscope.records import dataclass

PLANE = "/device:CUSTOM:Python stack samples (Stepscope)"
_MOST_FRAMES = 128
_MOST_NAMES = 20_000
_NUMBERS_OF_RANGE = 3  # the frame's number, and the ns when it began and ended
MOST_SHARE = 0.01  # of one core, for sampling; kept over `_BALANCE_S`, so that a capture of a few steps has samples
_BALANCE_S = 1.0
_MOST_WAIT_S = 1.0
_OWN_FOLDER = str(Path(__file__).parents[2]) + os.sep
_DEMO_FOLDER = _OWN_FOLDER + "demo" + os.sep
_COMMAND_FOLDER = _OWN_FOLDER + "cli" + os.sep
_LIBRARIES = (*LIBRARIES, "<frozen ")

Frame = tuple[CodeType, int]
"""A frame's code, and the line that it is named by; of a statement the place of its instruction, in bytes."""


@dataclass
class SampledThread:
    """One thread of the program.

    Attributes:
        stack: the frames of its last sample, innermost first.
        began: when each of them was first there, in ns, outermost first.
        ended: the frames that have ended: of each its number among `FrameNames`, and the ns when it began and ended.
        runs: what it was found to run; statements: where in the program's functions it was.
    """

    name: str
    number: int
    stack: list[Frame] = field(default_factory=list)
    began: array[int] = field(default_factory=lambda: array("q"))
    ended: array[int] = field(default_factory=lambda: array("q"))
    runs: SampledRuns = field(default_factory=SampledRuns)
    statements: Statements = field(default_factory=Statements)


class StackSampler(Probe):
    """Samples the stacks of all threads `stack_samples_hz` times a second.

    Args:
        reads_usage: whether the processor time of the loop's threads is read, too; a worker process has no loop.
    """

    def __init__(self, reads_usage: bool = True) -> None:
        self._clock: Clock = time.perf_counter_ns
        self._threads: dict[int, SampledThread] = {}  # those of the last sample, by Python's thread id, which is reused
        self._gone: list[SampledThread] = []
        self._ticker: Ticker | None = None
        self._last_ns = 0
        self._times = array("q")
        self._interval_s = 0.0
        self._used_ns = 0
        self._cost_s = 0.0
        self._collections = count_collections()
        self._ticked_ns = 0
        self._owed_s = 0.0  # of sampling, beyond its share of the time since
        self._lock = threading.Lock()
        self._usage = ThreadUsage() if reads_usage else None
        self._names = FrameNames()
        self._statements = FrameNames()
        self._instructions = Instructions()
        self._switching = SwitchInterval()

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts sampling."""
        self._clock = clock
        self._last_ns = clock()
        self._interval_s = 1 / options.stack_samples_hz
        if self._usage is not None:
            self._usage.start(options, clock)
        self._ticker = Ticker("sampler", self._interval_s, self._tick)
        self._ticker.start()

    def stop(self) -> None:
        """Ends the sampling and every range that is open."""
        if self._ticker is not None:
            self._ticker.stop(SHORT_PATIENCE_S)
        self._switching.give_back()
        with self._lock:
            for thread in self._threads.values():
                self._end(thread, 0, self._last_ns)
                thread.runs.end(self._last_ns)
                thread.statements.end(self._last_ns)
        if self._usage is not None:
            self._usage.stop()

    def abandon(self) -> None:
        """In a forked child."""
        self._switching.give_back()
        if self._usage is not None:
            self._usage.abandon()

    def _tick(self) -> float:
        """Takes a sample; returns the seconds until the next one: many threads with deep stacks are sampled less often,
        once the first samples have used up the share of `_BALANCE_S`.

        The cost of a sample is the CPU time of this thread since the last one, which includes waking up.  Where
        Python's collector has run meanwhile, it is taken to be that of the sample before: what is collected is the
        program's, and 0.1 s of it, as after an import of PyTorch, would end the sampling for ten seconds.
        """
        self.sample()
        self._switching.adapt((thread.number for thread in self._threads.values()), self._last_ns)
        if self._usage is not None:
            with self._lock:
                self._times.append(self._last_ns)
            self._usage.read()
        used_ns = time.thread_time_ns()
        collections = count_collections()
        if collections == self._collections:
            self._cost_s = (used_ns - self._used_ns) / 1e9
        self._used_ns, self._collections = used_ns, collections
        now = self._clock()
        since_s, self._ticked_ns = (now - self._ticked_ns) / 1e9, now
        self._owed_s = max(self._owed_s - MOST_SHARE * since_s, 0.0) + self._cost_s
        return max(self._interval_s, min(self._owed_s / MOST_SHARE - _BALANCE_S, _MOST_WAIT_S))

    def sample(self) -> None:
        """Takes one sample of every thread but Stepscope's own."""
        named = threading._active  # type: ignore[attr-defined]  # `enumerate` may wait for a lock
        own = own_threads()
        places: dict[int, tuple[CodeType, int]] = {}
        own_frames: dict[int, list[Frame]] = {}
        stacks = read_stacks(_MOST_FRAMES, _OWN_FOLDER, _DEMO_FOLDER, _COMMAND_FOLDER, places, own_frames, _LIBRARIES)
        now = self._clock()
        with self._lock:
            for ident, stack in stacks.items():
                if ident not in own:
                    thread = self._thread(ident, named.get(ident))
                    self._note(ident, thread, stack, now)
                    if ident in places:
                        thread.runs.note(self._instructions.find(*places[ident]), self._last_ns, now)
                    shown = [self._statements.number(each) for each in reversed(own_frames.get(ident, ()))]
                    thread.statements.note(shown, self._last_ns, now)
            for ident in self._threads.keys() - stacks.keys():
                self._forget(ident)
            self._last_ns = now

    def _note(self, ident: int, thread: SampledThread, stack: list[Frame], now: int) -> None:
        """A thread has this stack now, innermost frame first."""
        if stack == thread.stack:
            return  # it waits where it did; most threads of a program do, most of the time
        common = 0
        for (code, line), (seen, at) in zip(reversed(thread.stack), reversed(stack), strict=False):
            if code is not seen or line != at:
                break
            common += 1
        changed = (self._last_ns + now) // 2 if thread.began else now
        self._end(thread, common, changed)
        thread.stack = stack
        thread.began.extend(repeat(changed, len(stack) - common))

    def _end(self, thread: SampledThread, depth: int, now: int) -> None:
        """Ends the frames that are deeper than `depth`."""
        inner = len(thread.stack) - depth
        for frame, began in zip(reversed(thread.stack[:inner]), thread.began[depth:], strict=True):
            self._keep(thread, frame, began, max(began, now))
        del thread.began[depth:], thread.stack[:inner]

    def _keep(self, thread: SampledThread, frame: Frame, began: int, ended: int) -> None:
        thread.ended.extend((self._names.number(frame), began, ended))

    def _thread(self, ident: int, named: threading.Thread | None) -> SampledThread:
        name, number = (named.name, named.native_id or ident) if named else (f"thread {ident}", ident)
        known = self._threads.get(ident)
        if known is not None and known.number != number:
            self._forget(ident)
            known = None
        if known is None:
            known = self._threads[ident] = SampledThread(name, number)
        return known

    def _forget(self, ident: int) -> None:
        """A thread has ended, at the latest after the last sample."""
        thread = self._threads.pop(ident)
        self._end(thread, 0, self._last_ns)
        thread.runs.end(self._last_ns)
        thread.statements.end(self._last_ns)
        self._gone.append(thread)

    def waiting_bytes(self) -> int:
        """About how much memory the ranges take."""
        with self._lock:
            threads = (*self._threads.values(), *self._gone)
            ended = [each for thread in threads for each in (thread.ended, thread.runs.ended, thread.statements.ended)]
            kept = sum(each.itemsize * len(each) for each in ended)
        return kept + (self._usage.waiting_bytes() if self._usage is not None else 0)

    def drain(self) -> list[Chunk]:
        """The ranges that have ended, a chunk for each thread with any, the samples' times, and what threads used."""
        with self._lock:
            threads = [*self._threads.values(), *self._gone]
            taken = [(thread, thread.ended) for thread in threads if thread.ended]
            runs = [(thread, thread.runs.take()) for thread in threads if thread.runs.ended]
            if self._statements.are_many():
                for thread in self._threads.values():
                    thread.statements.end(self._last_ns)
            stated = [(thread, thread.statements.take()) for thread in threads if thread.statements.ended]
            self._gone.clear()
            for thread, _ in taken:
                thread.ended = array("q")
            names, statements = self._names, self._statements
            if names.are_many():  # the numbers in use are taken
                self._names = FrameNames()
            if statements.are_many():
                self._statements = FrameNames()
            times, self._times = self._times, array("q")
        stacks = [_chunk(PLANE, "PYTHON_CALL", thread, ranges, names.name) for thread, ranges in taken]
        stacks += [_chunk(STATEMENTS_PLANE, "OTHER", thread, ranges, statements.statement) for thread, ranges in stated]
        stacks += [make_chunk(INTERPRETING_PLANE, each.name, each.number, "OTHER", ranges) for each, ranges in runs]
        if times:
            stacks.append(make_chunk(SAMPLE_TIMES_PLANE, "samples", 0, "OTHER", [("sample", at, at) for at in times]))
        return stacks + (self._usage.drain() if self._usage is not None else [])


def _chunk(plane: str, kind: str, thread: SampledThread, ranges: array[int], name: Callable[[int], str]) -> Chunk:
    frames, begin, end = (ranges[part::_NUMBERS_OF_RANGE] for part in range(_NUMBERS_OF_RANGE))
    rows = list(zip(map(name, frames), begin, end, strict=True))
    return make_chunk(plane, thread.name, thread.number, kind, rows)


class FrameNames:
    """Numbers the frames that are seen, and names them: each once, since that asks the system for folders."""

    def __init__(self) -> None:
        # By identity: hashing a code object reads each of its instructions.  The object is kept, so its id stays its.
        self._numbers: dict[tuple[int, int], int] = {}
        self._frames: list[Frame] = []
        self._names: dict[int, str] = {}

    def number(self, frame: Frame) -> int:
        """The number of a frame, a new one if it was not seen before."""
        code, line = frame
        number = self._numbers.setdefault((id(code), line), len(self._frames))
        if number == len(self._frames):
            self._frames.append(frame)
        return number

    def name(self, number: int) -> str:
        """The name of a frame, as `frame_name` makes it."""
        known = self._names.get(number)
        if known is None:
            known = self._names[number] = frame_name(*self._frames[number])
        return known

    def statement(self, number: int) -> str:
        """The name of a statement, as `statement_name` makes it."""
        known = self._names.get(number)
        if known is None:
            code, place = self._frames[number]
            known = self._names[number] = statement_name(frame_name(code, code.co_firstlineno), code, place)
        return known

    def are_many(self) -> bool:
        """Whether so many frames are kept that it is time to begin anew."""
        return len(self._frames) >= _MOST_NAMES


def count_collections() -> int:
    """How often Python's collector has run."""
    return sum(generation["collections"] for generation in gc.get_stats())


def frame_name(code: CodeType, line: int) -> str:
    """The name of a frame: `$models/net.py:12 forward` for the program's, and for a library's the form that PyTorch
    uses, `/usr/lib/python3.12/queue.py(154): get`, since its file name alone does not show whose it is."""
    file = file_of(code)
    if file.startswith(_LIBRARIES) or "site-packages" in file or "dist-packages" in file:  # also a user's own of these
        return f"{file}({line}): {called(code)}"
    roots = [str(Path.cwd()), *(os.path.realpath(root) for root in sys.path[:1])]
    root = next((root for root in roots if file.startswith(root + os.sep)), os.path.dirname(file))  # noqa: PTH120
    return f"${file[len(root) :].lstrip(os.sep)}:{line} {called(code)}"
