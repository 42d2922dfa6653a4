"""Samples the Python stacks for the ring: seldom while steps are on time, often while one is overdue."""

from __future__ import annotations

import time
from collections import deque

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Clock
from stepscope.capture.tracers.stack_samples import Frame, StackSampler, Thread
from stepscope.capture.tracers.ticker import Ticker
from stepscope.capture.watching.own_cost import OwnCost
from stepscope.capture.watching.places import Place, find_place
from stepscope.capture.watching.steps import StepFollower
from stepscope.formats.spool.layout import Chunk
from stepscope.kernels.stacks import read_stack

_OVERDUE, _OVERDUE_LEAST_NS = 1.5, 10_000_000  # times the usual length, and this much more
_BURST_S = 0.02
_LONG_BURST = 100  # samples of one overdue step; after these the rate falls again
_SLOW_BURST_S = 0.2
_LONGEST_S = 2.0
_MOST_PLACES = 4000
_SMOOTH = 0.1


class RingSampler(StackSampler):
    """Samples the stacks of all threads, and notes where the thread of the steps is.

    Args:
        steps: knows whether the open step is overdue.
        most_hz: the most samples per second while steps are on time.
        cost: of the watch.  If samples cost so much that the budget would be exceeded, there are fewer.

    Attributes:
        places: when and where the thread of the steps was sampled last.
    """

    def __init__(self, steps: StepFollower, most_hz: float, cost: OwnCost) -> None:
        super().__init__(reads_usage=False)
        self._steps = steps
        self._interval_s = 1 / max(most_hz, 1 / _LONGEST_S)
        self._cost = cost
        self._cost_s = 0.0
        self._used_ns = 0
        self._burst = 0
        self.places: deque[tuple[int, Place]] = deque(maxlen=_MOST_PLACES)

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts sampling."""
        self._clock = clock
        self._last_ns = clock()
        self._ticker = Ticker("ring-sampler", self._interval_s, self._tick, first=self._begin)
        self._ticker.start()

    def drain(self) -> list[Chunk]:
        """The ranges until the last sample, those of open calls included: the ring may end at any moment."""
        with self._lock:
            for thread in self._threads.values():
                thread.ended += [(frame, since, self._last_ns) for frame, since in thread.open if since < self._last_ns]
                thread.open = [(frame, self._last_ns) for frame, _ in thread.open]
        return super().drain()

    def _begin(self) -> None:
        self._used_ns = time.thread_time_ns()

    def _tick(self) -> float:
        self.sample()
        used_ns = time.thread_time_ns()
        cost_s, self._used_ns = (used_ns - self._used_ns) / 1e9, used_ns
        self._cost.note_thread("sampler")
        self._cost_s += (_SMOOTH if self._cost_s else 1.0) * (cost_s - self._cost_s)
        return self._next_wait_s()

    def _next_wait_s(self) -> float:
        """The seconds until the next sample, which comes soon while the open step is overdue."""
        regular_s = min(max(self._interval_s, self._cost.sample_interval_s(self._cost_s)), _LONGEST_S)
        since, usual_ns = self._steps.open_since_ns, self._steps.usual.median_ns
        overdue_ns = max(_OVERDUE * usual_ns + _OVERDUE_LEAST_NS, self._steps.usual.high_ns)
        if not since or not usual_ns or self._clock() - since < overdue_ns:
            self._burst = 0
            return regular_s
        self._burst += 1
        return min(regular_s, _BURST_S if self._burst <= _LONG_BURST else _SLOW_BURST_S)

    def _note(self, ident: int, thread: Thread, stack: list[Frame], now: int) -> None:
        super()._note(ident, thread, stack, now)
        if thread.number == self._steps.thread_number:
            place = find_place(read_stack(ident))
            if place is not None:
                self.places.append((now, place))
