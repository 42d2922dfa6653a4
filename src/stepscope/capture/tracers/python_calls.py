"""Records calls of Python functions, by the interpreter's hook for profilers.

A call that was open when the capture started is not recorded.  Before Python 3.12 the hook sees only the thread that
starts the capture, the main thread, and those that start later.  Calls of C functions are not recorded: they are most
of the calls and say little that their caller does not.

`sys.monitoring` is not used: it has a few places for all tools, and the program's own profiler or debugger would find
one taken.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from array import array
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import OwnThread, is_main_thread, own_threads
from stepscope.capture.places import called, path_shown
from stepscope.capture.tracers.base import Clock, Probe
from stepscope.errors import CaptureError
from stepscope.formats.spool.layout import Chunk
from stepscope.kernels.calls import CallLog, call_on_main_thread
from stepscope.records import dataclass

PLANE = "/host:python-tracer"
_BYTES_OF_CALL = 130
_ROUNDS, _CALLS = 5, 100  # to measure what a call costs: a tenth of a millisecond
_OWN_FOLDER = str(Path(__file__).parents[2]) + os.sep
_FIRST_OF_OWN = OwnThread._run.__code__  # the first call of a thread of ours
_THREADING = threading.Thread.run.__code__.co_filename
_FROZEN, _RUNS_PROGRAM = "<frozen ", "<frozen runpy>"  # what the interpreter calls on its own; with `-m`, the latter
_MOST_DEPTH = sys.maxsize
_TOOL_OF_HOOKS = 6  # the place of `sys.setprofile` among the tools of sys.monitoring: PY_MONITORING_SYS_PROFILE_ID


@dataclass(slots=True)
class TracedThread:
    """One thread, and the log of its calls."""

    name: str
    number: int
    log: CallLog


class PythonTracer(Probe):
    """Records Python calls that last at least `python_min_us` and are at most `python_max_depth` deep."""

    def __init__(self) -> None:
        self._clock: Clock = time.perf_counter_ns
        self._local = threading.local()
        self._threads: list[TracedThread] = []
        self._hook: _Hook | None = None
        self._min_ns = 0
        self._max_depth = _MOST_DEPTH
        self._recording = False
        self._call_ns = 0.0  # what recording adds to a call

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts recording.  Raises CaptureError if another profiler or debugger has Python's hook."""
        self._clock = clock
        self._min_ns = round(options.python_min_us * 1000)
        self._max_depth = options.python_max_depth or _MOST_DEPTH
        self._hook = _Hook(self)
        plain_ns = _time_calls()
        self._recording = True
        self._hook.install()
        self._call_ns = max(_time_calls() - plain_ns, 0.0)

    def stop(self) -> None:
        """Ends the recording."""
        self._recording = False
        for thread in self._threads:
            thread.log.recording = False
        if self._hook is not None:
            self._hook.remove()

    def abandon(self) -> None:
        """Removes the hook in the child."""
        self.stop()

    @property
    def cost_ms(self) -> float:  # type: ignore[override]
        """What recording has added to the thread with most calls, by their number."""
        return max((thread.log.calls for thread in self._threads), default=0) * self._call_ns / 1e6

    def waiting_bytes(self) -> int:
        """About how much memory the calls take."""
        return _BYTES_OF_CALL * sum(len(thread.log) for thread in self._threads)

    def drain(self) -> list[Chunk]:
        """The calls that have ended, a chunk for each thread that has any."""
        chunks = [_chunk(thread, *thread.log.take()) for thread in list(self._threads)]
        return [chunk for chunk in chunks if len(chunk.name)]

    def log_of_thread(self, code: CodeType) -> CallLog | None:
        """The log of this thread, made at its first call; None while Python is still creating the thread, since its
        name is not known yet.

        `threading.current_thread` would add a thread that it does not know to the program's threads, permanently.
        """
        known: CallLog | None = getattr(self._local, "log", None)
        if known is not None:
            return known
        ident, number = threading.get_ident(), threading.get_native_id()
        name = next((known.name for known in threading.enumerate() if known.ident == ident), None)
        is_own = ident in own_threads() or code is _FIRST_OF_OWN
        if name is None and code.co_filename == _THREADING:
            return None
        made = CallLog(self._clock, self._min_ns, self._max_depth)
        made.recording = self._recording and not is_own
        self._local.log = made
        self._threads.append(TracedThread(name or f"thread {number}", number, made))
        return made


def _time_calls() -> float:
    """How long a call of a function takes now, in ns: the least of a few rounds, as the system may suspend any."""

    def nothing() -> None: ...

    rounds = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(_CALLS):
            nothing()
        rounds.append((time.perf_counter_ns() - begin) / _CALLS)
    return min(rounds)


def _chunk(thread: TracedThread, codes: list[CodeType], begin: list[int], end: list[int]) -> Chunk:
    """The calls of the program: Stepscope's own are left out."""
    own: dict[int, bool] = {id(code): code.co_filename.startswith(_OWN_FOLDER) for code in codes}
    kept = [row for row, code in enumerate(codes) if not own[id(code)]]
    names, name = name_codes(codes[row] for row in kept)
    begin, end = [begin[row] for row in kept], [end[row] for row in kept]
    return Chunk(PLANE, thread.name, thread.number, "PYTHON_CALL", names, name, array("q", begin), array("q", end))


def name_codes(codes: Iterable[CodeType]) -> tuple[list[str], array[int]]:
    """The distinct names, and for each code object the row of its name.

    Code objects are compared by identity, so the caller has to keep them alive: hashing one reads each of its
    instructions, which takes 10 us for a long function.
    """
    rows: dict[str, int] = {}
    known: dict[int, int] = {}
    column = array("i")
    for code in codes:
        row = known.get(id(code))
        if row is None:
            row = known[id(code)] = rows.setdefault(code_name(code), len(rows))
        column.append(row)
    return list(rows), column


def code_name(code: CodeType) -> str:
    """The name of a call in the form of TensorFlow's tracer: `$train.py:12 load`.

    A library's file has its path below site-packages, `$scipy/ndimage/zoom.py:9 zoom`, which tells it from a program's.
    """
    return f"${path_shown(code.co_filename)}:{code.co_firstlineno} {called(code)}"


def _a_thread_is_profiled() -> bool:
    """Whether some thread has a hook, from Python 3.12 on; before, the hooks of other threads are left alone anyway."""
    events: dict[str, int] = getattr(getattr(sys, "monitoring", None), "_all_events", dict)()
    return bool(events.get("PY_START", 0) & 1 << _TOOL_OF_HOOKS)


class _Hook:
    """The interpreter's hook for profilers: of this thread, the main thread and those that start later, and from Python
    3.12 on of all threads."""

    def __init__(self, tracer: PythonTracer) -> None:
        self._tracer = tracer

    def install(self) -> None:
        if sys.getprofile() is not None or threading.getprofile() is not None or _a_thread_is_profiled():
            raise CaptureError(
                "another profiler has Python's profile hook",
                code="busy",
                lost="the Python calls",
                hint="end it, or capture with python_tracer_level=0",
            )
        if hasattr(threading, "setprofile_all_threads"):
            threading.setprofile_all_threads(self._event)
        else:
            threading.setprofile(self._event)
            sys.setprofile(self._event)
            if not is_main_thread():
                self._join_main_thread()

    def _join_main_thread(self) -> None:
        """Asks the main thread, which usually trains, to install the hook: a thread can do that for itself only.

        The interpreter makes such pending calls on the main thread, between two instructions of its Python code.
        """

        def install() -> None:
            if self._tracer._recording and sys.getprofile() is None:
                sys.setprofile(self._event)

        call_on_main_thread(install)

    def remove(self) -> None:
        """Removes the hook from this thread; other threads remove it at their next call."""
        if threading.getprofile() == self._event:
            threading.setprofile(None)
        if sys.getprofile() == self._event:
            sys.setprofile(None)
        CallLog.uninstall()

    def _event(self, frame: FrameType, event: str, argument: object) -> None:
        """The first event of a thread, whose log then takes this hook's place."""
        if event == "return" and frame.f_back is None:
            file = frame.f_code.co_filename
            if file == _RUNS_PROGRAM or not file.startswith(_FROZEN):  # the last one of the thread
                sys.setprofile(None)
            return
        log = self._tracer.log_of_thread(frame.f_code) if self._tracer._recording else None
        if log is None:
            if not self._tracer._recording:
                sys.setprofile(None)
            return
        if event == "call":
            log.enter(frame.f_code)
        log.install()
