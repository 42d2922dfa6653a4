"""What profiling cost: the steps inside a capture against those before it, as Stepscope measured them.

A capture keeps both medians in its profile, since the steps before it are in no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.model import HostTrace

_PLANE = "/stepscope:capture"


@dataclass(frozen=True)
class ProfilingCost:
    """Steps before a capture and inside it.

    Attributes:
        ms_before, ms_inside: median duration.
        steps_before, steps_inside: how many there were.
    """

    ms_before: float
    ms_inside: float
    steps_before: int
    steps_inside: int

    @property
    def percent(self) -> float:
        """How much longer the steps inside were; negative if they were shorter."""
        return round(100 * (self.ms_inside / self.ms_before - 1), 2)

    def sentence(self) -> str:
        """What was measured, in words."""
        than = f"than the {self.steps_before} before it (median {self.ms_before:.3g} ms)"
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
    if not isinstance(before, float) or not isinstance(inside, float) or before <= 0:
        return None
    return ProfilingCost(before, inside, _count(told.get("steps_before")), _count(told.get("steps_inside")))


def dearest(costs: Sequence[ProfilingCost | None]) -> ProfilingCost | None:
    """The cost on the host where it was highest; None if no host measured it."""
    known = [cost for cost in costs if cost is not None]
    return max(known, key=lambda cost: cost.percent, default=None)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
