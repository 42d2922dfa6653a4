"""What a capture of several workers is asked, tells while it runs, and comes to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from stepscope.capture.options import RANGES, ProfilerOptions
from stepscope.capture.remote import addresses
from stepscope.errors import UsageError
from stepscope.records import dataclass

LONGEST_MS = 3_600_000
"""The longest capture that may be asked for, an hour: a slip of the keyboard must not fill a worker's memory."""

OPEN_ENDED_MS = 300_000
"""When a capture without a duration ends by itself."""


class Phase(StrEnum):
    """How far a worker is."""

    CONNECTING = "connecting"
    RECORDING = "recording"
    RECEIVING = "receiving"  # its time is over; the worker collects and sends the profile
    SAVED = "saved"
    FAILED = "failed"


class Cause(StrEnum):
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


RETRIED = frozenset({Cause.REFUSED, Cause.BUSY, Cause.DISCONNECTED, Cause.EMPTY})
"""What may be better a moment later."""


@dataclass(frozen=True)
class Failure:
    """Why a worker gave no profile, in a word to decide on and in plain words."""

    cause: Cause
    detail: str


@dataclass(frozen=True)
class WorkerStatus:
    """Where one worker stands.

    Attributes:
        address: the worker, as host:port.
        phase: how far it is.
        attempt: which attempt this is, from 1.
        detail: what there is to say in plain words; for a failed worker why, and what to do.
        cause: why it failed; None otherwise.
        path: the file of a saved profile, or its address on another machine.
        size_bytes: its size.
        ended_early: the recording was ended before its time, by the user.
    """

    address: str
    phase: Phase
    attempt: int = 1
    detail: str = ""
    cause: Cause | None = None
    path: str | None = None
    size_bytes: int | None = None
    ended_early: bool = False


class Cancel(Protocol):
    """What ends a capture early; a `threading.Event` will do."""

    def is_set(self) -> bool:
        """True once the capture is to end."""


LogDir = str | os.PathLike[str]
OnProgress = Callable[[WorkerStatus], object]


@dataclass(frozen=True)
class CaptureRequest:
    """A capture of several workers at once.

    Attributes:
        workers: where they listen, each as host:port, with or without `grpc://`.
        logdir: a folder; on another machine (`gs://...`), the profiles are moved there as they come.
        duration_ms: how long to record; None until it is cancelled, five minutes at most.
        attempts: how often to ask a worker that was refused, busy, cut off or without events.
        options: what to record.  `delay_ms` is the time from the request to the begin of the recording, which lets all
            workers begin together; None is no delay for one worker and 200 ms for several.

    Raises:
        UsageError: a value makes no sense.
    """

    workers: Sequence[str]
    logdir: LogDir
    duration_ms: int | None = 1000
    attempts: int = 3
    options: ProfilerOptions = field(default_factory=ProfilerOptions)

    def __post_init__(self) -> None:
        if not self.workers or isinstance(self.workers, str):
            raise UsageError("a capture needs a list of workers", hint="give at least one host:port")
        addresses.parse(",".join(self.workers))
        check_duration(self.duration_ms)
        if self.attempts < 1:
            raise UsageError(f"{self.attempts} attempts are none", hint="1 or more")
        _check_options(self.options)


@dataclass(frozen=True)
class CaptureOutcome:
    """What a capture of several workers came to.

    Attributes:
        workers: the last status of each, in the order of the request.
        run: the folder with the profiles, or its address on another machine; None if there are none.
        cancelled: the capture was ended early.
    """

    workers: tuple[WorkerStatus, ...]
    run: str | None
    cancelled: bool

    @property
    def saved(self) -> tuple[WorkerStatus, ...]:
        """The workers whose profile is there."""
        return tuple(worker for worker in self.workers if worker.phase == Phase.SAVED)

    @property
    def failed(self) -> tuple[WorkerStatus, ...]:
        """The workers whose profile is not."""
        return tuple(worker for worker in self.workers if worker.phase != Phase.SAVED)

    def reasons(self) -> str:
        """Each failed worker with its cause, in one line."""
        return "; ".join(f"{worker.address}: {worker.detail}" for worker in self.failed)


def check_duration(duration_ms: int | None) -> None:
    """Raises UsageError for a duration that cannot be."""
    if duration_ms is not None and not 0 < duration_ms <= LONGEST_MS:
        raise UsageError(
            f"duration_ms={duration_ms} cannot be captured",
            hint=f"1 to {LONGEST_MS:,} ms; 1000 to 5000 shows most problems",
        )


def _check_options(options: ProfilerOptions) -> None:
    for name, (lowest, highest) in RANGES.items():
        value = getattr(options, name)
        if not lowest <= value <= highest:
            raise UsageError(f"{name}={value} is out of range", hint=f"{lowest:g} to {highest:g}")
    if options.delay_ms is not None and options.delay_ms < 0:
        raise UsageError(f"delay_ms={options.delay_ms} lies in the past", hint="0 or more")
