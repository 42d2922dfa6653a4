"""Captures started from the page: each in its own thread, by the client that `stepscope capture` uses.

The client is imported with the first capture, because it imports gRPC.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from stepscope.errors import StepscopeError
from stepscope.formats import store
from stepscope.records import dataclass
from stepscope.web.answers import Refused

if TYPE_CHECKING:
    from stepscope.capture.client import CaptureOutcome, CaptureRequest, WorkerStatus

_log = logging.getLogger(__name__)

_PREFIX = re.compile(r"^(grpc|http)://")  # pasted addresses may have one

_LOOK_SECONDS = 0.1

MOST_KEPT = 20
"""Captures that are kept after their end."""

State = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class Wish:
    """What the capture dialog asks for.

    Attributes:
        addresses: `host:port` of each worker.
        duration_ms: how long to record.
        delay_ms: when to start, so that all workers start together; None leaves it to the client.
        host_tracer_level, device_tracer_level, python_tracer_level: as in `stepscope.ProfilerOptions`.
        retries: how often to retry a worker that was busy or recorded no events.
        token: what the workers ask for; empty for that of the server's environment.
    """

    addresses: Sequence[str]
    duration_ms: int = 2000
    delay_ms: int | None = None
    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    retries: int = 2
    token: str = field(default="", repr=False)


@dataclass(frozen=True)
class WorkerProgress:
    """The progress of one worker, as the page shows it."""

    address: str
    state: str = "waiting"
    message: str = ""
    bytes: int | None = None


@dataclass
class PageCapture:
    """One capture.  Its thread writes, requests read; each attribute is replaced as a whole.

    Attributes:
        id: its id in addresses.
        wish: what was requested.
        workers: the latest status of each.
        folder: the folder of the profiles, once there are some.
        error: why it failed, or why workers are missing.
    """

    id: str
    wish: Wish
    state: State = "running"
    workers: dict[str, WorkerProgress] = field(default_factory=dict)
    folder: str | None = None
    error: str | None = None
    started: float = field(default_factory=time.monotonic)
    cancel: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the recording ends; None once it has ended or the capture was cancelled."""
        whole = (self.wish.duration_ms + (self.wish.delay_ms or 0)) / 1e3
        left = self.started + whole - time.monotonic()
        return round(left, 1) if self.state == "running" and left > 0 and not self.cancel.is_set() else None


class Captures:
    """The captures of a site, into one of its logdirs."""

    def __init__(self, logdir: str | None, is_shared: bool = False) -> None:
        self._logdir = logdir
        self._is_shared = is_shared
        self._captures: dict[str, PageCapture] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def is_available(self) -> bool:
        """Whether there is a folder for captures."""
        return self._logdir is not None

    def start(self, wish: Wish) -> PageCapture:
        """Starts a capture in the background.  Raises Refused (409), or UsageError for wrong values."""
        if self._logdir is None:
            raise Refused(409, "there is no local folder to write profiles to", "open a folder of this machine")
        request = _request(wish, self._logdir)
        capture = PageCapture(str(next(self._numbers)), wish)
        capture.workers = {address: WorkerProgress(address) for address in request.workers}
        with self._lock:
            self._captures[capture.id] = capture
            for ended in [one.id for one in self._captures.values() if one.state != "running"][:-MOST_KEPT]:
                del self._captures[ended]
        threading.Thread(
            target=_run, args=(capture, request, self._is_shared), name=f"capture {capture.id}", daemon=True
        ).start()
        return capture

    def find(self, capture: str) -> PageCapture:
        """A capture by its id.  Raises Refused (404)."""
        with self._lock:
            found = self._captures.get(capture)
            if found is None:
                raise Refused(404, f"there is no capture {capture!r}", "it may have ended long ago", self._captures)
            return found

    @property
    def is_running(self) -> bool:
        """Whether a capture is running."""
        with self._lock:
            return any(capture.state == "running" for capture in self._captures.values())

    def wait(self, seconds: float) -> None:
        """Waits at most `seconds` until no capture is running."""
        until = time.monotonic() + seconds
        while self.is_running and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """Ends all captures; what they have recorded is kept."""
        with self._lock:
            for capture in self._captures.values():
                capture.cancel.set()


def find_logdir(paths: Sequence[str]) -> str | None:
    """The first path that is a local folder or does not exist yet; None if there is none."""
    for path in map(store.plain, paths):
        if not store.is_remote(path) and store.kind(path) in ("folder", None):
            return path
    return None


# -- the client --------------------------------------------------------------------------------------------------------


def _request(wish: Wish, logdir: str) -> CaptureRequest:
    from stepscope.capture import ProfilerOptions
    from stepscope.capture.client import CaptureRequest

    options = ProfilerOptions(
        host_tracer_level=wish.host_tracer_level,
        device_tracer_level=wish.device_tracer_level,
        python_tracer_level=wish.python_tracer_level,
        delay_ms=wish.delay_ms,
    )
    from stepscope.capture.remote.addresses import workers_of

    workers = [worker for address in wish.addresses for worker in workers_of(_PREFIX.sub("", address.strip()))]
    return CaptureRequest(
        workers=workers, logdir=logdir, duration_ms=wish.duration_ms, attempts=wish.retries + 1, options=options,
        token=wish.token or None,
    )  # fmt: skip


def _run(capture: PageCapture, request: CaptureRequest, is_shared: bool) -> None:
    """Runs a capture and stores its outcome, whatever happens: the page polls until it sees the end."""
    from stepscope.capture import client

    def update(status: WorkerStatus) -> None:
        _update_worker(capture, _make_vague(status) if is_shared else status)

    try:
        outcome = client.capture_workers(request, update, capture.cancel)
        for status in outcome.workers:
            update(status)
        _store_outcome(capture, outcome)
    except StepscopeError as error:
        capture.error, capture.state = "the capture failed" if is_shared else str(error.problem), "failed"
    except Exception as error:
        _log.exception("capture %s failed", capture.id)
        capture.error, capture.state = f"{type(error).__name__}: {error}", "failed"


def _make_vague(status: WorkerStatus) -> WorkerStatus:
    """The status without the difference between an open and a closed port: a server that several people use must not
    explore its network for them."""
    from stepscope.capture.client import Cause

    absent = (Cause.NAME_NOT_FOUND, Cause.REFUSED, Cause.NO_ANSWER, Cause.NOT_GRPC, Cause.NO_PROFILER)
    is_again = status.detail.startswith("trying again")
    if status.cause in absent or is_again:
        return replace(status, detail="trying again" if is_again else "no profiler server answers at this address")
    return status


def _update_worker(capture: PageCapture, status: WorkerStatus) -> None:
    message = status.detail + (f" (attempt {status.attempt})" if status.attempt > 1 else "")
    worker = WorkerProgress(status.address, str(status.phase), message.strip(), status.size_bytes)
    capture.workers = {**capture.workers, status.address: worker}


def _store_outcome(capture: PageCapture, outcome: CaptureOutcome) -> None:
    if outcome.failed:
        failed = [capture.workers[status.address] for status in outcome.failed]
        capture.error = "; ".join(f"{worker.address}: {worker.message}" for worker in failed)
    if outcome.saved:
        capture.folder, capture.state = outcome.run, "done"
    else:
        capture.state = "cancelled" if outcome.cancelled else "failed"
