"""The recorder of this process: one capture at a time, whoever asks for it.

    who asks                             plan: when             sources: what              sink: where to
    start(), stop(), Profile             the calls              the framework's profiler,  files of a logdir
    a schedule, a callback               these steps            and the tracers that       files of a logdir
    stepscope run, a signal (auto/)      steps that are found   the options choose         files of a logdir
    a trigger of a watch (Windows)       the steps after it                                files of a logdir
    a client (Recorder.record)           a time                                            bytes for the caller
    a watch, all the time (Ring)         always                 tracers that cost little   a file of the last seconds

Every plan starts and ends its captures here.  No call raises into the training code, unless
ProfilerOptions(strict=True) asks for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from stepscope.capture import files, report, tracers
from stepscope.capture.frameworks import builds_tensorflow_graph
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.out_of_memory import add_to_profile, find_full_memory
from stepscope.capture.own_threads import OwnThread, register_at_fork
from stepscope.capture.program_end import ProgramEnd, hold_taken_signals, release_taken_signals
from stepscope.capture.running import Capture
from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.base import Artifact, Collected, Recording
from stepscope.capture.tracers.wrapping import keep_as_python
from stepscope.errors import CaptureError, StepscopeError
from stepscope.switching import switching_quickly

LogDir = str | os.PathLike[str]
OpenTarget = Callable[[], files.Target | None]
"""Makes the place for a capture's files; None for a capture that is taken in memory."""

ALREADY_RUNNING = "already-running"  # the code of the error of a second start

_PATIENCE_S = 0.1  # how long a start waits for the profiler of the capture before it

_Taken = tuple["Recording | None", StepscopeError | None]
"""What the framework's profiler recorded, and what went wrong."""


class Recorder:
    """The captures of one process, which has exactly one of these: `RECORDER`.

    Every method may be called on any thread, and in a signal handler.

    Attributes:
        recording: the capture that records; None if none does.
        exporting: the captures that have ended and are still being stopped or written.
        lock: held while a capture starts or ends.  It is reentrant, because a signal handler may stop a capture while
            its own thread holds the lock.
        program_end: saves the captures when the program ends.
    """

    def __init__(self) -> None:
        self._reset()
        self.program_end = ProgramEnd(self)

    def _reset(self) -> None:
        self.lock = threading.RLock()
        self.recording: Capture | None = None
        self.exporting: set[Capture] = set()
        self._ended_early: Capture | None = None  # at a limit; nobody has called stop since
        self._failure: StepscopeError | None = None  # why the last start failed
        self._last_profile: Path | None = None

    # -- what the program calls --------------------------------------------------------------------------------------

    @keep_as_python
    def start(self, logdir: LogDir, options: object = None) -> Capture | None:
        """Starts a capture; `stop` writes it to LOGDIR/plugins/profile/RUN/HOST.xplane.pb.

        It drives the profiler of the framework that the program uses, if there is one, together with Stepscope's own
        tracers; see `stepscope.capture.tracers` for the rule and STEPSCOPE_TRACER to override it.  A capture that is
        still running when the program ends, or when SIGTERM asks it to end, is stopped and written then.

        Args:
            logdir: a folder; made if it does not exist.  One on another machine (`gs://...`) gets its files at the end.
            options: a ProfilerOptions, or any object with its fields, such as TensorFlow's; None for the defaults.

        Returns:
            The capture.  None if it did not start; `last_error()` then says why.

        Raises:
            CaptureError: only with `strict`: a capture is running already, nothing can be written to `logdir`, or the
                framework's profiler does not start.  Otherwise these are logged and training goes on.
        """
        capture = self.start_capture(lambda: files.open_target(logdir), options)
        if capture is not None:
            files.forget_reason(logdir)
        return capture

    def is_running(self) -> bool:
        """True while a capture of this process records."""
        return self.recording is not None

    @keep_as_python
    def stop(self, save: bool = True, wait: bool = True) -> Path | None:
        """Ends the capture and writes it.

        Args:
            save: False forgets what was recorded.
            wait: False returns at once.  The framework's profiler is then stopped, and the files are written, in the
                background; the program's end waits for that.  No other capture can start until the framework's profiler
                has stopped.  PyTorch's is stopped before this returns: beside operations its memory may be corrupted.

        Returns:
            The file that was written.  None if there is none, and `last_error()` then says why; if it is still being
            written; or if it was copied to a logdir on another machine.

        Raises:
            CaptureError: only if the capture was started with `strict`.
        """
        capture = self.recording
        path = (
            None if capture is None else self.end_capture(capture, save=save, wait=wait, strict=capture.options.strict)
        )
        with self.lock:
            ended_early, self._ended_early = self._ended_early, None  # it may have reached a limit this very moment
        if ended_early is not None:
            return ended_early.wait_for_path() if wait else ended_early.path
        if capture is None:
            report.report(self._nothing_to_stop(), "stopping the capture")
        return path

    def record(self, duration_ms: int, options: object = None, stop_event: threading.Event | None = None) -> Collected:
        """Records for a time and returns the files' contents as bytes, without a logdir.  Any thread may call it.

        Args:
            duration_ms: how long; at least 1.
            options: as for `start`; `strict` changes nothing.
            stop_event: ends the recording early when set.

        Raises:
            CaptureError: a capture is running already, the framework's profiler does not start or stop, or the program
                stopped the recording.
        """
        if duration_ms < 1:
            raise CaptureError(
                f"a capture of {duration_ms} ms records nothing", code="duration", hint="ask for 1 or more"
            )
        end_request = stop_event or threading.Event()
        capture = self.start_capture(lambda: None, replace(ProfilerOptions.from_any(options), strict=True), end_request)
        assert capture is not None, "strict raises otherwise"
        self._await_end(capture, end_request, duration_ms / 1000)
        try:
            with report.NeverRaise(f"stopping the {capture.name} profiler", strict=True):
                return _read_into_memory(capture.collect(capture.take(save=True)))
        finally:
            try:
                capture.forget()
            finally:
                self._end_export(capture)
        raise AssertionError("the wall raises")

    # -- what the rest of this package calls -------------------------------------------------------------------------

    def start_capture(
        self,
        open_target: OpenTarget,
        options: object,
        end_request: threading.Event | None = None,
        yields: bool = False,
    ) -> Capture | None:
        """Starts a capture; None if that failed.

        Args:
            open_target: makes the place for its files.
            options: as for `start`.
            end_request: of a capture that is taken in memory: set to ask its taker to end it.
            yields: any other capture may end and discard this one.
        """
        chosen = ProfilerOptions.from_any(options)
        capture: Capture | None = None
        try:
            # Frameworks' own code swallows what a timer of the program raises in it.
            with self.program_end.delay_signals(), report.NeverRaise("starting the capture", chosen.strict), self.lock:
                self._make_room()
                report.forget()
                capture = _start_capture(open_target, chosen.clamp(), end_request, self._end_at_limit, yields)
                self.recording, self._ended_early, self._failure = capture, None, None
                self.program_end.watch()
        finally:
            if capture is None and self.recording is None:
                self._ended_early, self._failure = None, report.last_error()
        return capture

    def end_capture(
        self, capture: Capture, *, save: bool = True, wait: bool = True, strict: bool = False
    ) -> Path | None:
        """Ends a capture and writes it; does nothing if it has ended already.  Arguments and result as of `stop`.

        Raises:
            CaptureError: only with `strict`: it could not be stopped, or not be written.
        """
        if capture.request_end():
            return None
        mine, failure = False, None
        with self.program_end.delay_signals(), switching_quickly():  # the program's threads go on meanwhile
            with report.NeverRaise(f"stopping the {capture.name} profiler", strict):
                mine = self._end_recording(capture)
            if mine:
                failure = self._finish(capture, save) if wait or not save else self._finish_in_background(capture)
        if strict and failure is not None:
            raise failure
        return capture.path if mine else None

    def can_end_at_once(self) -> bool:
        """True unless a framework's profiler runs: stopping that may wait for a device."""
        return self.recording is None or not self.recording.needs_framework

    def keep_full_memory(self) -> str | None:
        """The program ends: if it dies because memory is used up, adds what fills it to the last profile.

        Returns:
            The sentence that says it; None if memory was not the reason, or if a capture holds it already.
        """
        full = find_full_memory()
        if full is not None and self._last_profile is not None:
            with report.NeverRaise("adding what fills the memory", strict=False):
                add_to_profile(self._last_profile, full)
        return None if full is None else full.sentence

    def forget_parent(self) -> None:
        """After a fork: the captures belong to the parent, which will write them."""
        parents = self.recording
        self._reset()
        with suppress(Exception):
            if parents is not None:
                parents.abandon()
        self.program_end.forget_parent()
        ranges.forget_parent()

    # -- start -------------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Ends a capture that yields to any other one; raises CaptureError if another one is in the way."""
        running = self.recording
        if running is not None and running.yields:
            running.gave_way = True
            self.end_capture(running, save=False)
        elif running is not None:
            raise CaptureError(
                "a capture is already running",
                code=ALREADY_RUNNING,
                path=running.target and running.target.folder,
                kept="the running capture",
                hint="call stop() before the next start()",
            )
        if not all(capture.released.wait(_PATIENCE_S) for capture in list(self.exporting)):
            raise CaptureError(
                "the capture before this one is still being stopped",
                code="still-stopping",
                kept="the capture before",
                hint="leave more steps between two captures, or stop with wait=True",
            )

    # -- end ---------------------------------------------------------------------------------------------------------

    def _nothing_to_stop(self) -> CaptureError:
        """Why nothing runs.  If the start failed, its error is more useful than the fact that nothing runs."""
        if self._failure is None:
            return CaptureError("no capture is running", code="not-running", hint="call start(logdir) first")
        problem = self._failure.problem
        reason = f"no capture is running, because it did not start: {problem.reason}"
        return CaptureError(reason, code="not-running", path=problem.path, hint=problem.hint)

    def _await_end(self, capture: Capture, end_request: threading.Event, seconds: float) -> None:
        """Waits until a recording in memory is to end, and ends it."""
        try:
            end_request.wait(min(seconds, threading.TIMEOUT_MAX))
        except BaseException:  # such as Ctrl-C: nobody takes the result, and nothing may be left running
            if self._end_recording(capture):
                self._finish(capture, save=False)
            raise
        if not self._end_recording(capture):
            raise CaptureError("the program has stopped the recording", code="not-running")

    def _end_recording(self, capture: Capture, early: bool = False) -> bool:
        """Ends the recording, but not yet the framework's profiler; False if it had ended already.

        Raises:
            CaptureError: the framework's profiler has to be stopped on another thread.
        """
        with self.lock:
            if capture is not self.recording:
                return False
            capture.refuse_other_thread()
            self.recording, self._ended_early, self._failure = None, capture if early else None, None
            capture.end()
            self.exporting.add(capture)
            return True

    def _end_export(self, capture: Capture) -> None:
        """The capture's files are written, or are known not to be."""
        self.exporting.discard(capture)
        capture.finished.set()

    def _end_at_limit(self, capture: Capture) -> None:
        """Ends a capture that has reached a limit, on one of its own threads."""
        if not capture.request_end() and self._end_recording(capture, early=True):
            self._finish(capture, save=True)

    def _finish_in_background(self, capture: Capture) -> StepscopeError | None:
        taken = _take(capture, save=True) if capture.stops_where_asked else None
        try:
            OwnThread(self._finish, (capture, True, taken), "stepscope-export", writes=True).start()
        except RuntimeError:  # no thread can be had: at the program's end, or at the system's limit
            return self._finish(capture, True, taken)
        return None

    def _finish(self, capture: Capture, save: bool, taken: _Taken | None = None) -> StepscopeError | None:
        """Stops the framework's profiler and writes the files, on any thread; returns what went wrong.

        What Stepscope recorded itself is written even if the framework's profiler fails.  If nothing can be written,
        what was flushed stays as it is.

        Args:
            capture: one whose recording has ended.
            save: False removes what was recorded.
            taken: what the framework's profiler recorded, if it has been stopped already.
        """
        failure: StepscopeError | None = None
        try:
            recording, failure = taken or _take(capture, save)
            if save:
                failure = _write(capture, recording) or failure
                self._last_profile = capture.path or self._last_profile
        finally:
            try:
                # The program may have closed our files.
                with report.NeverRaise("freeing what was recorded", strict=False):
                    capture.forget() if not save or capture.is_written else capture.leave_partial()
            finally:
                self._end_export(capture)
        return failure


def _start_capture(
    open_target: OpenTarget,
    options: ProfilerOptions,
    end_request: threading.Event | None,
    end_early: Callable[[Capture], None],
    yields: bool,
) -> Capture:
    entry = tracers.choose(options)
    target = open_target()
    try:
        capture = Capture(entry, target, options, end_request, yields)
        capture.notes.extend(_warn_of_place())
        capture.start(end_early)
    except BaseException:
        if target is not None:
            target.release()
        raise
    return capture


def _warn_of_place() -> Iterator[str]:
    """What is wrong with the place in the program where a capture starts, logged and for the profile's reader."""
    if builds_tensorflow_graph():
        said = (
            "start() was called while TensorFlow traced a tf.function: the capture holds the tracing, which happens"
            " once, and no training; call start() and stop() outside of the tf.function"
        )
        report.warn(said)
        yield said


def _take(capture: Capture, save: bool) -> _Taken:
    """Stops the framework's profiler."""
    try:
        return capture.take(save), None
    except Exception as error:
        failure = report.report(error, f"stopping the {capture.name} profiler")
        failure.__cause__ = None if failure is error else error
        return None, failure


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


def _read_into_memory(collected: Collected) -> Collected:
    """The same with every file's content as bytes."""
    if collected.error is not None:
        report.report(collected.error, "collecting")

    def read(content: bytes | Path) -> bytes:
        return content if isinstance(content, bytes) else content.read_bytes()

    return replace(collected, artifacts=tuple(Artifact(a.suffix, read(a.content)) for a in collected.artifacts))


RECORDER = Recorder()
start, stop = RECORDER.start, RECORDER.stop


def _begin_child() -> None:
    try:
        RECORDER.forget_parent()
    finally:
        release_taken_signals()


register_at_fork(hold_taken_signals, release_taken_signals, _begin_child)
