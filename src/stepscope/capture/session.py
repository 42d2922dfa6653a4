"""One capture at a time: start, stop, Profile, record.

No call raises into the training code, unless ProfilerOptions(strict=True) asks for it.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType

from stepscope.capture import aside, files, hard_end, ranges, report, tracers
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.running import Capture
from stepscope.capture.tracers.base import Artifact, Collected, Recording
from stepscope.errors import CaptureError, StepscopeError

LogDir = str | os.PathLike[str]
OpenTarget = Callable[[], files.Target | None]
"""Makes the place for a capture's files; None for one that is taken in memory."""

ALREADY_RUNNING = "already-running"  # the code of the error of a second start

_PATIENCE_S = 0.1  # what a start waits for the profiler of the capture before it
_HAND_OVER_S = 5.0  # what the program's end waits for a recording that somebody takes in memory
_SIGTERM_PATIENCE_S = 20.0  # launchers kill a job 30 s after they asked it to end
_HARD_END_PATIENCE_S = 15.0  # what `os._exit` waits for files that are being written
_LOCK_PATIENCE_S = 1.0
_CONVERSION_PATIENCE_S = 15.0  # of those 20; what is not converted by then is kept as the framework wrote it

_session: Capture | None = None
_ended_early: Capture | None = None  # it reached a limit, and nobody has called stop since
_failed_start: StepscopeError | None = None  # of the last start, if it failed
_exporting: set[Capture] = set()
_end_of_record: threading.Event | None = None  # ends the recording that `record` makes
_main_is_inside = False  # the main thread ends or writes a capture, which a signal handler cannot wait for
_sigterm_waits = False  # for the main thread to get out of here
# Reentrant, for a signal handler may stop a capture while its own thread is in here.
_lock = threading.RLock()


def start(logdir: LogDir, options: object = None) -> None:
    """Starts a capture; `stop` writes it to LOGDIR/plugins/profile/RUN/HOST.xplane.pb.

    It drives the profiler of the framework that the program uses, where there is one, together with Stepscope's own
    tracers; see `stepscope.capture.tracers` for the rule and STEPSCOPE_TRACER to overrule it.  A capture that is still
    running when the program ends, or is asked to end by SIGTERM, is stopped and written then.

    Args:
        logdir: a folder; made if it does not exist.  One on another machine (`gs://...`) gets its files at the end.
        options: a ProfilerOptions, or any object with its fields, such as TensorFlow's; None for the defaults.

    Raises:
        CaptureError: only with `strict`: a capture is running already, nothing can be written to `logdir`, or the
            framework's profiler does not start.  Otherwise these are logged and training goes on.
    """
    _begin(lambda: files.open_target(logdir), options)


def is_running() -> bool:
    """True while a capture of this process records."""
    return _session is not None


def stop(save: bool = True, wait: bool = True) -> Path | None:
    """Ends the capture and writes it.

    Args:
        save: False forgets what was recorded.
        wait: False returns at once and stops the framework's profiler and writes in the background; the program's end
            waits for that.  Until the framework's profiler has stopped, no other capture can start.

    Returns:
        The file that was written.  None if there is none, and `last_error()` then tells why; if it is still being
        written; or if it was copied to a logdir on another machine.

    Raises:
        CaptureError: only if the capture was started with `strict`.
    """
    global _ended_early
    with _lock:
        capture, early = _session, _ended_early
        _ended_early = None
    if capture is not None:
        return _end(capture, save=save, wait=wait, strict=capture.options.strict)
    if early is not None:
        return _path_of(early, wait)
    report.report(_nothing_to_stop(), "stopping the capture")
    return None


def _nothing_to_stop() -> CaptureError:
    """Why there is nothing: what went wrong with the start is more worth to know than that nothing runs."""
    if _failed_start is None:
        return CaptureError("no capture is running", code="not-running", hint="call start(logdir) first")
    problem = _failed_start.problem
    reason = f"no capture is running, for it did not start: {problem.reason}"
    return CaptureError(reason, code="not-running", path=problem.path, hint=problem.hint)


def _path_of(capture: Capture, wait: bool) -> Path | None:
    if wait:
        capture.finished.wait()
    return capture.path


def record(duration_ms: int, options: object = None, stop_event: threading.Event | None = None) -> Collected:
    """Records for a time and hands over the files' contents as bytes, without a logdir.  Any thread may call it.

    Args:
        duration_ms: how long; at least 1.
        options: as for `start`; `strict` changes nothing.
        stop_event: ends the recording early when set.

    Raises:
        CaptureError: a capture is running already, the framework's profiler does not start or stop, or the program
            stopped the recording.
    """
    if duration_ms < 1:
        raise CaptureError(f"a capture of {duration_ms} ms records nothing", code="duration", hint="ask for 1 or more")
    global _end_of_record
    capture = _begin(lambda: None, replace(ProfilerOptions.of(options), strict=True))
    assert capture is not None, "strict raises otherwise"
    _end_of_record = stop_event or threading.Event()
    try:
        _end_of_record.wait(min(duration_ms / 1000, threading.TIMEOUT_MAX))
    except BaseException:  # Ctrl-C, for one: nobody takes what there is, and nothing may be left running
        if _ended_by_me(capture):
            _finish(capture, save=False)
        raise
    if not _ended_by_me(capture):
        raise CaptureError("the recording was stopped by the program meanwhile", code="not-running")
    try:
        with report.Wall(f"stopping the {capture.name} profiler", strict=True):
            return _in_memory(capture.collect(capture.take(save=True)))
    finally:
        capture.forget()
        _exporting.discard(capture)
        capture.finished.set()
    raise AssertionError("the wall raises")


def _in_memory(collected: Collected) -> Collected:
    if collected.error is not None:
        report.report(collected.error, "collecting")

    def read(content: bytes | Path) -> bytes:
        return content if isinstance(content, bytes) else content.read_bytes()

    return replace(collected, artifacts=tuple(Artifact(a.suffix, read(a.content)) for a in collected.artifacts))


class Profile:
    """Captures what happens in a `with` block.

    An exception of the block leaves unchanged, and what was recorded until then is saved.  Inside another capture it
    reports so and does nothing.

    Attributes:
        path: the file that was written, None until then.
        url: where it was copied to, for a logdir on another machine.
    """

    def __init__(self, logdir: LogDir, options: object = None) -> None:
        self.path: Path | None = None
        self.url: str | None = None
        self._logdir = logdir
        self._options = options
        self._begun: list[Capture | None] = []  # of each block around; None where nothing could be begun

    def __enter__(self) -> Profile:
        self._begun.append(_begin(lambda: files.open_target(self._logdir), self._options))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        capture = self._begun.pop() if self._begun else None
        if capture is None:
            return
        if capture.ended_early:
            self.path = _path_of(capture, wait=True)
        else:
            self.path = _end(capture, save=True, wait=True, strict=capture.options.strict and error is None)
        self.url = capture.url


# -- the one capture that runs -----------------------------------------------------------------------------------------


def _begin(open_target: OpenTarget, options: object) -> Capture | None:
    """Starts a capture; None if that failed."""
    global _session, _ended_early, _failed_start
    chosen = ProfilerOptions.of(options)
    _failed_start = None
    try:
        with report.Wall("starting the capture", chosen.strict), _lock:
            _give_way()
            _refuse_second()
            report.forget()
            _session = _started(open_target, chosen.in_range())
            _ended_early = None
            atexit.register(_at_exit)
            _listen_to_sigterm()
            hard_end.listen(before_hard_end)
            return _session
    finally:
        if _session is None:
            _failed_start = report.last_error()
    return None


def _give_way() -> None:
    if _session is not None and _session.yields:
        _session.gave_way = True
        _end(_session, save=False, wait=True, strict=False)


def _refuse_second() -> None:
    if _session is not None:
        raise CaptureError(
            "a capture is already running",
            code=ALREADY_RUNNING,
            path=_session.target and _session.target.folder,
            kept="the running capture",
            hint="call stop() before the next start()",
        )
    if not all(capture.released.wait(_PATIENCE_S) for capture in list(_exporting)):
        raise CaptureError(
            "the capture before this one is still being stopped",
            code="still-stopping",
            kept="the capture before",
            hint="leave more steps between two captures, or stop with wait=True",
        )


def _started(open_target: OpenTarget, options: ProfilerOptions) -> Capture:
    entry = tracers.choose()
    target = open_target()
    try:
        capture = Capture(entry, target, options)
        capture.start(_end_early)
    except BaseException:
        if target is not None:
            target.release()
        raise
    return capture


def _ended_by_me(capture: Capture) -> bool:
    """Ends a recording; False if it had ended already: inside its block, by another thread, or by itself."""
    global _session
    with _lock:
        if capture is not _session:
            return False
        capture.refuse_other_thread()
        _session = None
        atexit.unregister(_at_exit)
        capture.end()
        _exporting.add(capture)
        return True


def _is_taken_in_memory(capture: Capture) -> bool:
    """True for a recording of `record`, which is then told to end; its caller gets what there is."""
    if capture.target is None and _end_of_record is not None:
        _end_of_record.set()
    return capture.target is None


def _end(capture: Capture, *, save: bool, wait: bool, strict: bool) -> Path | None:
    if _is_taken_in_memory(capture):
        return None
    mine, failure = False, None
    with _sigterm_after():
        with report.Wall(f"stopping the {capture.name} profiler", strict):
            mine = _ended_by_me(capture)
        if mine:
            failure = _finish(capture, save) if wait or not save else _finish_later(capture)
    if strict and failure is not None:
        raise failure
    return capture.path if mine else None


_Taken = tuple["Recording | None", StepscopeError | None]


def _finish_later(capture: Capture) -> StepscopeError | None:
    taken = _taken(capture, save=True) if capture.on_one_thread else None
    try:
        threading.Thread(target=_finish, args=(capture, True, taken), name="stepscope-export").start()
    except RuntimeError:  # no thread can be had: at the program's end, or at the system's limit
        return _finish(capture, True, taken)
    return None


def _taken(capture: Capture, save: bool) -> _Taken:
    """Stops the framework's profiler; what it recorded, and what went wrong."""
    try:
        return capture.take(save), None
    except Exception as error:
        failure = report.report(error, f"stopping the {capture.name} profiler")
        failure.__cause__ = None if failure is error else error
        return None, failure


def _finish(capture: Capture, save: bool, taken: _Taken | None = None) -> StepscopeError | None:
    """Stops the framework's profiler and writes the files, on whatever thread has the time; returns what went wrong.

    What Stepscope recorded itself is written even if the framework's profiler fails.  If nothing can be written, what
    was flushed stays as it is.

    Args:
        taken: what the framework's profiler recorded, if it has been stopped already.
    """
    failure: StepscopeError | None = None
    try:
        recording, failure = taken or _taken(capture, save)
        if save:
            failure = _write(capture, recording) or failure
    finally:
        if not save or capture.is_written:
            capture.forget()
        else:
            capture.leave_partial()
        _exporting.discard(capture)
        capture.finished.set()
    return failure


def _write(capture: Capture, recording: Recording | None) -> StepscopeError | None:
    assert capture.target is not None, "record() takes no files"
    try:
        collected = capture.collect(recording)
        stored = files.store_all(collected.artifacts, capture.target)
        capture.is_written = True
        if capture.target.url is None:
            capture.path = stored[0]
        else:
            capture.url = files.upload(stored, capture.target)
    except Exception as error:
        return report.report(error, "writing the profile")
    if collected.error is not None:
        report.report(collected.error, "collecting")
    return None


def _end_early(capture: Capture) -> None:
    """Ends a capture that has reached a limit, on one of its own threads."""
    global _ended_early
    if _is_taken_in_memory(capture):
        return
    if _ended_by_me(capture):
        _ended_early = capture
        _finish(capture, save=True)


# -- the end of the program --------------------------------------------------------------------------------------------


def _at_exit() -> None:
    capture = _session
    if capture is None:
        return
    _end(capture, save=True, wait=True, strict=False)
    if capture.target is None:
        capture.finished.wait(_HAND_OVER_S)


def _listen_to_sigterm() -> None:
    """Saves the capture when the job is asked to end, unless the program has an answer of its own to that."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


@contextmanager
def _sigterm_after() -> Iterator[None]:
    """On the main thread: a job that is asked to end meanwhile ends after the block, with its profile written."""
    global _main_is_inside
    if _main_is_inside or threading.current_thread() is not threading.main_thread():
        yield
        return
    _main_is_inside = True
    try:
        yield
    finally:
        _main_is_inside = False
        if _sigterm_waits:
            _save_and_end()


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    global _sigterm_waits
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    aside.hurry(_CONVERSION_PATIENCE_S)
    if _main_is_inside:
        _sigterm_waits = True
    else:
        _save_and_end()


def _save_and_end() -> None:
    try:
        _at_exit()
        for capture in list(_exporting):
            capture.finished.wait(_SIGTERM_PATIENCE_S)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)  # the job ends as if nobody had listened


def before_hard_end(how: str) -> None:
    """Saves what can be saved in a moment before the process ends without Python's own end.

    What is being written is waited for, though not for ever.  A capture that runs is ended where Stepscope's own
    tracers record alone; a framework's profiler may wait for a device, and that may be why the program ends like this.
    """
    if _main_is_inside and threading.current_thread() is threading.main_thread():
        return  # in a signal handler: what it would wait for goes on only after it
    aside.hurry(_CONVERSION_PATIENCE_S)
    capture = _session
    if capture is not None and _lock.acquire(timeout=_LOCK_PATIENCE_S):
        try:
            _cut(capture, how)
        finally:
            _lock.release()
    until = time.monotonic() + _HARD_END_PATIENCE_S
    for exporting in list(_exporting):
        exporting.finished.wait(max(0.0, until - time.monotonic()))


def can_end_at_once() -> bool:
    """True unless a framework's profiler runs, whose end may wait for a device."""
    return _session is None or not _session.needs_framework


def _cut(capture: Capture, how: str) -> None:
    if capture.needs_framework:
        capture.cut_short(how)
    else:
        _end(capture, save=True, wait=True, strict=False)


def _forget_parent() -> None:
    """After a fork: the capture is the parent's, which will write it."""
    global _session, _ended_early, _lock, _main_is_inside, _sigterm_waits
    _lock = threading.RLock()
    _main_is_inside = _sigterm_waits = False
    if _session is not None:
        with suppress(Exception):
            _session.abandon()
    _session = _ended_early = None
    _exporting.clear()
    atexit.unregister(_at_exit)
    ranges.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
