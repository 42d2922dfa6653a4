"""A thread that does something again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from stepscope.capture.report import report

THREAD_PREFIX = "stepscope-"
"""What the names of Stepscope's own threads begin with; the tracers leave these threads out."""

_PATIENCE_S = 2.0
SHORT_PATIENCE_S = 0.05  # of a thread that trains


class Ticker:
    """Calls a function every `interval_s` on a daemon thread of its own.  A call that raises is reported and is the
    last one.

    Args:
        call: returns after how many seconds to call it again; None for `interval_s`.
        first: what to do there before, at once.
    """

    def __init__(
        self, name: str, interval_s: float, call: Callable[[], float | None], first: Callable[[], None] = lambda: None
    ) -> None:
        self._call = call
        self._first = first
        self._interval_s = interval_s
        self._going = threading.Lock()  # released at the end; to wait for it takes less than to wait for an event
        self._going.acquire()
        self._thread = threading.Thread(target=self._run, name=THREAD_PREFIX + name, daemon=True)

    def start(self) -> None:
        """Begins; the first call comes after one interval."""
        self._thread.start()

    def stop(self, patience_s: float = _PATIENCE_S) -> bool:
        """Ends; a call that is under way is waited for, unless it is the one that stops.

        Returns:
            True if no call is under way.
        """
        with suppress(RuntimeError):  # it has ended already
            self._going.release()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._first()
            wait_s: float | None = self._interval_s
            while not self._going.acquire(timeout=self._interval_s if wait_s is None else wait_s):
                wait_s = self._call()
        except Exception as error:
            report(error, self._thread.name)
