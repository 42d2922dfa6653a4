"""Which memory of a run grows, and how fast."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from stepscope.model.arrays import F64
from stepscope.records import dataclass

_MOST_POINTS = 300  # all pairs of them are compared
_FEWEST_POINTS = 12
_WARM_UP = 0.15  # of the run: caches and pools fill up at its start
_LEAST_SHARE = 0.01  # of the level: less is no growth that matters
_THIRDS = 3
_Z95 = 1.96


@dataclass(frozen=True)
class Growth:
    """How a quantity grows.

    Attributes:
        per_hour: the median slope between any two points.
        least, most: its 95 % interval.
        first, last: the level at both ends, as the median of the first and the last tenth.
        is_clear: it grows: the whole interval is above zero, in each third of the run the level is higher, and what was
            added is at least 1 % of the level.
    """

    per_hour: float
    least: float
    most: float
    first: float
    last: float
    is_clear: bool


def measure_growth(unix_s: F64, values: F64) -> Growth | None:
    """The growth of values after the warm-up; None if there are too few points.

    The slope is that of Theil and Sen, which outliers do not move, and its interval is Sen's, from the number of
    independent points: rows next to each other are much alike, so the effective number is that of the blocks between
    which the residuals no longer agree.
    """
    known = np.isfinite(values) & np.isfinite(unix_s)
    unix_s, values = unix_s[known], values[known]
    late = unix_s >= unix_s[0] + _WARM_UP * (unix_s[-1] - unix_s[0]) if len(unix_s) else known[known]
    hours, levels = _thin(unix_s[late] / 3600, values[late])
    if len(hours) < _FEWEST_POINTS or hours[-1] <= hours[0]:
        return None
    slopes = _pair_slopes(hours, levels)
    slope = float(np.median(slopes))
    least, most = _interval(slopes, _effective_count(hours, levels, slope), len(hours))
    tenth = max(len(levels) // 10, 1)
    first, last = float(np.median(levels[:tenth])), float(np.median(levels[-tenth:]))
    return Growth(slope, least, most, first, last, least > 0 and _rises(levels) and last - first > _LEAST_SHARE * last)


def _thin(hours: F64, levels: F64) -> tuple[F64, F64]:
    """At most `_MOST_POINTS` points: the means of neighbours."""
    size = math.ceil(len(hours) / _MOST_POINTS) if len(hours) else 1
    whole = len(hours) // size * size
    return hours[:whole].reshape(-1, size).mean(1), levels[:whole].reshape(-1, size).mean(1)


def _pair_slopes(hours: F64, levels: F64) -> F64:
    one, other = np.triu_indices(len(hours), 1)
    apart = hours[other] - hours[one]
    return np.sort((levels[other] - levels[one])[apart > 0] / apart[apart > 0])


def _effective_count(hours: F64, levels: F64, slope: float) -> float:
    """How many independent points there are, by the correlation of neighbours about the line."""
    rest = levels - slope * hours
    rest = rest - rest.mean()
    power = float((rest * rest).sum())
    alike = float((rest[1:] * rest[:-1]).sum()) / power if power > 0 else 0.0
    alike = min(max(alike, 0.0), 0.98)
    return max(len(hours) * (1 - alike) / (1 + alike), 4.0)


def _interval(slopes: F64, effective: float, count: int) -> tuple[float, float]:
    """Sen's interval of the median slope."""
    spread = math.sqrt(effective * (effective - 1) * (2 * effective + 5) / 18) * (count / effective) ** 2
    middle = len(slopes) / 2
    low, high = math.floor(middle - _Z95 * spread / 2), math.ceil(middle + _Z95 * spread / 2)
    last = len(slopes) - 1
    return float(slopes[min(max(low, 0), last)]), float(slopes[min(max(high, 0), last)])


def _rises(levels: F64) -> bool:
    thirds = [float(np.median(part)) for part in np.array_split(levels, _THIRDS)]
    return all(after > before for before, after in pairwise(thirds))
