"""What a watch has noticed: the triggers, each with its sentence and what was kept of it."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from enum import StrEnum

from stepscope.capture.watching.options import parse_times
from stepscope.records import dataclass


class Trigger(StrEnum):
    """What makes a watch keep a capture."""

    SLOW_STEP = "slow step"
    STALL = "stall"
    OUT_OF_MEMORY = "out of memory"
    CRASH = "crash"
    SPIKE = "spike"
    REQUESTED = "requested"
    SIGNAL = "signal"
    TIME_TABLE = "time table"
    OTHER_RANK = "other rank"
    REGULAR = "regular window"


URGENT = frozenset({Trigger.STALL, Trigger.OUT_OF_MEMORY, Trigger.CRASH, Trigger.REQUESTED, Trigger.SIGNAL})
"""Triggers that are kept however short ago another one was."""


@dataclass(frozen=True)
class Mark:
    """A trigger.

    Attributes:
        trigger: its kind.
        sentence: what happened, and why if that is known.
        unix_ns: when.
        step: the number of the step; None if none ran.
        run: the session that holds what came before it; empty if nothing was kept.
        window: the session that holds the framework's record of the steps after it; empty without one.
        cause: what identifies the cause, so that it is not kept again and again; empty while that is unknown.
    """

    trigger: Trigger
    sentence: str
    unix_ns: int
    step: int | None = None
    run: str = ""
    window: str = ""
    cause: str = ""

    def row(self) -> dict[str, object]:
        """The mark as plain values."""
        return {
            "unix_s": round(self.unix_ns / 1e9, 3),
            "trigger": self.trigger.value,
            "sentence": self.sentence,
            "step": self.step,
            "run": self.run,
            "window": self.window,
        }


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


_WINDOW = 100
_FEWEST = 20
_TIMES = 10.0  # the usual distance from the median
_LEAST_SHARE = 0.5  # of the median


class Spikes:
    """Judges values by the last ones of the same name."""

    def __init__(self) -> None:
        self._last: dict[str, deque[float]] = {}
        self._was_finite: dict[str, bool] = {}

    def judge(self, name: str, value: float) -> str:
        """Notes a value; returns a sentence if it is a spike, or the first one that is not finite; empty otherwise."""
        last = self._last.setdefault(name, deque(maxlen=_WINDOW))
        was_finite, finite = self._was_finite.get(name, True), math.isfinite(value)
        self._was_finite[name] = finite
        if not finite:
            return f"{name} is {value}" + (f"; it was {last[-1]:.4g} before" if last else "") if was_finite else ""
        sentence = _describe_spike(name, value, last) if len(last) >= _FEWEST else ""
        last.append(value)
        return sentence


def _describe_spike(name: str, value: float, last: deque[float]) -> str:
    median = statistics.median(last)
    spread = statistics.median(abs(each - median) for each in last)
    if value - median <= max(_TIMES * spread, _LEAST_SHARE * abs(median)):
        return ""
    return f"{name} is {value:.4g}; the median of the last {len(last)} was {median:.4g}"
