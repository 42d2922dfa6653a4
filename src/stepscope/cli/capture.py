"""`stepscope capture`: profiles running jobs over the network."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stepscope.capture import ProfilerOptions
from stepscope.capture.client import CaptureOutcome, CaptureRequest, OnProgress, WorkerStatus, capture_workers
from stepscope.cli.levels import DeviceLevel, HostLevel, PythonLevel
from stepscope.cli.options import argument, option
from stepscope.cli.show import WIDE, file_size_text
from stepscope.errors import CaptureError, UsageError
from stepscope.report import Field, Role, Rows
from stepscope.report.sections import Row
from stepscope.report.styled import print_lines, screen_width
from stepscope.report.terminal import table_lines

if TYPE_CHECKING:
    from rich.table import Table

_REFRESHES = 4  # per second
_LOUD = {"saved": "green", "failed": "red"}


def capture(
    addresses: Annotated[str, argument(value="ADDR[,ADDR...]", help="host:port of each worker.")],
    logdir: Annotated[str, option("--logdir", help="The folder for the profiles; created if missing.")],
    duration_ms: Annotated[int, option("--duration-ms", help="How long to record, in ms.")] = 2000,
    seconds: Annotated[float | None, option("--seconds", least=0.001, help="The same in seconds.")] = None,
    open_ended: Annotated[bool, option("--open-ended", help="Record until Ctrl-C, at most 5 minutes.")] = False,
    delay_ms: Annotated[
        int | None, option("--delay-ms", help="Milliseconds to wait before all workers start together.")
    ] = None,
    retries: Annotated[
        int,
        option("--retries", least=0, most=99, help="How often to retry a worker that was busy or recorded nothing."),
    ] = 2,
    token_file: Annotated[
        Path | None,
        option("--token-file", value="FILE", help="A file with the jobs' token (default: $STEPSCOPE_CAPTURE_TOKEN)."),
    ] = None,
    host_tracer_level: HostLevel = ProfilerOptions.host_tracer_level,
    device_tracer_level: DeviceLevel = ProfilerOptions.device_tracer_level,
    python_tracer_level: PythonLevel = ProfilerOptions.python_tracer_level,
) -> None:
    """Captures running jobs over the network.

    Each job needs a profiler server: Stepscope's, TensorFlow's or JAX's.  All workers record at the same time.  Ctrl-C
    ends the recording early and saves what was recorded.  The exit status is 0 if every worker sent a profile, else 1;
    profiles that were received are kept.
    """
    request = CaptureRequest(
        workers=addresses.split(","),
        logdir=logdir,
        duration_ms=None if open_ended else duration_ms if seconds is None else round(1000 * seconds),
        attempts=retries + 1,
        options=ProfilerOptions(
            host_tracer_level=host_tracer_level,
            python_tracer_level=python_tracer_level,
            device_tracer_level=device_tracer_level,
            delay_ms=delay_ms,
        ),
        token=_read_token(token_file),
    )
    with _cancel_on_ctrl_c() as cancel, _show_progress() as on_progress:
        outcome = capture_workers(request, on_progress, cancel)
    if outcome.saved:  # else the error says why of each, and uncut
        _print_outcome(outcome)
    _raise_if_incomplete(outcome)


def _read_token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("the token cannot be read", path=path, hint="give a file with one line of text") from error


@contextmanager
def _cancel_on_ctrl_c() -> Iterator[threading.Event]:
    """The first Ctrl-C ends the recording; the second exits without waiting."""
    cancel = threading.Event()

    def end(*_: object) -> None:
        cancel.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _show_progress() -> Iterator[OnProgress | None]:
    """Shows a line per worker on stderr during the capture; nothing if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    picture = _ProgressTable()
    with Live(
        console=Console(stderr=True), get_renderable=picture.table, refresh_per_second=_REFRESHES, transient=True
    ):
        yield picture.take


class _ProgressTable:
    """The phase of each worker, and for how long it has been in it."""

    def __init__(self) -> None:
        self._workers: dict[str, tuple[WorkerStatus, float]] = {}

    def take(self, status: WorkerStatus) -> None:
        self._workers[status.address] = (status, time.monotonic())

    def table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for status, since in list(self._workers.values()):
            phase, seconds = status.phase.value, time.monotonic() - since
            clock = "" if phase in _LOUD else f"{seconds:.0f} s"
            # As Text: rich would take brackets for markup, as in `[fe80::1]:6009` and `[busy]`.
            grid.add_row(Text(status.address), phase, clock, Text(status.detail), style=_LOUD.get(phase))
        return grid


_OUTCOME = (
    Field("worker", "text", "its address", role=Role.PLACE),
    Field("result", "text", "whether it sent a profile", role=Role.TERM),
    Field("attempt", "count", "how often it was asked", "int"),
    Field("size", "text", "of its file", role=Role.LABEL),
    Field("file, or why it failed", "text", "its file, or the reason", role=Role.LABEL),
)


def _print_outcome(outcome: CaptureOutcome) -> None:
    rows: list[Row] = []
    for worker in outcome.workers:
        early = ", ended early" if worker.ended_early else ""
        size = "" if worker.size_bytes is None else file_size_text(worker.size_bytes)
        # Only the file name: the folder is printed once below.
        text = worker.detail if worker.path is None else worker.path.rpartition("/")[2]
        cells = worker.address, worker.phase.value + early, worker.attempt, size, text
        rows.append(dict(zip((field.name for field in _OUTCOME), cells, strict=True)))
    table = Rows("workers", "Workers", _OUTCOME, tuple(rows), is_asked=True)
    print_lines(table_lines(table, screen_width() if sys.stdout.isatty() else WIDE, len(rows)))
    if outcome.run is not None:
        print(f"\nthe profiles are in {outcome.run}\nmore: stepscope summary {outcome.run}")


def _raise_if_incomplete(outcome: CaptureOutcome) -> None:
    if not outcome.failed:
        return
    if outcome.cancelled and not outcome.saved:
        raise KeyboardInterrupt
    if not outcome.saved:
        raise CaptureError(f"no worker sent a profile: {outcome.reasons()}", code="no-profile", lost="the capture")
    raise CaptureError(
        f"{len(outcome.saved)} of {len(outcome.workers)} workers sent a profile: {outcome.reasons()}",
        code="partial",
        kept=f"the other profiles, in {outcome.run}",
    )
