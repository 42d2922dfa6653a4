"""The request, the progress and the result of a capture of several workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from stepscope.capture.options import RANGES, ProfilerOptions
from stepscope.capture.remote import addresses
from stepscope.errors import CaptureError, UsageError
from stepscope.records import dataclass

LONGEST_MS = 3_600_000
"""The longest capture that may be requested, an hour: a typing error must not fill a worker's memory."""

MOST_ATTEMPTS = 100

OPEN_ENDED_MS = 300_000
"""After this time, a capture without a duration ends by itself."""


class Phase(StrEnum):
    """The progress of a worker."""

    CONNECTING = "connecting"
    RECORDING = "recording"
    RECEIVING = "receiving"  # recording is over; the worker collects and sends the profile
    SAVED = "saved"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a worker gave no profile."""

    NAME_NOT_FOUND = "name not found"
    REFUSED = "connection refused"
    NO_ANSWER = "no answer"
    NOT_GRPC = "not a gRPC server"
    NO_PROFILER = "no profiler service"
    DISABLED = "profiling disabled"
    BUSY = "busy"
    DEADLINE = "deadline"
    DISCONNECTED = "disconnected"
    EMPTY = "no events"
    CANCELLED = "cancelled"
    SERVER_ERROR = "server error"
    NOT_SAVED = "not saved"
    NOT_ALLOWED = "not allowed"


RETRIED = frozenset({Reason.REFUSED, Reason.BUSY, Reason.DISCONNECTED, Reason.EMPTY})
"""Failures that may be gone a moment later."""


@dataclass(frozen=True)
class Failure:
    """Why a worker gave no profile: as a constant for decisions, and in plain words."""

    cause: Reason
    detail: str

    def to_error(self, address: addresses.Address) -> CaptureError:
        """The failure of a worker as an exception."""
        return CaptureError(f"{address}: {self.detail}", code=self.cause.value.replace(" ", "-"))


@dataclass(frozen=True)
class WorkerStatus:
    """The status of one worker.

    Attributes:
        address: the worker, as host:port.
        phase: its progress.
        attempt: the number of this attempt, from 1.
        detail: more in plain words; for a failed worker the reason, and what to do.
        cause: why it failed; None if it did not.
        path: the file of a saved profile, or its address on another machine.
        size_bytes: the size of the profile.
        ended_early: True if the user ended the recording early.
    """

    address: str
    phase: Phase
    attempt: int = 1
    detail: str = ""
    cause: Reason | None = None
    path: str | None = None
    size_bytes: int | None = None
    ended_early: bool = False


class Cancel(Protocol):
    """Ends a capture early, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """True once the capture is to end."""


LogDir = str | os.PathLike[str]
OnProgress = Callable[[WorkerStatus], object]


@dataclass(frozen=True)
class CaptureRequest:
    """A capture of several workers at once.

    Attributes:
        workers: where they listen, each as host:port, with or without `grpc://`.
        logdir: a folder.  If it is on another machine (`gs://...`), each profile is moved there when it arrives.
        duration_ms: how long to record; None records until it is cancelled, five minutes at most.
        attempts: how often to ask a worker that was busy, refused the connection, lost it, or had no events.
        options: what to record.  `delay_ms` is the time from the request to the start of the recording, so that all
            workers start together; None is no delay for one worker and 200 ms for several.
        token: what the jobs' servers ask for; without one, that of the variable STEPSCOPE_CAPTURE_TOKEN.

    Raises:
        UsageError: a value is invalid.
    """

    workers: Sequence[str]
    logdir: LogDir
    duration_ms: int | None = 1000
    attempts: int = 3
    options: ProfilerOptions = field(default_factory=ProfilerOptions)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.workers or isinstance(self.workers, str):
            raise UsageError("a capture needs a list of workers", hint="give at least one host:port")
        addresses.parse(",".join(self.workers))
        check_duration(self.duration_ms)
        if not 1 <= self.attempts <= MOST_ATTEMPTS:
            hint = f"use 1 to {MOST_ATTEMPTS}"
            raise UsageError(f"attempts={self.attempts} is too {'few' if self.attempts < 1 else 'many'}", hint=hint)
        _check_options(self.options)


@dataclass(frozen=True)
class CaptureOutcome:
    """The result of a capture of several workers.

    Attributes:
        workers: the last status of each, in the order of the request.
        run: the folder with the profiles, or its address on another machine; None without profiles.
        cancelled: True if the capture was ended early.
    """

    workers: tuple[WorkerStatus, ...]
    run: str | None
    cancelled: bool

    @property
    def saved(self) -> tuple[WorkerStatus, ...]:
        """The workers whose profile was saved."""
        return tuple(worker for worker in self.workers if worker.phase == Phase.SAVED)

    @property
    def failed(self) -> tuple[WorkerStatus, ...]:
        """The workers whose profile was not saved."""
        return tuple(worker for worker in self.workers if worker.phase != Phase.SAVED)

    def reasons(self) -> str:
        """Each failed worker with its cause, in one line."""
        return "; ".join(f"{worker.address}: {worker.detail}" for worker in self.failed)


def check_duration(duration_ms: int | None) -> None:
    """Raises UsageError for an invalid duration."""
    if duration_ms is not None and not 0 < duration_ms <= LONGEST_MS:
        raise UsageError(
            f"duration_ms={duration_ms} cannot be captured",
            hint=f"use 1 to {LONGEST_MS:,} ms; 1000 to 5000 ms show most problems",
        )


def _check_options(options: ProfilerOptions) -> None:
    for name, (lowest, highest) in RANGES.items():
        value = getattr(options, name)
        if not lowest <= value <= highest:
            raise UsageError(f"{name}={value} is out of range", hint=f"use {lowest:g} to {highest:g}")
    if options.delay_ms is not None and options.delay_ms < 0:
        raise UsageError(f"delay_ms={options.delay_ms} is negative", hint="use 0 or more")
