"""What stays from step to step: by how much a memory grows, and which allocations are never freed.

    in use |                 o
           |        o   .     .      o: at the end of a step
           |  o .    . . .            the slope of these points is what every step leaves
           +--step--step--step--

The slope is the median of the slopes between all pairs of steps, so a few odd steps do not change it.  The first step
is left out: it makes what all steps use, such as the state of an optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.host_steps import HostSteps
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64, Mask, distinct
from stepscope.records import dataclass

FEWEST = 4  # steps after the first
_MOST_PAIRED = 300  # steps of which all pairs are taken
_ORDERED = 0.6  # of the pairs, rising less falling
_MATTERS = 0.01  # of the memory in use at the end, over all steps together


@dataclass(frozen=True)
class Growth:
    """How a memory grows from step to step, in bytes.

    Attributes:
        memory: its name, or the counter's.
        steps: how many steps were compared.
        first, last: in use at the end of the first and the last of them; None where only what was added is known.
        slope: bytes that a step leaves.
        grows: most steps end with more in use than the steps before, and it adds up to something.
    """

    memory: str
    steps: int
    first: int | None
    last: int | None
    slope: float
    grows: bool


@dataclass(frozen=True)
class Staying:
    """Allocations of several steps that are still alive at the end, of one op, place, type and shape.

    Attributes:
        steps: in how many steps such an allocation stayed, of those compared; allocations: how many stayed.
        allocated: their bytes together.
        per_step: bytes, by the steps compared.
    """

    op: str | None
    place: str | None
    steps: int
    allocations: int
    allocated: int
    per_step: float
    region: str | None
    data_type: str | None
    shape: str | None


def growth_of_levels(trace: HostTrace, memory: str, time_ps: I64, in_use: I64) -> Growth | None:
    """How a memory grows, from what is in use after each of its events; None with too few steps.

    Args:
        time_ps: int64 of shape (n,), ascending; in_use: bytes, int64 of shape (n,), UNKNOWN where not known.
    """
    known = in_use >= 0
    return growth_of_values(steps_of(trace), memory, time_ps[known], in_use[known].astype(np.float64))


def growth_of_values(
    steps: HostSteps, memory: str, time_ps: I64, level: F64, matters: float = _MATTERS
) -> Growth | None:
    """The same of the bytes of any counter: int64 and float64 of shape (n,), ascending in time.

    Args:
        matters: the least share of the memory in use at the end that counts as growth.
    """
    rows = compared_steps(steps)
    at = np.searchsorted(time_ps, steps.end_ps[rows], side="right") - 1
    ends = level[at[at >= 0]]
    if len(ends) < FEWEST:
        return None
    slope, order = _slope_and_order(ends)
    enough = slope * (len(ends) - 1) >= matters * max(float(ends[-1]), 1.0)
    return Growth(memory, len(ends), int(ends[0]), int(ends[-1]), slope, slope > 0 and order >= _ORDERED and enough)


def compared_steps(steps: HostSteps) -> I64:
    """Rows of the steps that are compared: those that the capture holds as a whole, without the first."""
    if steps.source == "none":
        return np.empty(0, np.int64)
    return np.flatnonzero(steps.complete)[1:]


def _slope_and_order(ends: F64) -> tuple[float, float]:
    """The median slope over all pairs, and the share of the pairs that rise less that of those that fall."""
    chosen = distinct(np.linspace(0, len(ends) - 1, min(len(ends), _MOST_PAIRED)).astype(np.int64))
    one, other = np.triu_indices(len(chosen), 1)
    rise = ends[chosen[other]] - ends[chosen[one]]
    slope = float(np.median(rise / (chosen[other] - chosen[one])))
    return slope, float(np.sign(rise).mean())


def staying_rows(steps: HostSteps, time_ps: I64, end: I64, is_allocation: Mask) -> tuple[I64, I64]:
    """Allocations made in a compared step, but the last, that are alive at the end of the last; and their steps.

    Args:
        time_ps: int64 of shape (n,), ascending; end: the event that ends each allocation, n if none does.

    Returns:
        Two int64 of shape (hits,): rows of the events, and places among the compared steps.
    """
    rows = compared_steps(steps)
    if len(rows) <= FEWEST:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    start, stop = steps.start_ps[rows[:-1]], steps.end_ps[rows[:-1]]
    at = np.searchsorted(start, time_ps, side="right") - 1
    inside = (at >= 0) & (time_ps < stop[np.maximum(at, 0)])
    freed = np.append(time_ps, np.iinfo(np.int64).max)[end] <= steps.end_ps[rows[-1]]
    found = np.flatnonzero(is_allocation & inside & ~freed)
    return found, at[found]


Described = tuple[str | None, str | None, str | None, str | None, str | None]
"""Op, place, region, element type and shape of an allocation."""


def group_staying(described: Sequence[Described], step: I64, sizes: I64, compared: int, most: int) -> list[Staying]:
    """What stays, by what it is: only what stays in several steps, most bytes first.

    Args:
        described: of each allocation; step: its step; sizes: its bytes, 0 if unknown.
        compared: how many steps were looked at.
    """
    groups: dict[Described, list[int]] = {}
    for row, key in enumerate(described):
        groups.setdefault(key, []).append(row)
    found = []
    for (op, place, region, data_type, shape), rows in groups.items():
        steps, total = len(distinct(step[rows])), int(sizes[rows].sum())
        if 3 * steps >= compared and steps > 1:
            found.append(Staying(op, place, steps, len(rows), total, total / compared, region, data_type, shape))
    return sorted(found, key=lambda each: (-each.allocated, each.op or "", each.place or ""))[:most]
