"""How much the clocks of ranks differ, from collectives in which all of them took part.

An all-reduce, all-gather, reduce-scatter, all-to-all or barrier ends on all ranks at about the same moment, since each
needs the data of all.  So a rank whose clock shows a later end than the others has a clock that is ahead.  One
collective shows it to within the time that ranks take to leave it; the median of many is much better, and the interval
in which the true median lies with 95 % certainty says how much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from stepscope.records import dataclass

ENDS_TOGETHER = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Operations that no rank leaves before all have come.  The root of a broadcast may leave early."""

WORTH_NAMING_CLOCK_PS = 1e9
"""Smaller differences are not a finding."""

LEAST_COLLECTIVES = 3
"""With fewer, nothing is known of the uncertainty."""

_ROOTS_OF_95_PERCENT = 0.98  # half of 1.96: the ranks of the interval's ends, in roots of the number of values


@dataclass(frozen=True)
class ClockOffset:
    """How far a rank's clock is ahead of the median clock.

    Attributes:
        offset_ps: negative for a clock that is behind.
        uncertainty_ps: half of the 95 % interval of that offset.
        collectives: how many it is estimated from.
    """

    offset_ps: float
    uncertainty_ps: float
    collectives: int

    @property
    def is_wrong(self) -> bool:
        """Whether the clock differs by more than the uncertainty of that."""
        return abs(self.offset_ps) > self.uncertainty_ps


def clock_offsets(
    starts_unix_ns: Sequence[int | None], ends_ps: Sequence[Mapping[int, int]]
) -> list[ClockOffset | None]:
    """The offset of each rank's clock; None where it is not known.

    Args:
        starts_unix_ns: the start of each rank's session by its own clock; None without a clock.
        ends_ps: for each collective its end on each rank that took part, from the start of that rank's session.
    """
    unknown: list[ClockOffset | None] = [None] * len(starts_unix_ns)
    chosen = _largest_group(starts_unix_ns, ends_ps)
    if not chosen or len(ends_ps) < LEAST_COLLECTIVES:
        return unknown
    used = [ends for ends in ends_ps if all(rank in ends for rank in chosen)]
    if len(used) < LEAST_COLLECTIVES:
        return unknown
    first = starts_unix_ns[chosen[0]] or 0
    session = np.array([((starts_unix_ns[rank] or 0) - first) * 1000 for rank in chosen], np.int64)
    shown = np.array([[ends[rank] for rank in chosen] for ends in used], np.int64) + session
    roughly = np.median(shown - np.median(shown, axis=1, keepdims=True), axis=0)
    # The moment of each end by clocks that are set right: no single rank is the reference, so each has its uncertainty.
    moment = np.median(shown - roughly, axis=1, keepdims=True)
    ahead = np.sort(shown - moment, axis=0)
    low, high = _interval_of_median(len(used))
    offset, width = np.median(ahead, axis=0), (ahead[high] - ahead[low]) / 2
    offset -= np.median(offset)
    for at, rank in enumerate(chosen):
        unknown[rank] = ClockOffset(float(offset[at]), float(width[at]), len(used))
    return unknown


def _largest_group(starts_unix_ns: Sequence[int | None], ends_ps: Sequence[Mapping[int, int]]) -> list[int]:
    """The ranks with a clock of the largest collective: clocks of ranks that never meet cannot be compared."""
    groups = ([rank for rank in ends if starts_unix_ns[rank] is not None] for ends in ends_ps)
    largest = max(groups, key=len, default=[])
    return sorted(largest) if len(largest) > 1 else []


def _interval_of_median(count: int) -> tuple[int, int]:
    """The places, in order of size, of the values between which the median lies with 95 % certainty."""
    beside = math.ceil(_ROOTS_OF_95_PERCENT * math.sqrt(count))
    middle = (count - 1) / 2
    return max(0, math.floor(middle - beside)), min(count - 1, math.ceil(middle + beside))
