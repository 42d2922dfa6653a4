"""A thread that calls a function at regular intervals."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from stepscope.capture.own_threads import OwnThread
from stepscope.capture.report import report

_PATIENCE_S = 2.0
SHORT_PATIENCE_S = 0.05  # if the training thread waits


class Ticker:
    """Calls a function every `interval_s` on its own thread.  A call that raises is reported and is the last
    one.  Tracers of Python calls do not record it: it is no thread of the program.

    Args:
        name: of the thread.
        interval_s: the time until the first call, and between calls.
        call: the function.  It returns the seconds until its next call; None for `interval_s`.
        first: called once before, without delay.
    """

    def __init__(
        self, name: str, interval_s: float, call: Callable[[], float | None], first: Callable[[], None] = lambda: None
    ) -> None:
        self._call = call
        self._first = first
        self._interval_s = interval_s
        self._going = threading.Lock()  # released at the end; waiting for a lock is cheaper than waiting for an event
        self._going.acquire()
        self._thread = OwnThread(self._run, name=f"stepscope-{name}")

    def start(self) -> None:
        """Starts; the first call comes after one interval."""
        self._thread.start()

    def stop(self, patience_s: float = _PATIENCE_S) -> bool:
        """Ends.  A running call is waited for, unless that call stops the ticker itself.

        Returns:
            True if no call is running any more.
        """
        with suppress(RuntimeError):  # it was stopped before
            self._going.release()
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._first()
            wait_s: float | None = self._interval_s
            while not self._going.acquire(timeout=self._interval_s if wait_s is None else wait_s):
                sys.setprofile(None)  # a tracer that has started meanwhile has one for every thread
                wait_s = self._call()
        except Exception as error:
            report(error, self._thread.name)
