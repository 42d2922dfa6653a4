"""What a change would gain: the step time without a part, bounded by what then becomes critical."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.rule import Advice, Interval, Row

_MOST_RECORDING = 0.75  # of a part: what it would take without its recording is never taken to be less than the rest


@dataclass(frozen=True)
class Gain:
    """A predicted step time.

    Attributes:
        now_ms: the step time now, without what the recording of the removed part cost.
        then_ms: the step time after the change.
        reasoning: how `then_ms` comes about.
    """

    now_ms: float
    then_ms: float
    reasoning: str

    @property
    def speedup(self) -> float | None:
        """Now over then; None if nothing is left."""
        return round(self.now_ms / self.then_ms, 2) if self.then_ms > 0 else None

    def advice(
        self,
        *,
        rule: str,
        kind: str,
        title: str,
        evidence: str,
        actions: tuple[str, ...],
        tool: str,
        confidence: float,
        rows: tuple[Row, ...] = (),
        intervals: tuple[Interval, ...] = (),
    ) -> Advice:
        """Advice with this gain."""
        return Advice(
            id=rule, kind=kind, title=title, evidence=evidence, actions=actions, tool=tool, confidence=confidence,
            rows=rows, intervals=intervals, predicted_speedup=self.speedup, step_time_ms=round(self.now_ms, 3),
            predicted_step_time_ms=round(self.then_ms, 3), reasoning=self.reasoning,
        )  # fmt: skip


@dataclass(frozen=True)
class Bound:
    """What keeps a step from becoming shorter than `ms`."""

    ms: float
    why: str


def without(
    context: Context, removed_ms: float, what: str, bounds: Sequence[Bound] = (), recorded: bool = False
) -> Gain:
    """The step without a part of its critical path.

    Args:
        removed_ms: how long the part takes on the critical path of a step.
        what: the part, in words.
        bounds: what may become critical then; the computation of the step always is one.
        recorded: Python calls fill the part, so that their recording made it longer than it is without a profiler.
    """
    period = context.period_ms
    recording = min(context.recording_ms, _MOST_RECORDING * removed_ms) if recorded else 0.0
    left = max(period - removed_ms, 0.0)
    text = f"{period:.2f} ms a step, less {removed_ms:.2f} ms of {what}"
    if recording >= 0.05 * period:
        text += f" ({recording:.2f} ms of it is the cost of recording Python calls)"
    critical = max((Bound(left, ""), *bounds), key=lambda bound: bound.ms)
    then = min(critical.ms, period - recording)
    if critical.why:
        text += f"; then {critical.why} takes {critical.ms:.2f} ms"
    return Gain(period - recording, then, f"{text}: {then:.2f} ms")
