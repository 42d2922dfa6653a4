"""Answers the requests of clients.  As in TensorFlow's and JAX's servers, a second capture at the same time is
refused."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

import grpc

from stepscope.capture import files, recorder, report
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.remote import messages, service
from stepscope.capture.remote.access import Access
from stepscope.capture.remote.continuous import Continuous
from stepscope.capture.remote.monitor import measure_load
from stepscope.capture.remote.outcome import LONGEST_MS
from stepscope.capture.remote.xspace import has_events
from stepscope.capture.tracers.base import Collected
from stepscope.errors import CaptureError
from stepscope.records import dataclass

MAX_MESSAGE_BYTES = 2**31 - 2**16
"""protobuf writes no message of 2 GiB or more; the rest is for the other fields of the message."""

_REMEMBERED = 100  # session ids that were ended before they started
_CODES = {
    "already-running": grpc.StatusCode.ALREADY_EXISTS,
    "busy": grpc.StatusCode.ALREADY_EXISTS,
    "request": grpc.StatusCode.INVALID_ARGUMENT,
    "logdir": grpc.StatusCode.PERMISSION_DENIED,
    "token": grpc.StatusCode.UNAUTHENTICATED,
    "no-continuous": grpc.StatusCode.NOT_FOUND,
    "too-large": grpc.StatusCode.RESOURCE_EXHAUSTED,
}


@dataclass(frozen=True)
class Wanted:
    """The content of a request.

    Attributes:
        options: what to record.
        duration_ms: how long to record.
        start_unix_ns: when to start; a time in the past means at once.
        folder: where the file goes; None if the client wants to receive the profile.
        host: the file's name without its suffix.
    """

    options: ProfilerOptions
    duration_ms: int
    start_unix_ns: int
    folder: Path | None
    host: str


@dataclass(eq=False)
class Running:
    """A capture for a client: its session id, and the event that ends it."""

    session_id: str
    ended: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False  # the client does not wait for the result any more


class Service:
    """The profiler service of this process."""

    def __init__(self, access: Access | None = None) -> None:
        self._access = access or Access()
        self._lock = threading.Lock()
        self._running: Running | None = None
        self._continuous: Continuous | None = None
        self._ended_early: deque[str] = deque(maxlen=_REMEMBERED)
        self._watched: set[threading.Event] = set()  # monitor calls, by what ends them

    def handlers(self) -> Any:
        """The service for a gRPC server."""
        behaviours = {
            service.PROFILE: self.profile,
            service.TERMINATE: self.terminate,
            service.MONITOR: self.monitor,
            service.START_CONTINUOUS: self.start_continuous,
            service.STOP_CONTINUOUS: self.stop_continuous,
            service.GET_SNAPSHOT: self.get_snapshot,
        }
        return service.handlers(
            {method: _guard(method.name, answer, self._access) for method, answer in behaviours.items()}
        )

    def end(self) -> None:
        """Ends every call; each client still gets what was recorded."""
        with self._lock:
            for ended in self._watched:
                ended.set()
            if self._running is not None:
                self._running.ended.set()
            continuous, self._continuous = self._continuous, None
        if continuous is not None:
            continuous.stop()

    def profile(self, request: Any, context: Any) -> Any:
        """Records for the requested time, and answers with the profile, or writes a file to the client's folder."""
        wanted = parse_request(request)
        if wanted.folder is not None:
            self._access.check_folder(wanted.folder)
        with self._claim(request.session_id) as running:
            if not context.add_callback(lambda: _give_up(running)):
                _give_up(running)  # the call was over before, and then gRPC does not call back
            running.ended.wait(max(0.0, wanted.start_unix_ns / 1e9 - time.time()))
            recorded = recorder.RECORDER.record(wanted.duration_ms, wanted.options, running.ended)
            if running.given_up:
                raise _make_gave_up_error()
            return _answer(wanted, recorded)

    def terminate(self, request: Any, context: Any) -> Any:
        """Ends the capture with this session id, or one that will come with it."""
        with self._lock:
            if self._running is not None and self._running.session_id == request.session_id:
                self._running.ended.set()
            else:
                self._ended_early.append(request.session_id)
        return messages.new("TerminateResponse")

    def monitor(self, request: Any, context: Any) -> Any:
        """Watches the program for the requested time, without a profiler."""
        _refuse_duration(request.duration_ms)
        ended = threading.Event()
        if not context.add_callback(ended.set):
            ended.set()
        with self._lock:
            self._watched.add(ended)
        try:
            load = measure_load(request.duration_ms / 1e3, ended)
        finally:
            with self._lock:
                self._watched.discard(ended)
        text = load.text(verbose=request.monitoring_level >= 2, timestamp=request.timestamp)
        return messages.new(
            "MonitorResponse", data=text, monitor_result=messages.new("ProfilerServiceMonitorResult", **load.result())
        )

    def start_continuous(self, request: Any, context: Any) -> Any:
        """Starts a recording without an end."""
        _refuse_if_over(context)
        with self._lock:
            self._refuse_second()
            continuous = Continuous(_options(request.opts))
            continuous.start()
            if not context.is_active():  # the client does not know that it records, and would never end it
                continuous.stop()
            _refuse_if_over(context)
            self._continuous = continuous
        return messages.new("ContinuousProfilingResponse")

    def get_snapshot(self, request: Any, context: Any) -> Any:
        """Returns what was recorded since the start or the last snapshot, and goes on recording."""
        _refuse_if_over(context)  # the record is kept for the next request
        return _response(self._continuous_or_refuse().snapshot())

    def stop_continuous(self, request: Any, context: Any) -> Any:
        """Ends the recording without an end."""
        continuous = self._continuous_or_refuse()
        with self._lock:
            self._continuous = None
        continuous.stop()
        return messages.new("StopContinuousProfilingResponse")

    def _continuous_or_refuse(self) -> Continuous:
        continuous = self._continuous
        if continuous is None:
            raise CaptureError(
                "no continuous profiling session is active",
                code="no-continuous",
                hint="call StartContinuousProfiling first",
            )
        return continuous

    @contextmanager
    def _claim(self, session_id: str) -> Iterator[Running]:
        with self._lock:
            self._refuse_second()
            running = self._running = Running(session_id)
            if session_id in self._ended_early:
                running.ended.set()
        try:
            yield running
        finally:
            self._running = None

    def _refuse_second(self) -> None:
        if self._running is not None or (self._continuous is not None and self._continuous.is_alive()):
            raise CaptureError(
                "another profiling session is active in this process",
                code="busy",
                hint="wait for its end, or end it with Terminate",
            )


def parse_request(request: Any) -> Wanted:
    """The content of a ProfileRequest.  Raises CaptureError if it is invalid."""
    duration_ms = request.opts.duration_ms or request.duration_ms
    _refuse_duration(duration_ms)
    latest_ns = time.time_ns() + LONGEST_MS * 10**6
    _refuse_if(request.opts.start_timestamp_ns > latest_ns, "start_timestamp_ns is more than an hour from now")
    advanced = request.opts.advanced_configuration
    overridden = advanced["override_hostname"].string_value if "override_hostname" in advanced else ""
    host = request.opts.override_hostname or overridden or request.host_name or files.host_name()
    return Wanted(
        options=_options(request.opts),
        duration_ms=duration_ms,
        start_unix_ns=request.opts.start_timestamp_ns,
        folder=None if request.emit_xspace else _folder(request),
        host=files.safe_name(host),
    )


def _options(opts: Any) -> ProfilerOptions:
    """The levels of a request; the defaults if it has no version, since then they were never set."""
    if opts.version == 0:
        return ProfilerOptions()
    return ProfilerOptions(**{level: getattr(opts, level) for level in messages.LEVELS})


def _folder(request: Any) -> Path:
    root, session = request.repository_root, request.session_id
    _refuse_if(not root, "repository_root is empty and emit_xspace is off, so there is no place for the profile")
    _refuse_if("://" in root, f"{root} is not a local folder; ask with emit_xspace for the profile itself")
    _refuse_if("\0" in root + session, "a name has a NUL character")
    # A session is one folder below the root that the client chose, and no way out of it.
    _refuse_if(session in ("", ".", "..") or Path(session).name != session, f"session_id {session!r} is not a name")
    return Path(root, session)


def _refuse_duration(duration_ms: int) -> None:
    _refuse_if(duration_ms == 0, "duration_ms is 0")
    _refuse_if(duration_ms > LONGEST_MS, f"duration_ms is {duration_ms:,}; the longest is {LONGEST_MS:,}, an hour")


def _refuse_if(wrong: bool, reason: str) -> None:
    if wrong:
        raise CaptureError(reason, code="request")


def _give_up(running: Running) -> None:
    """The call is over: it was answered, or the client cancelled it or went away."""
    running.given_up = True
    running.ended.set()


def _refuse_if_over(context: Any) -> None:
    if not context.is_active():
        raise _make_gave_up_error()


def _make_gave_up_error() -> CaptureError:
    return CaptureError("the client gave up", code="given-up", lost="the capture")


def _answer(wanted: Wanted, recorded: Collected) -> Any:
    if wanted.folder is None:
        return _response(recorded)
    try:
        wanted.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaptureError(
            f"the folder cannot be made: {error.strerror}",
            code="logdir",
            path=wanted.folder,
            hint="the server writes the file itself, so the client's logdir must exist on its machine too",
        ) from error
    files.store(recorded.artifacts, wanted.folder, wanted.host)
    return messages.new("ProfileResponse", empty_trace=not has_events(_find_space(recorded)))


def _response(recorded: Collected) -> Any:
    space = _find_space(recorded)
    if len(space) > MAX_MESSAGE_BYTES:
        raise CaptureError(
            f"the profile has {len(space):,} bytes, and a message must be smaller than 2 GiB",
            code="too-large",
            lost="the capture",
            hint="capture for a shorter time, or with a lower host_tracer_level",
        )
    return messages.new("ProfileResponse", xspace=space, empty_trace=not has_events(space))


def _find_space(recorded: Collected) -> bytes:
    for artifact in recorded.artifacts:
        if artifact.suffix == "xplane.pb" and isinstance(artifact.content, bytes):
            return artifact.content
    raise recorded.error or CaptureError("the profiler wrote no XSpace", code="nothing-recorded")


def _guard(name: str, answer: Callable[[Any, Any], Any], access: Access) -> Callable[[Any, Any], Any]:
    """Turns every error into an answer to the client, and logs it; none reaches the program."""

    def answer_safely(request: Any, context: Any) -> Any:
        try:
            access.check_token(context.invocation_metadata())
            return answer(request, context)
        except Exception as error:
            reported = report.report(error, f"{name} for a client")
        context.abort(_CODES.get(reported.problem.code, grpc.StatusCode.INTERNAL), str(reported))
        raise AssertionError("abort raises")

    return answer_safely
