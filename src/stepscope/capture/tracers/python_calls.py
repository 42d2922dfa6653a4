"""Records calls of Python functions, by `sys.monitoring` if Python has it (from 3.12 on), else by `sys.setprofile`.

A call that was open when the capture started is not recorded.  `sys.monitoring` sees all threads; `sys.setprofile` only
the thread that starts the capture, the main thread, and those that start later.  Calls of C functions are not recorded:
they are most of the calls and say little that their caller does not.
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
from typing import Any

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.program_files import called, path_shown
from stepscope.capture.tracers.base import Clock, Probe
from stepscope.capture.tracers.ticker import THREAD_PREFIX
from stepscope.errors import CaptureError
from stepscope.formats.spool.layout import Chunk
from stepscope.kernels.calls import CallLog
from stepscope.records import dataclass

PLANE = "/host:python-tracer"
_BYTES_OF_CALL = 130
_ROUNDS, _CALLS = 5, 100  # to measure what a call costs: a tenth of a millisecond
_OWN_FOLDER = str(Path(__file__).parents[2]) + os.sep
_THREADING = threading.Thread.run.__code__.co_filename
_MOST_DEPTH = sys.maxsize


@dataclass(slots=True)
class Thread:
    """One thread, and the log of its calls."""

    name: str
    number: int
    log: CallLog


class PythonTracer(Probe):
    """Records Python calls that last at least `python_min_us` and are at most `python_max_depth` deep."""

    def __init__(self) -> None:
        self._clock: Clock = time.perf_counter_ns
        self._local = threading.local()
        self._threads: list[Thread] = []
        self._hook: _SetProfile | _Monitoring | None = None
        self._min_ns = 0
        self._max_depth = _MOST_DEPTH
        self._recording = False
        self._call_ns = 0.0  # what recording adds to a call

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts recording.  Raises CaptureError if another profiler or debugger has Python's hook."""
        self._clock = clock
        self._min_ns = round(options.python_min_us * 1000)
        self._max_depth = options.python_max_depth or _MOST_DEPTH
        self._hook = _Monitoring(self) if hasattr(sys, "monitoring") else _SetProfile(self)
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

    def enter(self, code: CodeType, _offset: int = 0, _value: object = None) -> None:
        """A call starts on this thread, or goes on."""
        log = self.log_of_thread(code)
        if log is not None:
            log.enter(code)

    def leave(self, code: CodeType, _offset: int = 0, _value: object = None) -> None:
        """A call ends on this thread, or pauses."""
        log: CallLog | None = getattr(self._local, "log", None)
        if log is not None:
            log.leave(code)

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
        if name is None and code.co_filename == _THREADING:
            return None
        made = CallLog(self._clock, self._min_ns, self._max_depth)
        made.recording = self._recording and not (name or "").startswith(THREAD_PREFIX)
        self._local.log = made
        self._threads.append(Thread(name or f"thread {number}", number, made))
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


def _chunk(thread: Thread, codes: list[CodeType], begin: list[int], end: list[int]) -> Chunk:
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


class _SetProfile:
    """Python's hook for profilers before 3.12."""

    def __init__(self, tracer: PythonTracer) -> None:
        self._tracer = tracer
        self._pending: object = None

    def install(self) -> None:
        if sys.getprofile() is not None or threading.getprofile() is not None:
            raise CaptureError(
                "another profiler has Python's profile hook",
                code="busy",
                lost="the Python calls",
                hint="end it, or capture with python_tracer_level=0",
            )
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        if threading.current_thread() is not threading.main_thread():
            self._join_main_thread()

    def _join_main_thread(self) -> None:
        """Asks the main thread, which usually trains, to install the hook: a thread can do that for itself only.

        The interpreter makes such pending calls on the main thread, between two instructions of its Python code.
        """
        import ctypes

        def install(_: object) -> int:
            if self._tracer._recording and sys.getprofile() is None:
                sys.setprofile(self._event)
            return 0

        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(install)  # kept until after the call
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)

    def remove(self) -> None:
        """Removes the hook from this thread; other threads remove it at their next call."""
        if threading.getprofile() == self._event:
            threading.setprofile(None)
        if sys.getprofile() == self._event or isinstance(sys.getprofile(), CallLog):
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: object) -> None:
        """The first event of a thread, whose log then takes this hook's place."""
        log = self._tracer.log_of_thread(frame.f_code) if self._tracer._recording else None
        if log is None:
            if not self._tracer._recording:
                sys.setprofile(None)
            return
        if event == "call":
            log.enter(frame.f_code)
        log.install()


class _Monitoring:
    """Python's hook for profilers from 3.12 on."""

    def __init__(self, tracer: PythonTracer) -> None:
        self._tracer = tracer
        self._monitoring: Any = vars(sys)["monitoring"]
        self._tool: int | None = None

    def install(self) -> None:
        monitoring = self._monitoring
        free = [tool for tool in (monitoring.PROFILER_ID, 3, 4) if monitoring.get_tool(tool) is None]
        if not free:
            raise CaptureError(
                "other profilers have all of Python's monitoring hooks",
                code="busy",
                lost="the Python calls",
                hint="end one, or capture with python_tracer_level=0",
            )
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, "stepscope")
        events = monitoring.events
        for event in (events.PY_START, events.PY_RESUME, events.PY_THROW):
            monitoring.register_callback(self._tool, event, self._tracer.enter)
        for event in (events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND):
            monitoring.register_callback(self._tool, event, self._tracer.leave)
        monitoring.set_events(self._tool, self._all_events(events))

    def remove(self) -> None:
        tool, self._tool = self._tool, None
        if tool is None:
            return
        self._monitoring.set_events(tool, 0)
        events = self._monitoring.events
        for name in ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND"):
            self._monitoring.register_callback(tool, getattr(events, name), None)
        self._monitoring.free_tool_id(tool)

    @staticmethod
    def _all_events(events: Any) -> int:
        entering: int = events.PY_START | events.PY_RESUME | events.PY_THROW
        return entering | int(events.PY_RETURN | events.PY_YIELD | events.PY_UNWIND)
