"""Samples the Python stacks for the ring: seldom while steps are on time, often while one is overdue.

The thread looks more often than it samples.  A look compares two times; a sample walks over all stacks, and is taken
when the budget of the watch pays for it.  For a step that is overdue, a part of the budget is kept back.
"""

from __future__ import annotations

import threading
from array import array

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import own_threads
from stepscope.capture.tracers.base import Clock
from stepscope.capture.tracers.stack_samples import StackSampler
from stepscope.capture.tracers.ticker import Ticker
from stepscope.capture.watching.budget import WatchBudget
from stepscope.capture.watching.steps import StepFollower
from stepscope.formats.spool.layout import Chunk

_OVERDUE, _OVERDUE_LEAST_NS = 1.5, 10_000_000  # times the usual length, and this much more
_BURST_S = 0.02
_LONG_BURST = 100  # samples of one overdue step; after these the rate falls again
_SLOW_BURST_S = 0.2
_LOOK_S, _SELDOM_LOOK_S = 0.1, 1.0  # the latter before it is known how long a step takes
_BUSY_LOOK_S = 0.15  # where the job waits for a core; slow steps of 0.2 s still have to be seen
_SLOW_LOOK_S = 0.05  # while a step is overdue and cannot be sampled yet
_LONGEST_S = 600.0
_SMOOTH = 0.1


class RingSampler(StackSampler):
    """Samples the stacks of all threads.

    Args:
        steps: knows whether the open step is overdue.
        most_hz: the most samples per second while steps are on time.
        budget: of the watch, which says whether it can afford a sample.
    """

    def __init__(self, steps: StepFollower, most_hz: float, budget: WatchBudget) -> None:
        super().__init__(reads_usage=False)
        self._steps = steps
        self._interval_s = 1 / most_hz if most_hz else float("inf")
        self._budget = budget
        self._sample_s = 0.0  # what one takes; 0 until one was measured
        self._used_ns = 0
        self._look_s = _LOOK_S
        self._next_ns = 0  # when the next sample is due
        self._burst = self._looks = self._of_step = 0  # the latter: samples of the overdue step

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts sampling."""
        self._clock = clock
        self._last_ns = clock()
        self._ticker = Ticker("ring-sampler", min(self._interval_s, _SELDOM_LOOK_S), self._tick, first=self._begin)
        self._ticker.start()

    def drain(self) -> list[Chunk]:
        """The ranges until the last sample, those of open calls included: the ring may end at any moment."""
        with self._lock:
            self._note_samples()
            for thread in self._threads.values():
                for frame, since in zip(reversed(thread.stack), thread.began, strict=True):
                    if since < self._last_ns:
                        self._keep(thread, frame, since, self._last_ns)
                thread.began = array("q", [self._last_ns] * len(thread.stack))
                thread.statements.cut(self._last_ns)
        return super().drain()

    def _begin(self) -> None:
        self._used_ns = self._budget.note_thread("sampler")

    def _tick(self) -> float:
        """Samples if that is due and can be afforded; returns the seconds until the next look."""
        now, overdue_at_ns = self._clock(), self._overdue_at_ns()
        is_overdue = 0 < overdue_at_ns <= now
        self._looks += 1
        self._burst = self._burst + 1 if is_overdue else 0
        self._of_step = self._of_step if is_overdue else 0
        if not is_overdue and now < self._next_ns:
            return self._next_look_s(now, overdue_at_ns)
        can_sample = self._budget.can_sample(self._sample_s, is_overdue) or self._is_owed(now)
        if can_sample:
            self.sample()
        self._measure(can_sample)
        wait_s = max(self._interval_s if can_sample else 0.0, self._budget.sample_wait_s(self._sample_s), _BURST_S)
        self._next_ns = now + round(min(wait_s, _LONGEST_S) * 1e9)
        self._look_s = min(_LOOK_S / self._budget.job_part, _BUSY_LOOK_S)
        if is_overdue:
            self._of_step += can_sample
            pace_s = _BURST_S if self._burst <= _LONG_BURST else _SLOW_BURST_S
            return pace_s if can_sample else max(pace_s, _SLOW_LOOK_S)
        return self._next_look_s(now, overdue_at_ns)

    def _is_owed(self, now: int) -> bool:
        """Whether the open step is slow by now, and its samples have taken little of its length."""
        since, slow_ns = self._steps.open_since_ns, self._steps.usual.never_slow_ns
        if not since or not slow_ns or now - since < slow_ns:
            return False
        return (self._of_step + 1) * self._sample_s * 1e9 <= self._budget.slow_share * (now - since)

    def _measure(self, has_sampled: bool) -> None:
        """Notes what the thread has used, of which the last sample is a part."""
        used_ns = self._budget.note_thread("sampler", self._looks)
        self._looks = 0
        if has_sampled:
            cost_s = (used_ns - self._used_ns) / 1e9
            self._sample_s += (_SMOOTH if self._sample_s else 1.0) * (cost_s - self._sample_s)
        self._used_ns = used_ns

    def _overdue_at_ns(self) -> int:
        """When the open step is overdue, in ns of the clock; 0 if that is not known."""
        since, usual = self._steps.open_since_ns, self._steps.usual
        if not since or not usual.median_ns:
            return 0
        return since + max(round(_OVERDUE * usual.median_ns) + _OVERDUE_LEAST_NS, usual.high_ns)

    def _next_look_s(self, now: int, overdue_at_ns: int) -> float:
        """The seconds until the next sample is due, or until the open step, or one after it, may be overdue.

        This runs up to ten times a second, so it asks for no budget.
        """
        look_s = max(self._look_s, (overdue_at_ns - now) / 1e9) if self._steps.usual.median_ns else _SELDOM_LOOK_S
        return max(min((self._next_ns - now) / 1e9, look_s), _BURST_S)

    def sample(self) -> None:
        """Takes one sample of every thread but Stepscope's own."""
        named = threading._active  # type: ignore[attr-defined]  # `enumerate` may wait for a lock
        self._log.read(self._clock, named, own_threads())
