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
        ms_before, ms_inside: median duration; of all that was recorded where no step was counted, without and with what
            recording Python calls added.
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
        if not self.steps_before:
            return f"recording Python calls made the program {self.percent:.1f} % slower, by their number"
        than = f"than the {self.steps_before} before it (median {self.ms_before:.3g} ms)"
        if not self.is_clear:
            than += ", which is within their normal variation"
        if self.percent >= 0:
            return f"steps inside the capture were {self.percent:.1f} % longer {than}"
        return f"steps inside the capture were {-self.percent:.1f} % shorter {than}"


def profiling_cost(trace: HostTrace) -> ProfilingCost | None:
    """The cost stored in the profile of one host; None if it was not measured."""
    stats = _capture_stats(trace)
    before, inside, added = (stats.get(name) for name in ("step_ms_before", "step_ms_inside", "python_calls_ms"))
    if before is None and isinstance(added, float) and trace.framework == "python":
        begin, end = trace.span_ps()
        whole = (end - begin) / 1e9
        return ProfilingCost(whole - added, whole, 0, 0) if 0 < added < whole else None
    if not isinstance(before, float) or not isinstance(inside, float) or not (0 < before < inf and 0 < inside < inf):
        return None
    counts = _count(stats.get("steps_before")), _count(stats.get("steps_inside"))
    return ProfilingCost(before, inside, *counts, _spread(stats, "before"), _spread(stats, "inside"))


def _capture_stats(trace: HostTrace) -> Mapping[str, object]:
    """What a capture by Stepscope wrote about itself; empty for other profiles."""
    row = trace.strings.find(_PLANE)
    plane = next((at for at, name in enumerate(trace.planes.name.tolist()) if name == row), None)
    return {} if plane is None or row <= 0 else trace.stats_of_plane(plane)


@dataclass(frozen=True)
class MissedSteps:
    """A capture in which no step of the program ended, while steps ended before it.

    Attributes:
        steps_before: how many did, of the last ones before the capture.
        ms_before: their median duration.
    """

    steps_before: int
    ms_before: float

    def sentence(self) -> str:
        """What happened and what to do."""
        return (
            f"no step ended inside the capture, while the {self.steps_before} steps before it took"
            f" {self.ms_before:.3g} ms each: the window was too short, no step ran in it, or its steps are not marked;"
            " record longer, in the loop"
        )


def missed_steps(trace: HostTrace) -> MissedSteps | None:
    """The steps that a capture missed, by its own count; None if it has some, or did not count."""
    stats = _capture_stats(trace)
    before, count = stats.get("step_ms_before"), _count(stats.get("steps_before"))
    missed = isinstance(before, float) and 0 < before < inf and stats.get("steps_inside") == 0
    return MissedSteps(count, float(before)) if missed and isinstance(before, float) else None


def _spread(stats: Mapping[str, object], name: str) -> tuple[float, float] | None:
    low, high = stats.get(f"step_ms_{name}_low"), stats.get(f"step_ms_{name}_high")
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def highest_cost(costs: Sequence[ProfilingCost | None]) -> ProfilingCost | None:
    """The highest cost of any host; None if no host measured it."""
    known = [cost for cost in costs if cost is not None]
    return max(known, key=lambda cost: cost.percent, default=None)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
