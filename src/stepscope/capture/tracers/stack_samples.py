"""Samples the Python stacks of all threads: the cost does not depend on how often functions are called.

Every sample walks over the stacks.  Equal frames of consecutive samples are joined, so that a line looks like that of a
tracer of function calls, with the resolution of the sampling.  A frame in two consecutive samples counts as running all
the time between them; one in only the first or the second of them, half of it.

A function is named by the line that defines it.  The code of a module has no such line: it is named by the line that
runs, which is what the reader of a script without functions needs.  Stepscope's own frames are left out, but for those
of its demo, which stand for a user's program; and what called the command that runs the program.

Joined frames do not show when the samples between their ends were taken, so these times are recorded, too.

What was sampled is kept as numbers: objects that stay would have Python's collector run, on this thread, and more often
than the program alone would have it.  A sample is only read when it is taken (`StackLog`), and what many show is joined
once a second: the thread that samples finds cold caches each time, and takes ten times as long for a line of Python.

Whether a thread interprets Python or is in compiled code is told from the instruction that it runs (`interpreting`).

With each sample, the processor time of the loop's threads is read (`thread_usage`): the sampler is awake anyway, and
waking another thread would interrupt the training once more.
"""

from __future__ import annotations

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
from stepscope.capture.own_threads import names_of_own_threads
from stepscope.capture.places import LIBRARIES, called
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.capture.tracers.interpreting import Instructions, SampledRuns
from stepscope.capture.tracers.statements import Statements, statement_name
from stepscope.capture.tracers.thread_usage import ThreadUsage
from stepscope.capture.tracers.ticker import SHORT_PATIENCE_S, Ticker
from stepscope.formats.spool.layout import INTERPRETING_PLANE, SAMPLE_TIMES_PLANE, STATEMENTS_PLANE, Chunk
from stepscope.kernels.stacks import Sampling, StackLog, file_of
from stepscope.records import dataclass
from stepscope.switching import hold, release

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
        sampled: what the last sample showed of it, one object for samples that show the same.
    """

    name: str
    number: int
    stack: list[Frame] = field(default_factory=list)
    began: array[int] = field(default_factory=lambda: array("q"))
    ended: array[int] = field(default_factory=lambda: array("q"))
    runs: SampledRuns = field(default_factory=SampledRuns)
    statements: Statements = field(default_factory=Statements)
    sampled: object = None


class StackSampler(Probe):
    """Samples the stacks of all threads `stack_samples_hz` times a second.

    Args:
        reads_usage: whether the processor time of the loop's threads is read, too; a worker process has no loop.
    """

    def __init__(self, reads_usage: bool = True) -> None:
        self._clock: Clock = time.perf_counter_ns
        self._log = StackLog(_MOST_FRAMES, _OWN_FOLDER, _DEMO_FOLDER, _COMMAND_FOLDER, _LIBRARIES)
        self._threads: dict[int, SampledThread] = {}  # those of the last sample, by Python's thread id, which is reused
        self._gone: list[SampledThread] = []
        self._ticker: Ticker | None = None
        self._last_ns = 0
        self._times = array("q")
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
        if self._usage is not None:
            self._usage.start(options, clock)
        sampling = self._make_sampling(1 / options.stack_samples_hz)
        self._ticker = Ticker("sampler", 1 / options.stack_samples_hz, sampling.sample, quick=sampling)
        self._ticker.start()

    def _make_sampling(self, interval_s: float) -> Sampling:
        named = threading._active  # type: ignore[attr-defined]  # `enumerate` may wait for a lock
        meters = {} if self._usage is None else self._usage.meters
        pace = interval_s, MOST_SHARE, _BALANCE_S, _MOST_WAIT_S, time.thread_time_ns
        return Sampling(self._log, self._clock, named, names_of_own_threads(), meters, self._switching.adapt, *pace)

    def stop(self) -> None:
        """Ends the sampling and every range that is open."""
        if self._ticker is not None:
            self._ticker.stop(SHORT_PATIENCE_S)
        self._switching.give_back()
        self.end_open()
        if self._usage is not None:
            self._usage.stop()

    def end_open(self) -> None:
        """Ends every range that is open, at the last sample; what goes on begins anew with the next one."""
        with self._lock:
            self._note_samples()
            for thread in self._threads.values():
                self._end(thread, 0, self._last_ns)
                thread.runs.end(self._last_ns)
                thread.statements.end(self._last_ns)
                thread.sampled = None

    def abandon(self) -> None:
        """In a forked child."""
        self._switching.give_back()
        if self._usage is not None:
            self._usage.abandon()

    def _note_samples(self) -> None:
        """Joins what the samples since the last time show."""
        for now, threads in self._log.take():
            for sampled in threads:
                known, stack, place, own = sampled
                thread = self._threads.get(known[0])
                if thread is not None and thread.sampled is sampled:
                    continue  # it waits where it did; most threads of a program do, most of the time
                thread = self._thread(*known)
                thread.sampled = sampled
                self._note(thread, stack, now)
                thread.runs.note(self._instructions.find(*place), self._last_ns, now)
                shown = [self._statements.number(each) for each in reversed(own)]
                thread.statements.note(shown, self._last_ns, now)
            for ident in self._threads.keys() - {known[0] for known, *_ in threads}:
                self._forget(ident)
            self._last_ns = now
            if self._usage is not None:
                self._times.append(now)

    def _note(self, thread: SampledThread, stack: list[Frame], now: int) -> None:
        """A thread has this stack now, innermost frame first."""
        if stack == thread.stack:
            return
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
        del thread.began[depth:]
        thread.stack = thread.stack[inner:]  # a new list: other samples may show the same one

    def _keep(self, thread: SampledThread, frame: Frame, began: int, ended: int) -> None:
        thread.ended.extend((self._names.number(frame), began, ended))

    def _thread(self, ident: int, number: int, name: str) -> SampledThread:
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
            kept = len(self._log) + sum(each.itemsize * len(each) for each in ended)
        return kept + (self._usage.waiting_bytes() if self._usage is not None else 0)

    def drain(self) -> list[Chunk]:
        """The ranges that have ended, a chunk for each thread with any, the samples' times, and what threads used."""
        with self._lock:
            self._note_samples()
            threads = [*self._threads.values(), *self._gone]
            taken = [(thread, thread.ended) for thread in threads if thread.ended]
            runs = [(thread, thread.runs.take()) for thread in threads if thread.runs.ended]
            if self._statements.are_many():
                for thread in self._threads.values():
                    thread.statements.end(self._last_ns)
                    thread.sampled = None  # what it shows is numbered anew
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


def frame_name(code: CodeType, line: int) -> str:
    """The name of a frame: `$models/net.py:12 forward` for the program's, and for a library's the form that PyTorch
    uses, `/usr/lib/python3.12/queue.py(154): get`, since its file name alone does not show whose it is."""
    file = file_of(code)
    if file.startswith(_LIBRARIES) or "site-packages" in file or "dist-packages" in file:  # also a user's own of these
        return f"{file}({line}): {called(code)}"
    roots = [str(Path.cwd()), *(os.path.realpath(root) for root in sys.path[:1])]
    root = next((root for root in roots if file.startswith(root + os.sep)), os.path.dirname(file))  # noqa: PTH120
    return f"${file[len(root) :].lstrip(os.sep)}:{line} {called(code)}"


class SwitchInterval:
    """Python's switch interval, shortened while that changes nothing for the program, so that a sampler has the
    interpreter's lock soon after it wakes.

    Python takes the lock from a running thread after 5 ms, and that thread lets go of it by itself in calls of
    libraries. A sampler that waits so long meets a fast loop in those calls, and hardly ever in the Python between
    them, so it blames the wrong function. Measured on steps of 1 ms, 95 % of them plain Python: of 144 samples none
    showed that Python; with an interval of 0.1 ms 75 of 95 did, and the processor time of a step stayed the same.

    Threads that compete for the lock would change places more often, so the interval is short only while one thread of
    the program computes.
    """

    _SHORT_S = 1.9e-5  # shorter than the 50 us to which Linux rounds the waiting; no program would set this one

    def __init__(self) -> None:
        self._is_short = False

    def adapt(self, computing: int) -> None:
        """Shortens the interval, or gives it back.

        Args:
            computing: how many of the program's threads compute; -1 if that is not known.
        """
        if computing != 1:
            self.give_back()
        elif not self._is_short:
            self._is_short = True
            hold(self._SHORT_S)

    def give_back(self) -> None:
        """The interval of the program again, unless the program has set another one meanwhile."""
        if self._is_short:
            self._is_short = False
            release(self._SHORT_S)
