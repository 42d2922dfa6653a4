"""What a watch takes of its job, and how much it may: every part of it asks here before it spends.

What it takes is the processor time of its own threads, what it does inside the steps and the program's annotations, and
what a thread that wakes up costs the others.  What it may take is a share of the time that the job had: the time since
the start, without the time in which the thread of the steps waited for a processor.  A job that gets a third of a
processor pays three times as much for each sample.

The windows of the framework's profiler have a share of their own.  A window costs what its steps, and those until its
files are written, took longer than usual, together with the time that starting and ending it took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SHARE = 0.4
"""Of the budget, for what is always on; the rest is for the windows of the framework's profiler."""

_FIRST_WINDOW_S = 0.25  # what a window costs, before one was measured
_FIRST_S = 1.0  # the start may spend what the job earns in this time
_LEAST_S = 5.0  # before which a percentage says little
_SAVED_S = 20.0  # what is earned in this time may be saved up, for a step that is suddenly slow
_RESERVED = 0.5  # of what is saved, for such a step
_SLOW_SHARE = 2.0  # times the budget: what samples of a slow step may take of its own length, whatever else was spent
_LONGEST_DEBT_S = 300.0  # what steps cost cannot be avoided; a debt that takes longer to pay is forgiven
_SAMPLES_PART = 0.25  # of the share, for samples even where the steps alone take it all
_RECORDS_PART = 0.6  # of the share, for annotations
_SPAN_NS = 1_500  # inside the program for each annotation, between steps that had used the caches meanwhile
_SOON_S = 0.001  # is now: waking up once more would cost more
_FLUSH_NS = 2_000  # of the ring's thread, for each
_WAKE_UP_NS = 15_000  # the threads of the job hand over the interpreter, and take it back


class Allowance:
    """Time that is earned, spent, and saved up to a limit.

    Args:
        share: what is earned of each second.

    Attributes:
        left_s: what may be spent now; negative while there is a debt.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.left_s = share * _FIRST_S
        self._job_s = self._spent_s = 0.0

    @property
    def most_s(self) -> float:
        """What can be saved up."""
        return self.share * _SAVED_S

    def settle(self, job_s: float, spent_s: float) -> None:
        """Earns and spends what is new.

        Args:
            job_s: the time that the job has had until now.
            spent_s: what has been spent until now.
        """
        left_s = self.left_s + self.share * (job_s - self._job_s) - (spent_s - self._spent_s)
        self.left_s = min(max(left_s, -self.share * _LONGEST_DEBT_S), self.most_s)
        self._job_s, self._spent_s = job_s, spent_s


class WatchBudget:
    """Adds up what the watch takes, and says what it may do.  Safe to use from several threads.

    Args:
        percent: how much longer the job may take.
        hook_ns: what the hooks inside the steps have taken.
        queued_ns: for how long the thread of the steps has waited for a processor.
        clock: seconds.
        thread_ns: the processor time of the calling thread.

    Attributes:
        windows: how many have been measured.
        slow_share: the part of a slow step's own length that samples of it may take, whatever else was spent.  Without
            them nobody knows its cause; later samples pay for them.
    """

    def __init__(
        self,
        percent: float,
        hook_ns: Callable[[], int],
        queued_ns: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        thread_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._hook_ns = hook_ns
        self._queued_ns = queued_ns
        self._clock = clock
        self._since = clock()
        self._first_queued_ns: int | None = None
        self._running: dict[str, int] = {}  # of threads that run for as long as the watch
        self._ended_ns = self._spans = self._wake_ups = 0
        self._window_share = (1 - SHARE) * percent / 100
        self.windows, self._windows_s = 0, 0.0
        self._whole = Allowance(SHARE * percent / 100)
        self._samples = Allowance(_SAMPLES_PART * self._whole.share)
        self._records = Allowance(_RECORDS_PART * self._whole.share)
        self._lock = threading.Lock()
        self.thread_ns = thread_ns
        self.slow_share = _SLOW_SHARE * percent / 100

    # -- what was taken ------------------------------------------------------------------------------------------------

    def note_thread(self, name: str, wake_ups: int = 1) -> int:
        """The calling thread, which has this part of the work, has used what it has used until now.

        Args:
            wake_ups: how often it has woken up since the last call.

        Returns:
            Its processor time in ns.
        """
        used_ns = self.thread_ns()
        with self._lock:
            self._running[name] = used_ns
            self._wake_ups += wake_ups
        return used_ns

    def note_end(self) -> None:
        """The calling thread ends."""
        used_ns = self.thread_ns()
        with self._lock:
            self._ended_ns += used_ns

    def note_spans(self, count: int) -> None:
        """The program has made so many annotations."""
        with self._lock:
            self._spans += count

    def note_window(self, cost_s: float) -> None:
        """A window has been measured."""
        self._windows_s += max(cost_s, 0.0)
        self.windows += 1

    @property
    def spent_s(self) -> float:
        """What the watch has taken until now, without the windows of the framework's profiler."""
        with self._lock:
            return self._spent_ns() / 1e9

    @property
    def percent(self) -> float:
        """What the watch has taken until now: in percent of the time that the job had, and windows of all time."""
        elapsed_s = max(self._elapsed_s(), _LEAST_S)
        return 100 * (self.spent_s / self._job_s(elapsed_s) + self._windows_s / elapsed_s)

    # -- what may be done ----------------------------------------------------------------------------------------------

    def can_afford_window(self) -> bool:
        """Whether one more window of the usual cost keeps the budget."""
        expected_s = self._windows_s / self.windows if self.windows else _FIRST_WINDOW_S
        earned_s = self._window_share * self._elapsed_s()
        return self._window_share > 0 and self._windows_s + expected_s <= earned_s

    def can_sample(self, sample_s: float, is_urgent: bool = False) -> bool:
        """Whether a sample of the stacks keeps the budget.

        Args:
            sample_s: what it takes.
            is_urgent: a step is overdue: it may use what is kept back.
        """
        return self.sample_wait_s(sample_s, is_urgent) <= _SOON_S

    def sample_wait_s(self, sample_s: float, is_urgent: bool = False) -> float:
        """The seconds until a sample keeps the budget, if nothing else is done meanwhile; infinite without a budget.

        Args:
            sample_s, is_urgent: as for `can_sample`.
        """
        self._settle()
        return min(self._wait_s(allowance, sample_s, is_urgent) for allowance in (self._whole, self._samples))

    @property
    def debt_s(self) -> float:
        """The seconds until what was spent beyond the budget is earned; infinite without one."""
        self._settle()
        return self._wait_for(self._whole, 0.0)

    def _wait_s(self, allowance: Allowance, piece_s: float, is_urgent: bool) -> float:
        saved_s = _RESERVED * min(self._elapsed_s() * allowance.share, allowance.most_s)
        return self._wait_for(allowance, min(piece_s + (0.0 if is_urgent else saved_s), allowance.most_s))

    def _wait_for(self, allowance: Allowance, wanted_s: float) -> float:
        if not allowance.share:
            return float("inf")
        return max((wanted_s - allowance.left_s) / (allowance.share * self.job_part), 0.0)

    @property
    def records_left(self) -> float:
        """What annotations may spend now, as a part of what they can save up; negative for a debt."""
        self._settle()
        return self._records.left_s / self._records.most_s if self._records.share else 0.0

    def _settle(self) -> None:
        with self._lock:
            job_s = self._job_s(self._elapsed_s())
            self._whole.settle(job_s, self._spent_ns() / 1e9)
            self._samples.settle(job_s, self._running.get("sampler", 0) / 1e9)
            self._records.settle(job_s, (_SPAN_NS + _FLUSH_NS) * self._spans / 1e9)

    def _spent_ns(self) -> int:
        threads = sum(self._running.values()) + self._ended_ns
        return threads + _WAKE_UP_NS * self._wake_ups + _SPAN_NS * self._spans + self._hook_ns()

    def _elapsed_s(self) -> float:
        return self._clock() - self._since

    @property
    def job_part(self) -> float:
        """The part of the time that the job had, 0.1 to 1: on a busy machine it waits for a core in between."""
        elapsed_s = max(self._elapsed_s(), _LEAST_S)
        return self._job_s(elapsed_s) / elapsed_s

    def _job_s(self, elapsed_s: float) -> float:
        """The time that the job had: at least a tenth of the time that has passed, and at most all of it, even if
        another thread, with another counter, goes on with the steps."""
        queued_ns = self._queued_ns()
        if self._first_queued_ns is None and queued_ns:
            self._first_queued_ns = queued_ns  # the thread may have waited before there was a watch
        queued_s = (queued_ns - (self._first_queued_ns or 0)) / 1e9
        return min(max(elapsed_s - queued_s, elapsed_s / 10), elapsed_s)
