"""Which capture of this process records, and which are still being written."""

from __future__ import annotations

import threading
from enum import Enum

from stepscope.capture.running import Capture
from stepscope.errors import StepscopeError


class State(Enum):
    """The four states of a process.

    IDLE, ENDED_EARLY, START_FAILED   --start-->       RECORDING
    RECORDING                         --end-->         IDLE
    RECORDING                         --end_early-->   ENDED_EARLY
    ENDED_EARLY                       --acknowledge--> IDLE
    IDLE, ENDED_EARLY, START_FAILED   --fail-->        START_FAILED
    """

    IDLE = "nothing records"
    RECORDING = "a capture records"
    ENDED_EARLY = "the last capture reached a limit, and nobody has called stop since"
    START_FAILED = "the last start failed"


class CaptureState:
    """The state of a process and its captures.  Every method may be called on any thread, and in a signal handler.

    Attributes:
        lock: held while a capture starts or ends.  It is reentrant, because a signal handler may stop a capture while
            its own thread holds the lock.
        current: the state.
        failure: why the last start failed, in START_FAILED.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.lock = threading.RLock()
        self.current = State.IDLE
        self.failure: StepscopeError | None = None
        self._capture: Capture | None = None  # that records, or that ended early
        self._exporting: set[Capture] = set()

    @property
    def recording(self) -> Capture | None:
        """The capture that records."""
        return self._capture if self.current is State.RECORDING else None

    @property
    def exporting(self) -> list[Capture]:
        """The captures that have ended and are still being stopped or written."""
        return list(self._exporting)

    def begin(self, capture: Capture) -> None:
        """The capture has started."""
        with self.lock:
            assert self.current is not State.RECORDING, "only one capture records at a time"
            self._enter(State.RECORDING, capture)

    def fail(self, error: StepscopeError | None) -> None:
        """A start has failed.  A capture that records goes on: the failed start was a second one."""
        with self.lock:
            if self.current is not State.RECORDING:
                self._enter(State.START_FAILED, failure=error)

    def end(self, capture: Capture, early: bool = False) -> bool:
        """The capture stops recording now; False if it had stopped before.

        Args:
            early: it ends itself, at a limit.
        """
        with self.lock:
            if capture is not self.recording:
                return False
            self._enter(State.ENDED_EARLY, capture) if early else self._enter(State.IDLE)
            return True

    def acknowledge(self) -> Capture | None:
        """The program stops a capture that has ended early, which is returned; None if none has."""
        with self.lock:
            if self.current is not State.ENDED_EARLY:
                return None
            capture = self._capture
            self._enter(State.IDLE)
            return capture

    def export_begins(self, capture: Capture) -> None:
        """The capture is going to be stopped and written."""
        self._exporting.add(capture)

    def export_ended(self, capture: Capture) -> None:
        """The capture's files are written, or are known not to be."""
        self._exporting.discard(capture)
        capture.finished.set()

    def forget_parent(self) -> None:
        """After a fork: every capture belongs to the parent, which will write it."""
        recording = self.recording
        self._reset()
        if recording is not None:
            recording.abandon()

    def _enter(self, state: State, capture: Capture | None = None, failure: StepscopeError | None = None) -> None:
        self.current, self._capture, self.failure = state, capture, failure
