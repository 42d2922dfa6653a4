"""A recording without an end, from which snapshots are taken."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future

from stepscope.capture import recorder
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import OwnThread
from stepscope.capture.tracers.base import Collected
from stepscope.errors import CaptureError

LONGEST_MS = 300_000
"""A record that no client has fetched after this time is discarded: a client that is gone must not fill the memory."""

_STOP_S = 60.0  # a framework's profiler may wait for its device


class Continuous:
    """Records on its own thread, because some profilers must be stopped by the thread that started them.

    A snapshot ends one recording and starts the next; what happens between the two is not recorded.
    """

    def __init__(self, options: ProfilerOptions) -> None:
        self._options = options
        self._stopping = False
        self._wake = threading.Event()
        self._failure: Exception | None = None
        self._asked: queue.SimpleQueue[Future[Collected]] = queue.SimpleQueue()
        self._thread = OwnThread(self._run, name="stepscope-continuous")

    def start(self) -> None:
        """Starts, and returns once it records.  Raises CaptureError if it does not start."""
        if recorder.RECORDER.is_running():
            raise CaptureError("a capture is already running", code="already-running")
        self._thread.start()
        while self.is_alive() and not recorder.RECORDER.is_running():
            self._thread.join(0.01)
        if self._failure is not None:
            raise self._failure

    def is_alive(self) -> bool:
        """False once it has been stopped or a recording has failed."""
        return self._thread.is_alive()

    def snapshot(self) -> Collected:
        """What was recorded since the last snapshot.  Raises CaptureError if it has ended."""
        asked: Future[Collected] = Future()
        self._asked.put(asked)
        self._wake.set()
        if not self.is_alive():
            self._refuse_all()
        return asked.result()

    def stop(self) -> None:
        """Ends the recording and discards it."""
        self._stopping = True
        self._wake.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._answer(recorder.RECORDER.record(LONGEST_MS, self._options, self._wake))
        except Exception as error:
            self._failure = error
        self._refuse_all()

    def _answer(self, recorded: Collected) -> None:
        self._wake.clear()
        while not self._asked.empty():
            self._asked.get().set_result(recorded)

    def _refuse_all(self) -> None:
        while True:
            try:
                asked = self._asked.get_nowait()
            except queue.Empty:
                return
            asked.set_exception(self._failure or CaptureError("the session has ended", code="no-continuous"))
