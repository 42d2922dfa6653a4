"""One capture at a time: start, stop, Profile.

No call raises into the training code, unless ProfilerOptions(strict=True) asks for it.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from stepscope.capture import files, ranges, report, tracers
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Artifact, Collected, Recording, Tracer
from stepscope.errors import CaptureError

LogDir = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Session:
    """A capture that runs."""

    tracer: Tracer
    tracer_name: str
    folder: Path
    strict: bool
    thread: int


_session: Session | None = None
# Reentrant, for a signal handler may stop a capture while its own thread is in here.
_lock = threading.RLock()


def start(logdir: LogDir, options: object = None) -> None:
    """Starts a capture; `stop` writes it to LOGDIR/plugins/profile/RUN/HOST.xplane.pb.

    It drives the profiler of the framework that the program uses, or Stepscope's own tracer where there is none; see
    `stepscope.capture.tracers` for the rule and STEPSCOPE_TRACER to overrule it.  A capture that is still running when
    the program ends is stopped and written then.

    Args:
        logdir: a local folder; made if it does not exist.
        options: a ProfilerOptions, or any object with its fields, such as TensorFlow's; None for the defaults.

    Raises:
        CaptureError: only with `strict`: a capture is running already, nothing can be written to `logdir`, or the
            framework's profiler does not start.  Otherwise these are logged and training goes on.
    """
    _begin(logdir, options)


def is_running() -> bool:
    """True while a capture of this process records."""
    return _session is not None


def record(duration_ms: int, options: object = None, stop_event: threading.Event | None = None) -> Collected:
    """Records for a time and hands over the files' contents as bytes, without a logdir.  Any thread may call it.

    Args:
        duration_ms: how long; at least 1.
        options: as for `start`; `strict` changes nothing.
        stop_event: ends the recording early when set.

    Raises:
        CaptureError: a capture is running already, or the framework's profiler does not start or stop.
    """
    if duration_ms < 1:
        raise CaptureError(f"a capture of {duration_ms} ms records nothing", code="duration", hint="ask for 1 or more")
    chosen = replace(ProfilerOptions.of(options), strict=True)
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        session = _begin(folder, chosen)
        assert session is not None, "strict raises otherwise"
        (stop_event or threading.Event()).wait(duration_ms / 1000)
        recording = _stopped(session, save=True)
        if recording is None:
            raise CaptureError("the capture was stopped by the program meanwhile", code="not-running")
        with closing(recording):
            return _in_memory(recording.collect(files.host_name()))


def _in_memory(collected: Collected) -> Collected:
    def read(content: bytes | Path) -> bytes:
        return content if isinstance(content, bytes) else content.read_bytes()

    return replace(collected, artifacts=tuple(Artifact(a.suffix, read(a.content)) for a in collected.artifacts))


def stop(save: bool = True, wait: bool = True) -> Path | None:
    """Ends the capture and writes it.

    Args:
        save: False forgets what was recorded.
        wait: False returns at once and writes in the background; the program's end waits for that.

    Returns:
        The file that was written; None if there is none, `last_error()` then tells why, or if it is being written.

    Raises:
        CaptureError: only if the capture was started with `strict`.
    """
    session = _session
    if session is None:
        nothing = CaptureError("no capture is running", code="not-running", hint="call start(logdir) first")
        report.report(nothing, "stopping the capture")
        return None
    if not wait:
        threading.Thread(target=_end, args=(session, save, False), name="stepscope-export").start()
        return None
    return _end(session, save, session.strict)


class Profile:
    """Captures what happens in a `with` block.

    An exception of the block leaves unchanged, and what was recorded until then is saved.  Inside another capture it
    reports so and does nothing.

    Attributes:
        path: the file that was written, None until then.
    """

    def __init__(self, logdir: LogDir, options: object = None) -> None:
        self.path: Path | None = None
        self._logdir = logdir
        self._options = options
        self._session: Session | None = None

    def __enter__(self) -> Profile:
        self._session = _begin(self._logdir, self._options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            self.path = _end(session, save=True, strict=session.strict and error is None)


def _begin(logdir: LogDir, options: object) -> Session | None:
    """Starts a capture; None if that failed."""
    global _session
    chosen = ProfilerOptions.of(options)
    with report.Wall("starting the capture", chosen.strict), _lock:
        _refuse_second()
        report.forget()
        _session = _started(logdir, chosen.in_range())
        ranges.route(_session.tracer.annotate)
        atexit.register(_at_exit)
        return _session
    return None


def _refuse_second() -> None:
    if _session is not None:
        raise CaptureError(
            "a capture is already running",
            code="already-running",
            path=_session.folder,
            kept="the running capture",
            hint="call stop() before the next start()",
        )


def _started(logdir: LogDir, options: ProfilerOptions) -> Session:
    entry = tracers.choose()
    folder = files.make_run_folder(logdir)
    try:
        tracer = entry.load()()
        tracer.start(options)
    except BaseException:
        files.drop_if_empty(folder)
        raise
    return Session(tracer, entry.name, folder, options.strict, threading.get_ident())


def _end(session: Session, save: bool, strict: bool) -> Path | None:
    with report.Wall(f"stopping the {session.tracer_name} profiler", strict):
        try:
            recording = _stopped(session, save)
            return None if recording is None else _saved(session, recording)
        finally:
            files.drop_if_empty(session.folder)
    return None


def _stopped(session: Session, save: bool) -> Recording | None:
    """Ends the recording, whatever happens; None if it is not to be kept."""
    global _session
    with _lock:
        if session is not _session:  # it was stopped inside its block, or another thread was faster
            return None
        _refuse_other_thread(session)
        _session = None
        atexit.unregister(_at_exit)
        ranges.end_open_step()
        ranges.route(None)
        if save:
            return session.tracer.stop()
        session.tracer.discard()
    return None


def _at_exit() -> None:
    if _session is not None:
        _end(_session, save=True, strict=False)


def _refuse_other_thread(session: Session) -> None:
    if session.tracer.one_thread and session.thread != threading.get_ident():
        raise CaptureError(
            f"the {session.tracer_name} profiler has to be stopped on the thread that started it",
            code="wrong-thread",
            kept="the running capture",
            hint="call stop() there",
        )


def _saved(session: Session, recording: Recording) -> Path:
    """Writes the files of a recording; touches nothing but the recording and the folder."""
    with closing(recording):
        host = files.host_name()
        collected = recording.collect(host)
        session.folder.mkdir(parents=True, exist_ok=True)
        path = files.store(collected.artifacts, session.folder, host)
    if collected.error is not None:
        report.report(collected.error, "collecting")
    return path


def _forget_parent() -> None:
    """After a fork: the capture is the parent's, which will write it."""
    global _session, _lock
    _lock = threading.RLock()
    _session = None
    atexit.unregister(_at_exit)
    ranges.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
