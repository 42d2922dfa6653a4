"""A piece of advice, and the places that show its evidence."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stepscope.records import dataclass

CLASSES: tuple[str, ...] = (
    "input_preprocessing",
    "input_file_read",
    "input_no_prefetch",
    "input_python",
    "input_transfer",
    "small_batch",
    "recompilation",
    "eager_dispatch",
    "host_sync",
    "python_overhead",
    "checkpoint_stall",
    "redundant_compute",
    "memory_churn",
    "straggler",
    "communication_bound",
    "low_precision",
    "none",
)
_DOCS = "advice.md"
# How far off predictions are, as shares of what stays and of what goes: so far off or less in three of four programs
# with a known gain (docs/advice-truth.md).  What goes counts too, since an error in it is one in what stays.
_OFF_OF_REST = 0.15
_OFF_OF_GAIN = 0.05
_LEAST_REST = 0.25  # of what stays by the prediction: less is not expected, however much goes


@dataclass(frozen=True)
class Row:
    """A row of a tool that the evidence comes from.

    Attributes:
        tool: the tool's name.
        key: what the row is found by: the name of an op, of a category, of a host.
        value_ms: its time per step.
    """

    tool: str
    key: str
    value_ms: float


@dataclass(frozen=True)
class Interval:
    """A place in the trace that shows the evidence; times from the start of the host's session."""

    host: str
    name: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to change.

    Attributes:
        id: stable name of the advice.
        kind: one of CLASSES (`class` in JSON).
        title: what to do, in a few words.
        evidence: the measured facts behind it.
        predicted_speedup: step time now over the step time if the cause vanished; None if it cannot be told.
        actions: what to do, most effective first.
        tool: the tool that shows the details.
        confidence: 0 to 1, how sure the rule is of the class.
        step_time_ms: from one step to the next, now; without what the recording itself cost, if that can be told.
        predicted_step_time_ms: the same if the cause vanished.
        reasoning: how the prediction comes about.
        rows, intervals: where the evidence is found.
    """

    id: str
    kind: str
    title: str
    evidence: str
    predicted_speedup: float | None
    actions: tuple[str, ...]
    tool: str
    confidence: float = 0.8
    step_time_ms: float | None = None
    predicted_step_time_ms: float | None = None
    reasoning: str = ""
    rows: tuple[Row, ...] = ()
    intervals: tuple[Interval, ...] = ()

    @property
    def gain_percent(self) -> float | None:
        """How much of the time from step to step would go; None if it cannot be told."""
        if not self.step_time_ms or self.predicted_step_time_ms is None:
            return None
        return 100.0 * (self.step_time_ms - self.predicted_step_time_ms) / self.step_time_ms

    @property
    def speedup_range(self) -> tuple[float, float] | None:
        """What to expect, from the least to the most; in three of four programs the real speed-up lay in it.  None if
        the gain cannot be told."""
        now, then = self.step_time_ms, self.predicted_step_time_ms
        if not now or not then or self.predicted_speedup is None:
            return None
        off = _OFF_OF_REST * then + _OFF_OF_GAIN * max(now - then, 0.0)
        least, most = now / (then + off), now / max(then - off, _LEAST_REST * then)
        return max(round(least, 2), 1.0), round(most, 2)

    @property
    def docs(self) -> str:
        """The section of the documentation that explains the class."""
        return f"{_DOCS}#{self.kind}"

    def to_dict(self) -> dict[str, Any]:
        """The item as in JSON."""
        item = asdict(self)
        item["class"] = item.pop("kind")
        least, most = self.speedup_range or (None, None)
        return item | {
            "predicted_speedup_least": least,
            "predicted_speedup_most": most,
            "docs": self.docs,
            "actions": list(self.actions),
            "rows": list(item["rows"]),
            "intervals": list(item["intervals"]),
        }
