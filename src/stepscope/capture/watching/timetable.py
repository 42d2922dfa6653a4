"""When a capture is due by the clock."""

from __future__ import annotations

import time

from stepscope.capture.watching.options import parse_times


class TimeTable:
    """Captures at an interval, on the monotonic clock, and at times of the day, on the local one.

    Args:
        every_s: the interval; 0 for none.
        at: times of the day, as `WatchOptions.at`.
        now: on the monotonic clock, in seconds.
        unix_s: since 1970.

    Attributes:
        sentence: why the last capture was due.
    """

    def __init__(self, every_s: float, at: str, now: float, unix_s: float) -> None:
        self._every_s = every_s
        self._minutes = parse_times(at)
        self._next = now + every_s
        self._day_minute = _minute_of_day(unix_s)
        self.sentence = ""

    def is_due(self, now: float, unix_s: float) -> bool:
        """Whether a capture is due since the last call; a clock that jumps over a time of the day does not reach it."""
        minute, before = _minute_of_day(unix_s), self._day_minute
        self._day_minute = minute
        if minute != before and minute in self._minutes:
            self.sentence = f"the time table asks for a capture at {minute // 60:02d}:{minute % 60:02d}"
            return True
        if self._every_s and now >= self._next:
            self._next = now + self._every_s
            self.sentence = f"the time table asks for a capture every {self._every_s:g} s"
            return True
        return False


def _minute_of_day(unix_s: float) -> int:
    local = time.localtime(unix_s)
    return 60 * local.tm_hour + local.tm_min
