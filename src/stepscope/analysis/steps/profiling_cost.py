"""What profiling cost: the steps inside a capture against those before it, as Stepscope measured them.

A capture keeps both medians in its profile, since the steps before it are in no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from stepscope.model import HostTrace
from stepscope.records import dataclass

_PLANE = "/stepscope:capture"


@dataclass(frozen=True)
class ProfilingCost:
    """Steps before a capture and inside it.

    Attributes:
        ms_before, ms_inside: median duration.
        steps_before, steps_inside: how many there were.
        spread_before, spread_inside: quartiles in ms; None in a profile that does not tell them.
    """

    ms_before: float
    ms_inside: float
    steps_before: int
    steps_inside: int
    spread_before: tuple[float, float] | None = None
    spread_inside: tuple[float, float] | None = None

    @property
    def percent(self) -> float:
        """How much longer the steps inside were; negative if they were shorter."""
        return round(100 * (self.ms_inside / self.ms_before - 1), 2)

    @property
    def is_clear(self) -> bool:
        """False if the steps differ so much among themselves that the difference tells nothing: either median lies
        within the quartiles of the others."""
        pairs = ((self.ms_inside, self.spread_before), (self.ms_before, self.spread_inside))
        return not any(spread and spread[0] <= median <= spread[1] for median, spread in pairs)

    def sentence(self) -> str:
        """What was measured, in words."""
        than = f"than the {self.steps_before} before it (median {self.ms_before:.3g} ms)"
        if not self.is_clear:
            than += ", which is less than they differ among themselves"
        if self.percent >= 0:
            return f"steps inside the capture were {self.percent:.1f} % longer {than}"
        return f"steps inside the capture were {-self.percent:.1f} % shorter {than}"


def profiling_cost(trace: HostTrace) -> ProfilingCost | None:
    """What the profile of one host tells; None if it was not measured."""
    row = trace.strings.find(_PLANE)
    plane = next((at for at, name in enumerate(trace.planes.name.tolist()) if name == row), None)
    if plane is None or row <= 0:
        return None
    told = trace.stats_of_plane(plane)
    before, inside = told.get("step_ms_before"), told.get("step_ms_inside")
    if not isinstance(before, float) or not isinstance(inside, float) or not (0 < before < inf and 0 < inside < inf):
        return None
    counts = _count(told.get("steps_before")), _count(told.get("steps_inside"))
    return ProfilingCost(before, inside, *counts, _spread(told, "before"), _spread(told, "inside"))


def _spread(told: Mapping[str, object], name: str) -> tuple[float, float] | None:
    low, high = told.get(f"step_ms_{name}_low"), told.get(f"step_ms_{name}_high")
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def dearest(costs: Sequence[ProfilingCost | None]) -> ProfilingCost | None:
    """The cost on the host where it was highest; None if no host measured it."""
    known = [cost for cost in costs if cost is not None]
    return max(known, key=lambda cost: cost.percent, default=None)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
