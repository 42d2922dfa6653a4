"""What if: the step time with a part removed from the step's critical path, or made faster.

A part is a class of advice (`input_python`), a category of the step breakdown (`kernel_launch`) or the name of an op.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.gain import Bound, predict_without
from stepscope.analysis.advice.items import CLASSES
from stepscope.analysis.advice.registry import rules
from stepscope.analysis.facts.loop_events import Activity
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.errors import UsageError
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Figures, Prose, Report, Role, Rows, Section, amount

if TYPE_CHECKING:
    from stepscope.analysis.waits.critical_path_tool import CriticalPathReport

FIELDS: tuple[Field, ...] = (
    Field("step_time_ms", "ms", "time from step to step, without recording cost where that is known"),
    Field("removed_ms", "ms", "time that the change removes"),
    Field("predicted_step_time_ms", "ms", "time from step to step after the change"),
    Field("predicted_speedup", "ratio", "step time now over step time after the change"),
)
_TABLE: tuple[Field, ...] = (
    Field("part", "text", "the part that is removed or made faster", "str", role=Role.TERM),
    Field("scale", "ratio", "share of the part that remains: 0 removes it", "float"),
    *FIELDS,
    Field("reasoning", "text", "how the prediction is computed", "str", role=Role.TEXT),
)


@dataclass(frozen=True, kw_only=True)
class WhatIfReport(Report):
    """The step time with a part removed or scaled.

    Attributes:
        part: what is removed: a class of advice, a category, or an op.
        scale: the share of it that remains, 0 or more.
        figures: keys as in FIELDS.
        reasoning: how the prediction is computed.
    """

    TOOL: ClassVar[str] = "whatif"

    part: str
    scale: float
    figures: dict[str, Cell]
    reasoning: str

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {"part": self.part, "scale": self.scale, **self.figures, "reasoning": self.reasoning}

    def sections(self) -> Sequence[Section]:
        """The figures and the reasoning."""
        change = f"without {self.part}" if self.scale == 0 else f"with {self.part} at {self.scale:g}x its time"
        return [
            Figures("figures", f"A step {change}", FIELDS, self.figures),
            Prose("reasoning", "Reasoning", (self.reasoning,)),
        ]

    def main_table(self) -> Rows:
        """One row."""
        row: dict[str, Cell] = {"part": self.part, "scale": self.scale, **self.figures, "reasoning": self.reasoning}
        return Rows("whatif", "What if", _TABLE, (row,))


def what_if(
    context: Context, remove: str, scale: float, hosts: tuple[str, ...] = (), warnings: tuple[str, ...] = ()
) -> WhatIfReport:
    """The step time with a part removed or scaled.

    Args:
        context: the facts of the run.  Its `read` must return op-stats to remove an op, and critical-path if a device
            took part.
        remove: a class of advice, a category of the breakdown, or an op's name.
        scale: share of the part's time that remains; 0 removes it, 0.5 halves it, 2 doubles it.

    Raises:
        UsageError: there are no steps, there is no such part, or the scale is negative or not a number.
    """
    if not scale >= 0:
        wrong = "negative" if scale < 0 else "not a number"
        raise UsageError(f"--scale {scale:g} is {wrong}", hint="0 removes the part, 0.5 halves it")
    if context.period_ms <= 0:
        raise UsageError("the profile holds no steps", hint="mark them; see `stepscope doctor`")
    now, gone, why = _find_part(context, remove, scale)
    then = max(now - gone, 0.0)
    text = why if scale == 0 else f"{why}; {scale:g}x of it remains"
    figures: dict[str, Cell] = {
        "step_time_ms": round(now, 3),
        "removed_ms": round(gone, 3),
        "predicted_step_time_ms": round(then, 3),
        "predicted_speedup": round(now / then, 2) if then > 0 else None,
    }
    return WhatIfReport(
        hosts=hosts, warnings=warnings, partial=False, part=remove, scale=scale, figures=figures, reasoning=text
    )


def _find_part(context: Context, remove: str, scale: float) -> tuple[float, float, str]:
    """The step time now, how much of it is removed, and the reason."""
    if remove in CLASSES:
        now, removed, why = _find_class(context, remove)
        return now, removed * (1 - scale), why
    category = remove.replace(" ", "_")  # as the summary writes it
    if category in CATEGORIES:
        share = context.shares.get(category, 0.0)
        time = share * context.step_ms / 100
        why = f"{remove} takes {time:.2f} ms per step in which no higher-priority category is active"
        return context.period_ms, time * (1 - scale), why
    return _find_op(context, remove, scale)


def _find_class(context: Context, remove: str) -> tuple[float, float, str]:
    found = [advice for rule in rules()[0] if (advice := rule.evaluate(context, 0.0)) and advice.kind == remove]
    known = [
        (advice.step_time_ms, advice.predicted_step_time_ms, advice.reasoning)
        for advice in found
        if advice.step_time_ms is not None and advice.predicted_step_time_ms is not None
    ]
    if not known:
        return context.period_ms, 0.0, f"no rule finds {remove} in this profile: there is nothing to remove"
    now, then, why = min(known, key=lambda each: each[1] or 0.0)
    return now or 0.0, (now or 0.0) - (then or 0.0), why


def _find_op(context: Context, remove: str, scale: float) -> tuple[float, float, str]:
    report = context.read("op-stats")
    rows = report.rows if report else ()
    found = [row for row in rows if row["name"] == remove] or [row for row in rows if row["type"] == remove]
    if not found:
        names = [str(row["name"]) for row in rows]
        close = [name for name in names if remove.lower() in name.lower()][:3]
        close = close or get_close_matches(remove, [*CATEGORIES, *CLASSES, *names], n=3)
        known = f"categories: {', '.join(CATEGORIES)}; `stepscope advice` lists classes, `stepscope op-stats` ops"
        hint = f"similar names: {', '.join(close)}" if close else known
        raise UsageError(f"{remove!r} is not a class of advice, a category or an op", hint=hint)
    where = "device" if any(row["where"] == "device" for row in found) else "host"
    share = _self_time_share(rows, found, where)
    path = context.read("critical-path") if context.has_device else None
    time, how = _critical_path_ms(context, path, remove, share, where)
    text = f"{remove} takes {time:.2f} ms per step on the {where}'s critical path{how}"
    if scale > 1:
        return context.period_ms, time * (1 - scale), text
    gain = predict_without(context, time * (1 - scale), remove, _remaining_bounds(context, share * (1 - scale), where))
    then = gain.now_ms if gain.then_ms is None else gain.then_ms
    return gain.now_ms, gain.now_ms - then, f"{text}; {gain.reasoning}"


def _self_time_share(rows: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]], where: str) -> float:
    """The ops' share of all self time; a share, because ops that overlap add up to more than the elapsed time."""
    total = sum(row["total_self_us"] or 0.0 for row in rows if row["where"] == where)
    own = sum(row["total_self_us"] or 0.0 for row in found if row["where"] == where)
    return own / total if total else 0.0


def _critical_path_ms(
    context: Context, path: CriticalPathReport | None, remove: str, share: float, where: str
) -> tuple[float, str]:
    """Time per step in which the step waits for the ops.

    Without a device, the step waits for all computation.  With one, critical-path gives the time of events with that
    name, or else of all computation there.
    """
    if not context.has_device:
        return context.compute_ms * share, ""
    kind = f"{where}_compute"
    rows, parts = (path.rows, path.parts) if path else ((), ())
    named = sum(amount(row["ms"]) for row in rows if row["name"] == remove and row["part"] == kind)
    if named:
        return named, ""
    on_path = sum(amount(part["ms"]) for part in parts if part["part"] == kind)
    return on_path * share, f", its share of the {on_path:.2f} ms of computation on that path"


def _remaining_bounds(context: Context, share: float, where: str) -> list[Bound]:
    """What remains and may become critical: the other work there, and that of the other side."""
    rest = Bound(context.compute_ms * (1 - share if where == "device" or not context.has_device else 1), "the rest")
    if where == "host":
        return [rest]
    loop = context.loop
    own = context.period_ms - context.part_ms(Activity.WAIT, Activity.SYNC, Activity.PYTHON) if loop else 0.0
    return [rest, Bound(own, "the host")]
