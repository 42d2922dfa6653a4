"""What a watch itself takes: the processor time of its threads, and what it does inside the steps; and how much it may.

The cost is compared with the time that the job had: the time since the start, without the time in which the thread of
the steps waited for a processor.  A job that gets a third of a processor pays three times as much for each sample.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SHARE = 0.4
"""Of the budget, for what is always on; the rest is for the windows of the framework's profiler."""

_FIRST_S = 5.0  # the start has to be paid for over this time at least
_LEAST_PART = 0.25  # of the share, that sampling may always take


class OwnCost:
    """Adds up what the watch takes.  Safe to use from several threads.

    Args:
        percent: the budget of the watch.
        hook_ns: what the hooks inside the steps have taken.
        queued_ns: for how long the thread of the steps has waited for a processor.
        clock: seconds.
    """

    def __init__(
        self,
        percent: float,
        hook_ns: Callable[[], int],
        queued_ns: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share = SHARE * percent / 100
        self._hook_ns = hook_ns
        self._queued_ns = queued_ns
        self._clock = clock
        self._since = clock()
        self._first_queued_ns: int | None = None
        self._running: dict[str, int] = {}  # of threads that run for as long as the watch
        self._ended_ns = 0  # of those that have ended
        self._lock = threading.Lock()

    def note_thread(self, name: str) -> None:
        """The calling thread, which has this part of the work, has used what it has used until now."""
        used_ns = time.thread_time_ns()
        with self._lock:
            self._running[name] = used_ns

    def note_end(self) -> None:
        """The calling thread ends."""
        used_ns = time.thread_time_ns()
        with self._lock:
            self._ended_ns += used_ns

    @property
    def spent_s(self) -> float:
        """What the watch has taken until now, without the windows of the framework's profiler."""
        return self._spent_ns("") / 1e9

    @property
    def percent(self) -> float:
        """The same, of the time that the job had."""
        return 100 * self.spent_s / self._job_s()

    def sample_interval_s(self, sample_s: float) -> float:
        """The seconds between two samples of the stacks that keep the budget, whatever else the watch does.

        Args:
            sample_s: what one sample takes.
        """
        if not self._share:
            return float("inf")
        others = self._spent_ns("sampler") / 1e9 / self._job_s()
        left = max(self._share - others, _LEAST_PART * self._share)
        return sample_s / (left * self._job_s() / self._elapsed_s())

    def _spent_ns(self, without: str) -> int:
        with self._lock:
            threads = sum(ns for name, ns in self._running.items() if name != without)
        return threads + self._ended_ns + self._hook_ns()

    def _elapsed_s(self) -> float:
        return max(self._clock() - self._since, _FIRST_S)

    def _job_s(self) -> float:
        """The time that the job had; at least a tenth of the time that has passed."""
        queued_ns, elapsed_s = self._queued_ns(), self._elapsed_s()
        if self._first_queued_ns is None and queued_ns:
            self._first_queued_ns = queued_ns  # the thread may have waited before there was a watch
        return max(elapsed_s - (queued_ns - (self._first_queued_ns or 0)) / 1e9, elapsed_s / 10)
