"""One worker of a capture, from its address to the file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import grpc

from stepscope.capture import files
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.remote import messages, reach, service
from stepscope.capture.remote.addresses import Address
from stepscope.capture.remote.outcome import RETRIED, Failure, OnProgress, Phase, Reason, WorkerStatus
from stepscope.capture.remote.reach import translate_rpc_error
from stepscope.capture.remote.xspace import has_events
from stepscope.capture.tracers.base import Artifact
from stepscope.errors import CaptureError
from stepscope.records import dataclass

_PATIENCE_SECONDS = 120.0  # at least, for collecting, converting and sending
_END_SECONDS = 5.0  # for a server to accept the request to end


@dataclass(frozen=True)
class CapturePlan:
    """The request to all workers of a capture.

    Attributes:
        folder: where the profiles go.
        url: where they are moved to, if the logdir is on another machine.
        session_id: identifies this capture for the servers.  It is unique, since a server that was asked to end a
            session ends every later one with that id at once.
        seconds: how long to record.
        options: what to record.
        attempts: how often to ask.
        token: what the servers ask for; None if nothing.
    """

    folder: Path
    url: str | None
    session_id: str
    seconds: float
    options: ProfilerOptions
    attempts: int
    token: str | None = field(default=None, repr=False)


class RemoteWorker:
    """A worker and its progress.  `connect` and `record` block, so each worker has a thread."""

    def __init__(self, address: Address, plan: CapturePlan, on_progress: OnProgress) -> None:
        self.status = WorkerStatus(str(address), Phase.CONNECTING)
        self._address = address
        self._plan = plan
        self._on_progress = on_progress
        self._channel: Any = None
        self._call: Any = None
        self._over = threading.Event()  # cancelled: the next result is the last

    def open(self) -> bool:
        """True while the worker may still give a profile."""
        return self.status.phase not in (Phase.SAVED, Phase.FAILED)

    def connect(self) -> bool:
        """Checks whether the server is there."""
        self._set(Phase.CONNECTING, detail=self.status.detail)
        self._channel = self._channel or service.open_channel(str(self._address), self._plan.token)
        failure = reach.check(self._address, self._channel)
        if failure is not None:
            self._fail(failure)
        return failure is None

    def record(self, start_unix_ns: int) -> None:
        """Captures, waits for the profile, and stores it."""
        deadline = self._deadline(start_unix_ns)
        self._call = service.caller(self._channel, service.PROFILE).future(self._request(start_unix_ns), deadline)
        self._set(Phase.RECORDING)
        if self._over.is_set():
            self._terminate()
        try:
            self._wait(start_unix_ns)
            response = self._call.result()
        except grpc.RpcError as error:
            self._fail(translate_rpc_error(error, deadline))
        except grpc.FutureCancelledError:
            self._fail(_CANCELLED)
        else:
            self._take(response)
        finally:
            self._call = None

    def end(self) -> None:
        """Ends the recording early; what was recorded is still received."""
        self._over.set()
        if self._call is not None:
            self._terminate()

    def give_up(self) -> None:
        """Ends the call; what was recorded is lost."""
        self._over.set()
        if self._call is not None:
            self._call.cancel()

    def fail_unfinished(self) -> None:
        """Marks a worker as failed that was cancelled between two attempts."""
        if self.open():
            self._fail(_CANCELLED)

    def close(self) -> None:
        """Closes the connection."""
        if self._channel is not None:
            self._channel.close()

    def _deadline(self, start_unix_ns: int) -> float:
        delay = max(0.0, start_unix_ns / 1e9 - time.time())
        return delay + self._plan.seconds + max(_PATIENCE_SECONDS, self._plan.seconds)

    def _request(self, start_unix_ns: int) -> Any:
        plan = self._plan
        duration_ms = round(plan.seconds * 1e3)
        options = messages.profile_options(
            plan.options, enable_hlo_proto=True, start_timestamp_ns=start_unix_ns, duration_ms=duration_ms
        )
        return messages.new(
            "ProfileRequest",
            opts=options,
            duration_ms=duration_ms,  # old servers read this one
            session_id=plan.session_id,
            host_name=str(self._address),
            emit_xspace=True,
            # A server that is too old for emit_xspace writes a file, which we can read if its disk is ours.
            repository_root=str(plan.folder.parent),
        )

    def _wait(self, start_unix_ns: int) -> None:
        done = threading.Event()
        self._call.add_done_callback(lambda _: done.set())
        recorded = start_unix_ns / 1e9 + self._plan.seconds - time.time()
        if not done.wait(max(0.0, recorded)) and not self._over.is_set():
            self._set(Phase.RECEIVING)

    def _terminate(self) -> None:
        request = messages.new("TerminateRequest", session_id=self._plan.session_id)
        ended = service.caller(self._channel, service.TERMINATE).future(request, _END_SECONDS)
        ended.add_done_callback(lambda _: None)  # a server that does not support it records to the end

    def _take(self, response: Any) -> None:
        content = _content(response) or self._find_server_file()
        if response.empty_trace or (isinstance(content, bytes) and not has_events(content)):
            self._fail(self._describe_empty())
        elif content is None:
            self._fail(
                Failure(Reason.NOT_SAVED, f"the server wrote the profile to its own disk, in {self._servers_folder()}")
            )
        else:
            self._store(content)

    def _store(self, content: bytes | Path) -> None:
        name, plan = files.safe_name(self.status.address), self._plan
        try:
            path = files.store((Artifact("xplane.pb", content),), plan.folder, name)
            size = path.stat().st_size
            place = str(path) if plan.url is None else files.upload([path], files.Target(plan.folder, name, plan.url))
        except CaptureError as error:
            self._fail(Failure(Reason.NOT_SAVED, str(error)))
            return
        if isinstance(content, Path):
            content.unlink(missing_ok=True)
        self._set(Phase.SAVED, path=place, size_bytes=size, ended_early=self._over.is_set())

    def _servers_folder(self) -> Path:
        return self._plan.folder.parent / self._plan.session_id

    def _find_server_file(self) -> Path | None:
        """The file of a server that writes one, if it is on our disk."""
        found = sorted(self._servers_folder().glob(f"{files.safe_name(self.status.address)}.xplane.pb"))
        return found[0] if found else None

    def _describe_empty(self) -> Failure:
        if self._over.is_set():
            return Failure(Reason.CANCELLED, "cancelled before it recorded anything")
        options, ms = self._plan.options, round(self._plan.seconds * 1e3)
        why = f"it recorded for {ms:,} ms without any event"
        if options.host_tracer_level == 0:
            return Failure(Reason.EMPTY, f"{why}; host_tracer_level is 0 and nothing ran on an accelerator: use 2")
        hint = "it may be waiting, compiling or ending; capture longer, or while it trains"
        return Failure(Reason.EMPTY, f"{why}; {hint}")

    def _fail(self, failure: Failure) -> None:
        again = self.status.attempt < self._plan.attempts and not self._over.is_set()
        if again and failure.cause in RETRIED:
            self.status = replace(self.status, attempt=self.status.attempt + 1)
            self._set(Phase.CONNECTING, detail=f"trying again after: {failure.detail}")
            return
        self._set(Phase.FAILED, detail=failure.detail, cause=failure.cause)

    def _set(self, phase: Phase, **facts: Any) -> None:
        self.status = WorkerStatus(self.status.address, phase, self.status.attempt, **facts)
        self._on_progress(self.status)


_CANCELLED = Failure(Reason.CANCELLED, "cancelled before it recorded anything")

Drive = Callable[[RemoteWorker], object]


def _content(response: Any) -> bytes | None:
    """The profile in an answer; old servers put files in it."""
    if response.xspace:
        return bytes(response.xspace)
    return next((bytes(item.data) for item in response.tool_data if item.name.endswith("xplane.pb")), None)
