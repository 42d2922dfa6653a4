"""Finds spikes in values that the training reports, such as the loss."""

from __future__ import annotations

import math
import statistics
from collections import deque

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
