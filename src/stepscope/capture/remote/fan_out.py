"""Captures many workers at once."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from stepscope.capture import files
from stepscope.capture.remote import addresses
from stepscope.capture.remote.access import choose_token
from stepscope.capture.remote.outcome import (
    OPEN_ENDED_MS,
    Cancel,
    CaptureOutcome,
    CaptureRequest,
    LogDir,
    OnProgress,
    Phase,
    WorkerStatus,
)
from stepscope.capture.remote.worker import CapturePlan, Drive, RemoteWorker
from stepscope.formats.store import is_remote

_DELAY_MS = 200  # until several workers start, so that the request has reached all of them
_PAUSE_SECONDS = 0.5  # before a second attempt; longer before each further one
_LOOK_SECONDS = 0.1  # how often to look whether the capture is cancelled
_GRACE_SECONDS = 30.0  # for workers that were asked to end, until they have sent what they recorded


class FanOut:
    """One capture of several workers.  Progress is reported on the thread that runs it."""

    def __init__(self, request: CaptureRequest, on_progress: OnProgress | None, cancel: Cancel | None) -> None:
        self._request = request
        self._on_progress = on_progress or (lambda _: None)
        self._cancel = cancel or threading.Event()
        # Not a SimpleQueue: in Python 3.11 its `get` waits forever if a signal handler runs past the timeout, and the
        # capture of `stepscope run` ends in one.
        self._statuses: queue.Queue[WorkerStatus] = queue.Queue()
        self._ended_at: float | None = None

    def run(self) -> CaptureOutcome:
        """Captures; returns the result of each worker.  Raises CaptureError if the logdir cannot be written."""
        plan = self._plan()
        workers = [
            RemoteWorker(address, plan, self._statuses.put)
            for address in addresses.parse(",".join(self._request.workers))
        ]
        try:
            for attempt in range(plan.attempts):
                still_open = [worker for worker in workers if worker.open()]
                if still_open and not self._cancel.is_set():
                    self._pause(_PAUSE_SECONDS * attempt)
                    self._attempt(still_open)
        finally:
            for worker in workers:
                worker.close()
            _clean_up(plan)
        for worker in workers:
            worker.fail_unfinished()
        self._report_progress()
        return _outcome(plan, workers, self._cancel.is_set())

    def _plan(self) -> CapturePlan:
        folder, url = _open_run(self._request.logdir)
        duration_ms = self._request.duration_ms or OPEN_ENDED_MS
        session_id = f"{folder.name}-{os.urandom(4).hex()}"
        token = choose_token(self._request.token)
        return CapturePlan(
            folder, url, session_id, duration_ms / 1e3, self._request.options, self._request.attempts, token
        )

    def _attempt(self, workers: Sequence[RemoteWorker]) -> None:
        found = self._drive(workers, RemoteWorker.connect)
        ready = [worker for worker, is_there in zip(workers, found, strict=True) if is_there]
        if ready and not self._cancel.is_set():
            start_unix_ns = time.time_ns() + self._delay_ms() * 1_000_000
            self._drive(ready, lambda worker: worker.record(start_unix_ns))

    def _delay_ms(self) -> int:
        asked = self._request.options.delay_ms
        if asked is not None:
            return asked
        return _DELAY_MS if len(self._request.workers) > 1 else 0

    def _drive(self, workers: Sequence[RemoteWorker], drive: Drive) -> list[object]:
        """Calls a function for all workers at once, and reports progress until all calls have returned."""
        with ThreadPoolExecutor(len(workers), "stepscope-capture") as pool:
            running = [pool.submit(drive, worker) for worker in workers]
            try:
                while not all(future.done() for future in running):
                    self._look(workers)
            except BaseException:  # from `on_progress`, or Ctrl-C: nothing waits for the result any more
                for worker in workers:
                    worker.give_up()
                raise
        self._report_progress()
        return [future.result() for future in running]

    def _look(self, workers: Sequence[RemoteWorker]) -> None:
        with suppress(queue.Empty):
            self._on_progress(self._statuses.get(timeout=_LOOK_SECONDS))
        if not self._cancel.is_set():
            return
        if self._ended_at is None:
            self._ended_at = time.monotonic()
            for worker in workers:
                worker.end()
        elif time.monotonic() > self._ended_at + _GRACE_SECONDS:
            for worker in workers:
                worker.give_up()

    def _report_progress(self) -> None:
        while not self._statuses.empty():
            self._on_progress(self._statuses.get())

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._cancel.is_set():
            time.sleep(_LOOK_SECONDS)


def _open_run(logdir: LogDir) -> tuple[Path, str | None]:
    """The folder of a run that starts now, and where its files go in the end if the logdir is on another machine."""
    place = files.resolve_logdir(logdir)
    if not is_remote(place):
        return files.make_run_folder(place), None
    run = files.run_name()
    folder = Path(tempfile.mkdtemp(prefix="stepscope-"), run)
    folder.mkdir()
    return folder, f"{place}/plugins/profile/{run}"


def _clean_up(plan: CapturePlan) -> None:
    # Old servers write their files there; those on our disk have been moved.
    files.drop_if_empty(plan.folder.parent / plan.session_id)
    files.drop_if_empty(plan.folder)
    if plan.url is not None:
        files.drop_if_empty(plan.folder.parent)


def _outcome(plan: CapturePlan, workers: Sequence[RemoteWorker], cancelled: bool) -> CaptureOutcome:
    statuses = tuple(worker.status for worker in workers)
    saved = any(status.phase == Phase.SAVED for status in statuses)
    return CaptureOutcome(statuses, (plan.url or str(plan.folder)) if saved else None, cancelled)
