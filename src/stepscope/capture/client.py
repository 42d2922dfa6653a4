"""Captures from programs that run a profiler server: Stepscope's, TensorFlow's or JAX's.

    stepscope.client.trace("localhost:6009", "logs", 2000)

The profiles come over the network and are written here, so the workers need not see `logdir`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stepscope.capture import report
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.remote import addresses
from stepscope.capture.remote.outcome import (
    Cancel,
    CaptureOutcome,
    CaptureRequest,
    Failure,
    LogDir,
    OnProgress,
    Phase,
    WorkerStatus,
    check_duration,
)
from stepscope.capture.remote.outcome import Reason as Cause
from stepscope.capture.remote.snapshots import ContinuousProfiling
from stepscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from stepscope.capture.remote.addresses import Address

__all__ = [
    "CaptureOutcome",
    "CaptureRequest",
    "Cause",
    "ContinuousProfiling",
    "Failure",
    "OnProgress",
    "Phase",
    "WorkerStatus",
    "capture_workers",
    "check",
    "monitor",
    "trace",
]

_ANSWER_SECONDS = 10.0  # for the answer to a monitor call, besides the window itself


def trace(
    service_addr: str,
    logdir: LogDir,
    duration_ms: int,
    worker_list: str = "",
    num_tracing_attempts: int = 3,
    options: object = None,
    token: str | None = None,
) -> CaptureOutcome:
    """Captures from one or more workers at the same time, as `tf.profiler.experimental.client.trace` does.

    Each profile is written to LOGDIR/plugins/profile/RUN/HOST_PORT.xplane.pb.  If only some workers give a profile,
    these are kept; the others are logged as a warning and listed in the result.

    Args:
        service_addr: the workers, as `host:port`, with or without `grpc://`, several with commas between.
        logdir: a folder.  If it is on another machine (`gs://...`), each profile is moved there when it arrives.
        duration_ms: how long to record.
        worker_list: the workers to capture instead of `service_addr`; one without a port uses the port of that.
        num_tracing_attempts: how often to ask a worker that was busy, refused the connection, lost it, or had no
            events.
        options: as for `stepscope.start`; `delay_ms` is the time until all workers start together.
        token: what the jobs' servers ask for; without one, that of the variable STEPSCOPE_CAPTURE_TOKEN.

    Raises:
        UsageError: an address, the duration or the number of attempts is invalid.
        CaptureError: no worker sent a profile, or nothing can be written to `logdir`.
    """
    workers = _worker_list(service_addr, worker_list)
    chosen = ProfilerOptions.from_any(options).clamp()
    outcome = capture_workers(CaptureRequest(workers, logdir, duration_ms, num_tracing_attempts, chosen, token))
    if not outcome.saved:
        raise CaptureError(f"no worker sent a profile: {outcome.reasons()}", code="no-profile", lost="the capture")
    if outcome.failed:
        report.warn(f"{len(outcome.saved)} of {len(outcome.workers)} workers sent a profile: {outcome.reasons()}")
    return outcome


def capture_workers(
    request: CaptureRequest, on_progress: OnProgress | None = None, cancel: Cancel | None = None
) -> CaptureOutcome:
    """Captures from many workers at once, and reports the progress of each.

    Args:
        request: what to capture, and where to.
        on_progress: called with every change of a worker's status, on the calling thread.
        cancel: a `threading.Event`; once set, all recordings end early, and what they have recorded is saved.

    Returns:
        The result of each worker.  A worker that fails does not affect the others.

    Raises:
        CaptureError: nothing can be written to the logdir.
    """
    from stepscope.capture.remote.fan_out import FanOut

    return FanOut(request, on_progress, cancel or threading.Event()).run()


def monitor(service_addr: str, duration_ms: int, level: int = 1, token: str | None = None) -> str:
    """Watches one worker without a profiler: how busy it is and, at level 2, how long its steps take.

    Stepscope's server and Cloud TPU workers support this; TensorFlow's and JAX's servers do not.

    Args:
        service_addr: the worker.
        duration_ms: how long to watch.
        level: 1 or 2.
        token: as for `trace`.

    Returns:
        The server's text, as it is meant for people.

    Raises:
        UsageError: an argument is invalid.
        CaptureError: the worker cannot be reached or does not answer.
    """
    address = addresses.parse_one(service_addr)
    check_duration(duration_ms)
    if level not in (1, 2):
        raise UsageError(f"level={level} is not a monitoring level", hint="use 1, or 2 to include step times")
    with _channel(address, token) as channel:
        _raise_if(address, _check(address, channel))
        return _ask_monitor(address, channel, duration_ms, level)


def check(service_addr: str, token: str | None = None) -> dict[str, Failure | None]:
    """Checks whether a profiler server answers at each address, without recording: None if it does, else the failure.

    Raises:
        UsageError: an address is invalid.
    """
    found: dict[str, Failure | None] = {}
    for address in addresses.parse(service_addr):
        with _channel(address, token) as channel:
            found[str(address)] = _check(address, channel)
    return found


def _worker_list(service_addr: str, worker_list: str) -> Sequence[str]:
    services = addresses.parse(service_addr)
    if not worker_list:
        return [str(address) for address in services]
    workers = (worker.strip() for worker in worker_list.split(","))
    return [worker if ":" in worker else f"{worker}:{services[0].port}" for worker in workers]


def _channel(address: Address, token: str | None) -> Any:
    from stepscope.capture.remote.access import choose_token
    from stepscope.capture.remote.service import open_channel

    return open_channel(str(address), choose_token(token))


def _check(address: Address, channel: Any) -> Failure | None:
    from stepscope.capture.remote import reach

    return reach.check(address, channel)


def _ask_monitor(address: Address, channel: Any, duration_ms: int, level: int) -> str:
    from stepscope.capture.remote import messages, reach, service

    request = messages.new("MonitorRequest", duration_ms=duration_ms, monitoring_level=level, timestamp=True)
    unsupported = "this server does not support monitoring, nor do TensorFlow's and JAX's; capture a profile instead"
    deadline = duration_ms / 1e3 + _ANSWER_SECONDS
    return str(reach.call(address, channel, service.MONITOR, request, deadline, unsupported).data)


def _raise_if(address: Address, failure: Failure | None) -> None:
    if failure is not None:
        raise failure.to_error(address)
