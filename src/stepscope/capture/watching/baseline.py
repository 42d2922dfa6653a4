"""How long a step usually takes, and whether one is slow."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from enum import IntEnum

_WINDOW, _BATCH = 400, 64
_FEWEST = 20
_HIGH = 0.95
_TIMES_ABOVE = 3  # a slow step is above the usual high by this many times what that is above the median
_JUDGED = 30
_MOST_AT_ONCE = 64  # lengths of one batch, evenly chosen: more would say no more
_MOST_SLOW = 24  # of the last `_JUDGED`: from then on this is how long a step takes
_MOST_OF = 0.5  # of what a contended step takes longer than the median, the least part of waits for a core


class Length(IntEnum):
    """What is said of a step by its length: `CONTENDED` ones are slow only because they waited for a processor."""

    USUAL = 0
    CONTENDED = 1
    SLOW = 2


class Baseline:
    """The lengths of the last steps, without the slow ones.

    A step is slow if it is longer than each of three limits: `slow_factor` times the median; the median and `least_ns`;
    and a limit that follows the noise of this job, so that a job whose steps vary by themselves has few false alarms.
    A step without its waits for a core is compared as well: on a machine that others use, those waits are most of
    the noise, and would hide a step that is slow by itself.
    If four in five of the last steps are slow, that is what a step takes from now on.  Safe to use from two threads.

    Attributes:
        median_ns: of the last steps; 0 until there are enough.
        high_ns: nineteen in twenty are shorter.
        never_slow_ns: no step up to this length is slow, whatever it waited for; 0 until there are enough.
    """

    def __init__(self, slow_factor: float, least_ns: int) -> None:
        self._slow_factor, self._least_ns = slow_factor, least_ns
        self.high_ns = self.never_slow_ns = 0
        self._whole = _Window(slow_factor, least_ns)
        self._own = _Window(slow_factor, least_ns)
        self._judged: deque[bool] = deque(maxlen=_JUDGED)
        self._waiting: list[tuple[int, int]] = []
        self._lock = threading.Lock()
        self.median_ns = 0

    def judge(self, length_ns: int, queued_ns: int = 0) -> Length:
        """Notes the length of a step, and judges it.

        Args:
            queued_ns: the part of it in which its thread waited for a processor.
        """
        with self._lock:
            return self._judge(length_ns, queued_ns)

    def add(self, lengths_ns: Sequence[int], queued_part: float) -> None:
        """Notes the lengths of steps that were not slow, and were not measured but for that.

        Args:
            queued_part: of what they took longer than the median, the part in which steps usually wait for a processor.
        """
        with self._lock:
            self._judged.extend([False] * min(len(lengths_ns), _JUDGED))
            median = self.median_ns
            self._waiting += [(length, round(queued_part * max(length - median, 0))) for length in lengths_ns]
            self._add_batch()

    def _judge(self, length_ns: int, queued_ns: int) -> Length:
        slow_alone = 0 < self._own.limit_ns < length_ns - queued_ns
        slow = slow_alone or 0 < self._whole.limit_ns < length_ns
        self._judged.append(slow)
        if slow and sum(self._judged) < _MOST_SLOW:
            waited = queued_ns >= _MOST_OF * (length_ns - self.median_ns)
            return Length.CONTENDED if waited and not slow_alone else Length.SLOW
        if slow:  # another length is usual now
            self._forget()
        self._waiting.append((length_ns, queued_ns))
        self._add_batch()
        return Length.USUAL

    def forget(self) -> None:
        """Starts anew."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._whole.forget()
        self._own.forget()
        self._judged.clear()
        self._waiting.clear()
        self.median_ns = self.high_ns = self.never_slow_ns = 0

    def _add_batch(self) -> None:
        """Adds the lengths of several steps at once, which is cheaper; each at once until it is known what is usual."""
        if len(self._waiting) < _BATCH and self.median_ns:
            return
        for length_ns, queued_ns in self._waiting[:: -(-len(self._waiting) // _MOST_AT_ONCE)]:
            self._whole.add(length_ns)
            self._own.add(length_ns - queued_ns)
        self._waiting.clear()
        self._whole.update()
        self._own.update()
        self.median_ns, self.high_ns = self._whole.median_ns, self._whole.high_ns
        if self.median_ns:
            self.never_slow_ns = max(round(self._slow_factor * self.median_ns), self.median_ns + self._least_ns)


class _Window:
    """The last lengths.

    Attributes:
        median_ns, high_ns, limit_ns: of the last lengths; 0 until there are enough.
    """

    def __init__(self, slow_factor: float, least_ns: int) -> None:
        self._slow_factor = slow_factor
        self._least_ns = least_ns
        self._order: deque[int] = deque(maxlen=_WINDOW)
        self.median_ns = self.high_ns = self.limit_ns = 0

    def forget(self) -> None:
        self._order.clear()
        self.median_ns = self.high_ns = self.limit_ns = 0

    def add(self, length_ns: int) -> None:
        self._order.append(length_ns)

    def update(self) -> None:
        count = len(self._order)
        if count < _FEWEST:
            return
        lengths = sorted(self._order)
        self.median_ns = median = lengths[count // 2]
        self.high_ns = high = lengths[min(count - 1, int(_HIGH * count))]
        noise = high + _TIMES_ABOVE * (high - median)
        self.limit_ns = max(round(self._slow_factor * median), median + self._least_ns, noise)
