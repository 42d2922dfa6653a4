"""What profiling cost: steps inside the capture compared with those before it.

A capture stores both medians in its profile, since the trace does not hold the steps before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from stepscope.model import HostTrace
from stepscope.records import dataclass

_PLANE = "/stepscope:capture"


@dataclass(frozen=True)
class ProfilingCost:
    """Step durations before and inside a capture.

    Attributes:
        ms_before, ms_inside: median duration.
        steps_before, steps_inside: number of steps.
        spread_before, spread_inside: quartiles in ms; None if the profile does not hold them.
    """

    ms_before: float
    ms_inside: float
    steps_before: int
    steps_inside: int
    spread_before: tuple[float, float] | None = None
    spread_inside: tuple[float, float] | None = None

    @property
    def percent(self) -> float:
        """By how many percent the steps inside were longer; negative if they were shorter."""
        return round(100 * (self.ms_inside / self.ms_before - 1), 2)

    @property
    def is_clear(self) -> bool:
        """Whether the difference exceeds the normal variation of the steps.

        False if either median lies within the quartiles of the other steps.
        """
        pairs = ((self.ms_inside, self.spread_before), (self.ms_before, self.spread_inside))
        return not any(spread and spread[0] <= median <= spread[1] for median, spread in pairs)

    def sentence(self) -> str:
        """The result in words."""
        than = f"than the {self.steps_before} before it (median {self.ms_before:.3g} ms)"
        if not self.is_clear:
            than += ", which is within their normal variation"
        if self.percent >= 0:
            return f"steps inside the capture were {self.percent:.1f} % longer {than}"
        return f"steps inside the capture were {-self.percent:.1f} % shorter {than}"


def profiling_cost(trace: HostTrace) -> ProfilingCost | None:
    """The cost stored in the profile of one host; None if it was not measured."""
    row = trace.strings.find(_PLANE)
    plane = next((at for at, name in enumerate(trace.planes.name.tolist()) if name == row), None)
    if plane is None or row <= 0:
        return None
    stats = trace.stats_of_plane(plane)
    before, inside = stats.get("step_ms_before"), stats.get("step_ms_inside")
    if not isinstance(before, float) or not isinstance(inside, float) or not (0 < before < inf and 0 < inside < inf):
        return None
    counts = _count(stats.get("steps_before")), _count(stats.get("steps_inside"))
    return ProfilingCost(before, inside, *counts, _spread(stats, "before"), _spread(stats, "inside"))


def _spread(stats: Mapping[str, object], name: str) -> tuple[float, float] | None:
    low, high = stats.get(f"step_ms_{name}_low"), stats.get(f"step_ms_{name}_high")
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def highest_cost(costs: Sequence[ProfilingCost | None]) -> ProfilingCost | None:
    """The highest cost of any host; None if no host measured it."""
    known = [cost for cost in costs if cost is not None]
    return max(known, key=lambda cost: cost.percent, default=None)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
