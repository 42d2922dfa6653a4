"""What profiling cost: steps inside the capture compared with those before it.

A capture stores both medians in its profile, since the trace does not hold the steps before it. Where too few steps
were seen before it, the number of recorded events tells the cost, by what one was measured to take.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np

from stepscope.analysis.steps.own_tracers import usage_of_thread
from stepscope.analysis.steps.stack_samples import rows_on
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.environment import capture_facts
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_thread_usage

# What recording an event adds to its thread, measured with `bench.bottlenecks` on hosts without a device; see
# docs/advice.md. With shapes and memory for PyTorch, with metadata for TensorFlow, else at least this.
EVENT_PS = {"pytorch": 750_000, "tensorflow": 900_000}
LEAST_EVENT_PS = 250_000
PYTHON_CALL_PS = 450_000
_DISTURBED = 1.5  # times the step before the capture: more than the 1.3 that recording cost on steps of 1 ms
_FEW = 8  # the first steps may have found their batches ready: loaders of four workers hold two for each
# An event disturbs its program by more than the time in which it is recorded: of three programs whose Python calls were
# recorded the clock said 2.0, 2.3 and 4.5 times what the number of events does.
_BY_THE_CLOCK = 5
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
        ms_queued: how long the loop's thread waited for a processor in a step inside, on average.
        ms_recording: what recording added to a step inside by the number of events, as one was measured.
    """

    ms_before: float
    ms_inside: float
    steps_before: int
    steps_inside: int
    spread_before: tuple[float, float] | None = None
    spread_inside: tuple[float, float] | None = None
    recorded: str = ""
    is_counted: bool = False
    ms_queued: float = 0.0
    ms_recording: float = 0.0

    @property
    def percent(self) -> float:
        """By how many percent the steps inside were longer; negative if they were shorter."""
        return round(100 * (self.ms_inside / self.ms_before - 1), 2)

    @property
    def is_clear(self) -> bool:
        """Whether the difference exceeds the normal variation of the steps.

        False if either median lies within the quartiles of the other steps, if waiting for a processor may explain half
        of the difference, or if a large one rests on the first few steps of a program and the number of events does not
        explain half of it.
        """
        longer = self.ms_inside - self.ms_before
        rests_on_few = 0 < self.steps_before < _FEW and self._is_large and self.ms_recording < longer / 2
        if (longer > 0 and self.ms_queued >= longer / 2) or rests_on_few:
            return False
        pairs = ((self.ms_inside, self.spread_before), (self.ms_before, self.spread_inside))
        return not any(spread and spread[0] <= median <= spread[1] for median, spread in pairs)

    @property
    def disturbs(self) -> bool:
        """Whether the steps inside are so much longer, than more than a few before, that their shares are not those of
        the program."""
        return self.steps_before >= _FEW and self.is_clear and self._is_large

    @property
    def _is_large(self) -> bool:
        return self.ms_inside >= _DISTURBED * self.ms_before

    @property
    def limits(self) -> tuple[float, float] | None:
        """The least and the most that it is in percent: by the quartiles of the steps, or by the number of events; None
        where the steps differ so much that nothing tells, or were shorter inside, which profiling does not do."""
        if not self.steps_before:
            return max(self.percent, 0.0), max(_BY_THE_CLOCK * self.percent, 0.0)
        before = self.spread_before or (self.ms_before, self.ms_before)
        inside = self.spread_inside or (self.ms_inside, self.ms_inside)
        least, most = (100 * (ms / than - 1) for ms, than in zip(inside, before[::-1], strict=True))
        tells = most >= 0 and ((self.is_clear and self.percent >= 0) or most < 100 * (_DISTURBED - 1))
        return (max(least, 0.0), most) if tells else None

    def short_text(self) -> str:
        """A few words behind the step time."""
        if self.limits is None:
            return "cost of profiling not measured"
        least, most = (f"{percent:.0f}" for percent in self.limits)
        if self.is_clear and self.steps_before and self.spread_before and self.percent >= 0:
            return f"profiling cost {self.percent:.0f} % ({least} to {most})"
        return f"profiling cost {least} to {most} %" if least != most else f"profiling cost {least} %"

    def sentence(self) -> str:
        """The result in words."""
        if not self.steps_before:
            what = (self.recorded or "events") if self.is_counted else "Python calls"
            least, most = self.limits or (self.percent, self.percent)
            return f"recording {what} made the program {least:.1f} to {most:.1f} % slower, by their number"
        with_ = f" with {self.recorded}" if self.recorded else ""
        than = f"than the {self.steps_before} before it (median {self.ms_before:.3g} ms)"
        if not self.is_clear:
            variation = "waiting for a core or for batches may be the cause" if self._is_large else ""
            than += f", {variation or 'which is within their normal variation'}"
        change = f"{abs(self.percent):.1f} % {'longer' if self.percent >= 0 else 'shorter'}"
        return f"steps inside the capture{with_} were {change} {than}"


def profiling_cost(trace: HostTrace) -> ProfilingCost | None:
    """The cost of a capture by Stepscope, on one host; None for other profiles."""
    return trace.derived("profiling cost", _profiling_cost)


def _profiling_cost(trace: HostTrace) -> ProfilingCost | None:
    stats = capture_facts(trace)
    before, inside, words = (stats.get(name) for name in ("step_ms_before", "step_ms_inside", "recorded"))
    recorded = words if isinstance(words, str) else ""
    if not isinstance(before, float) or not isinstance(inside, float) or not (0 < before < inf and 0 < inside < inf):
        return _cost_by_number(trace, stats, recorded) if stats else None
    counts = _count(stats.get("steps_before")), _count(stats.get("steps_inside"))
    spreads = (_spread(stats, "before"), _spread(stats, "inside"))
    each_ms = _recording_ms(trace, stats)[0] / max(counts[1], 1)
    return ProfilingCost(
        before, inside, *counts, *spreads, recorded, ms_queued=_queued_ms(trace, counts[1]), ms_recording=each_ms
    )


def _queued_ms(trace: HostTrace, steps: int) -> float:
    """How long a step waited for a processor, on average: of the threads with known waits, the one that ran most."""
    lines = distinct(trace.events.line[rows_on(trace, holds_thread_usage)]).tolist()
    usages = [usage for line in lines if (usage := usage_of_thread(trace, line)) is not None]
    longest = max(usages, key=lambda usage: int(usage.ran_ps.sum()), default=None)
    return float(longest.queued_ps.sum()) / 1e9 / steps if longest is not None and steps else 0.0


def _cost_by_number(trace: HostTrace, stats: Mapping[str, object], recorded: str) -> ProfilingCost | None:
    """What recording added to the thread with most of it, of all that was recorded."""
    begin, end = trace.span_ps()
    (spent, counted), whole = _recording_ms(trace, stats), (end - begin) / 1e9
    left = max(whole - spent, (1 - _MOST) * whole)
    return ProfilingCost(left, whole, 0, 0, recorded=recorded, is_counted=counted) if whole > 0 else None


def _recording_ms(trace: HostTrace, stats: Mapping[str, object]) -> tuple[float, bool]:
    """What recording added to the thread with most of it, in ms, and whether that is by the number of events."""
    added = stats.get("python_calls_ms")
    measured_ps = 1e9 * added if isinstance(added, float) and 0 < added < inf else 0.0
    counted = trace.framework != "python" or not measured_ps
    kind, rows = trace.events.kind, np.flatnonzero(is_thread_event(trace))
    each = np.where(kind[rows] == EventKind.PYTHON_CALL, PYTHON_CALL_PS, EVENT_PS.get(trace.framework, LEAST_EVENT_PS))
    if measured_ps:
        each[kind[rows] == EventKind.PYTHON_CALL] = 0
    by_line = np.bincount(trace.events.line[rows], weights=each, minlength=1)
    return (measured_ps + float(by_line.max() if counted else 0.0)) / 1e9, counted


def missed_steps(trace: HostTrace) -> str | None:
    """What to do about a capture in which no step of the program ended, while steps ended before it, by its own count;
    None for others."""
    stats = capture_facts(trace)
    before, count = stats.get("step_ms_before"), _count(stats.get("steps_before"))
    if not isinstance(before, float) or not 0 < before < inf or stats.get("steps_inside") != 0:
        return None
    return (
        f"no step ended inside the capture, while the {count} steps before it took {before:.3g} ms each: the window was"
        " too short, no step ran in it, or its steps are not marked; record longer, in the loop"
    )


def _spread(stats: Mapping[str, object], name: str) -> tuple[float, float] | None:
    low, high = stats.get(f"step_ms_{name}_low"), stats.get(f"step_ms_{name}_high")
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
