"""A thread that calls a function at regular intervals."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.capture.own_threads import Recurring
from stepscope.capture.report import report
from stepscope.kernels.stacks import Sampling

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
        quick: called in place of both, see `Recurring`.
    """

    def __init__(
        self,
        name: str,
        interval_s: float,
        call: Callable[[], float | None],
        first: Callable[[], None] | None = None,
        quick: Sampling | None = None,
    ) -> None:
        self._call = call
        self._first = first
        self._name = name
        self._interval_s = interval_s
        self._recurring = Recurring(self._tick, 0.0 if first else interval_s, f"stepscope-{name}", quick=quick)

    def start(self) -> None:
        """Starts; the first call comes after one interval."""
        self._recurring.start()

    def stop(self, patience_s: float = _PATIENCE_S) -> bool:
        """Ends.  A running call is waited for, unless that call stops the ticker itself.

        Returns:
            True if no call is running any more.
        """
        self._recurring.stop()
        return self._recurring.join(patience_s)

    def _tick(self) -> float | None:
        try:
            first, self._first = self._first, None
            wait_s = first() if first else self._call()
            return self._interval_s if wait_s is None else wait_s
        except Exception as error:
            report(error, self._name)
            return None
