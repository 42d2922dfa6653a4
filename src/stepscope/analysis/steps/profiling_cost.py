"""What profiling cost: steps inside the capture compared with those before it.

A capture stores both medians in its profile, since the trace does not hold the steps before it. Where too few steps
were seen before it, the number of recorded events tells the cost, by what one was measured to take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from stepscope.analysis.trace.columns import is_thread_event
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass

_PLANE = "/stepscope:capture"
# What recording an event adds to its thread, measured with `bench.bottlenecks` on hosts without a device; see
# docs/advice.md.  With shapes and memory for PyTorch, with metadata for TensorFlow, else at least this.
_EVENT_PS = {"pytorch": 750_000, "tensorflow": 900_000}
_LEAST_EVENT_PS = 250_000
PYTHON_CALL_PS = 450_000
_MOST = 0.75  # of the time: at least the rest is the program's own


@dataclass(frozen=True)
class ProfilingCost:
    """Step durations before and inside a capture.

    Attributes:
        ms_before, ms_inside: median duration; of all that was recorded where no steps were compared, without and with
            what recording added.
        steps_before, steps_inside: number of steps.
        spread_before, spread_inside: quartiles in ms; None if the profile does not hold them.
        recorded: what was recorded, in words; empty if the profile does not say it.
        is_counted: it is known by the number of recorded events alone.
    """

    ms_before: float
    ms_inside: float
    steps_before: int
    steps_inside: int
    spread_before: tuple[float, float] | None = None
    spread_inside: tuple[float, float] | None = None
    recorded: str = ""
    is_counted: bool = False

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
            what = "events" if self.is_counted else "Python calls"
            by = f" ({self.recorded})" if self.recorded else ""
            return f"recording {what}{by} made the program {self.percent:.1f} % slower, by their number"
        with_ = f" with {self.recorded}" if self.recorded else ""
        than = f"than the {self.steps_before} before it (median {self.ms_before:.3g} ms)"
        if not self.is_clear:
            than += ", which is within their normal variation"
        if self.percent >= 0:
            return f"steps inside the capture{with_} were {self.percent:.1f} % longer {than}"
        return f"steps inside the capture{with_} were {-self.percent:.1f} % shorter {than}"


def profiling_cost(trace: HostTrace) -> ProfilingCost | None:
    """The cost of a capture by Stepscope, on one host; None for other profiles."""
    return trace.derived("profiling cost", _profiling_cost)


def event_cost_ps(framework: str) -> int:
    """What recording an event other than a Python call adds to its thread."""
    return _EVENT_PS.get(framework, _LEAST_EVENT_PS)


def _profiling_cost(trace: HostTrace) -> ProfilingCost | None:
    stats = _capture_stats(trace)
    before, inside, words = (stats.get(name) for name in ("step_ms_before", "step_ms_inside", "recorded"))
    recorded = words if isinstance(words, str) else ""
    if not isinstance(before, float) or not isinstance(inside, float) or not (0 < before < inf and 0 < inside < inf):
        return _cost_by_number(trace, stats, recorded) if stats else None
    counts = _count(stats.get("steps_before")), _count(stats.get("steps_inside"))
    return ProfilingCost(before, inside, *counts, _spread(stats, "before"), _spread(stats, "inside"), recorded)


def _cost_by_number(trace: HostTrace, stats: Mapping[str, object], recorded: str) -> ProfilingCost | None:
    """What recording added to the thread with most of it, of all that was recorded."""
    begin, end = trace.span_ps()
    added, counted = stats.get("python_calls_ms"), trace.framework != "python"
    measured_ps = 1e9 * added if isinstance(added, float) and 0 < added < inf else 0.0
    kind, rows = trace.events.kind, np.flatnonzero(is_thread_event(trace))
    each = np.where(kind[rows] == EventKind.PYTHON_CALL, PYTHON_CALL_PS, event_cost_ps(trace.framework))
    if measured_ps:
        each[kind[rows] == EventKind.PYTHON_CALL] = 0
    by_line = np.bincount(trace.events.line[rows], weights=each, minlength=1)
    whole, spent = (end - begin) / 1e9, (measured_ps + float(by_line.max() if counted else 0.0)) / 1e9
    if whole <= 0:
        return None
    return ProfilingCost(max(whole - spent, (1 - _MOST) * whole), whole, 0, 0, recorded=recorded, is_counted=counted)


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
