"""The tool `advice`: what to change first, with the evidence, the predicted step time, and where to look.

It gives the overview's advice with details from other tools: the slowest stage of a tf.data pipeline, idle tensor
cores, nearly full memory.  [Advice](../advice.md) explains each class and how gains are predicted;
[how often it is right](../advice-truth.md) is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from stepscope.analysis.advice.context import Context, Read
from stepscope.analysis.advice.items import Advice, describe_speedup
from stepscope.analysis.advice.ranking import advise, find_record_first
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.overview.findings import RECORD_AGAIN
from stepscope.analysis.overview.session_figures import HostPart
from stepscope.analysis.steps.verdict import Verdict
from stepscope.records import dataclass
from stepscope.report import Cell, Comparable, Field, Prose, Report, Role, Rows, Section

_DOUBTFUL = 0.6  # below it, a rule is not sure of the class

FIELDS: tuple[Field, ...] = (
    Field("rank", "number", "rank; 1 is the change to make first", "int", role=Role.ORDINAL),
    Field("class", "text", "the class of the bottleneck", "str", role=Role.LABEL),
    Field("title", "text", "what to do, in a few words", "str", role=Role.LABEL),
    Field("evidence", "text", "the measured facts behind it", "str", role=Role.TEXT),
    Field(
        "culprit",
        "text",
        "what a person can edit: function, op or kernel, with file and line if recorded",
        "str",
        Role.NAME,
    ),
    Field("step_time_ms", "ms", "the median step, from its start to the start of the next: that of the account"),
    Field("predicted_step_time_ms", "ms", "the same step without the cause, or the most that may be left of it"),
    Field("predicted_speedup", "ratio", "`step_time_ms` over `predicted_step_time_ms`; empty if unknown"),
    Field(
        "predicted_speedup_least",
        "ratio",
        "lower end of the likely range, which held the real speed-up in four of five programs with a known gain",
    ),
    Field("predicted_speedup_most", "ratio", "upper end of the likely range; empty if the step may have nothing left"),
    Field("confidence", "0 to 1", "how sure the rule is of the class"),
    Field("actions", "text", "what to do, most effective first, separated by semicolons", "str", role=Role.TEXT),
    Field("reasoning", "text", "how the prediction is computed", "str", role=Role.TEXT),
    Field("tool", "text", "the tool that shows the details", "str", role=Role.TYPE),
    Field("docs", "text", "the documentation's section on the class", "str", role=Role.TEXT),
)


@dataclass(frozen=True, kw_only=True)
class AdviceReport(Report):
    """Advice, largest predicted gain first.

    Attributes:
        rows: the items as in JSON, each with its rank.
        items: the same as objects.
        verdict: the overview's verdict.
        context: the input of the rules.
    """

    TOOL: ClassVar[str] = "advice"
    SCHEMA_VERSION: ClassVar[int] = 2

    rows: tuple[dict[str, Any], ...]
    items: tuple[Advice, ...]
    verdict: Verdict
    context: Context

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        first = find_record_first(self.context, self.items)
        said = {"verdict_text": self.verdict.sentence, "verdict_cause": self.verdict.cause}
        return {**said, "record_first": first or None, "advice": list(self.rows)}

    def sections(self) -> Sequence[Section]:
        """The verdict, then each item in words; `main_table` has the same items as rows."""
        first = find_record_first(self.context, self.items)
        again = [Prose("record_first", RECORD_AGAIN, (first,))] if first else []
        items = [
            Prose(f"advice-{row['id']}", f"{row['rank']}. {row['title']} ({row['class']})", tuple(_item_lines(row)))
            for row in self.rows
        ]
        return [Prose("verdict", "Verdict", (self.verdict.sentence,)), *again, *items]

    def main_table(self) -> Rows:
        """One row per item."""
        return Rows(
            "advice",
            "Advice",
            FIELDS,
            tuple(_item_cells(row) for row in self.rows),
            empty="no steps, so nothing to advise",
        )


def _predicted_savings(report: AdviceReport) -> Iterator[dict[str, Cell]]:
    """The predicted saving per step of each piece of advice; no row without a prediction."""
    for row in report.rows:
        now, then = row["step_time_ms"], row["predicted_step_time_ms"]
        if now is not None and then is not None:
            yield {"class": row["class"], "saved_ms": now - then}


def _advice_on_one_side(before: AdviceReport, after: AdviceReport) -> tuple[str, ...]:
    """Which classes of advice only one side has, and which both have, with or without a prediction."""
    one, other = (
        list(dict.fromkeys(row["class"] for row in side.rows if row["class"] != "none")) for side in (before, after)
    )
    found = {
        "advised only before": [name for name in one if name not in other],
        "advised only after": [name for name in other if name not in one],
        "advised on both sides": [name for name in other if name in one],
    }
    return tuple(
        f"{where}: {', '.join(name.replace('_', ' ') for name in names)}" for where, names in found.items() if names
    )


COMPARABLES = (
    Comparable(
        id="advice",
        title="Predicted gains",
        keys=(Field("class", "text", "the class of the advice", "str", role=Role.TERM),),
        measure=Field("saved_ms", "ms", "predicted saving per step; the largest in its class"),
        rows=_predicted_savings,
        joined="largest",
        sentences=_advice_on_one_side,
        empty="advice predicts no gain on either side",
    ),
)


def merge(partials: Sequence[HostPart]) -> AdviceReport:
    """Advice from the overview's facts alone."""
    found = overview.merge(partials)
    return AdviceReport(
        hosts=found.hosts,
        warnings=found.warnings,
        partial=found.partial,
        rows=_rank_items(found.advice),
        items=found.advice,
        verdict=found.verdict,
        context=found.context,
    )


def finish(report: AdviceReport, read: Read) -> AdviceReport:
    """The report with details from other tools; `read` returns a tool's report."""
    context = report.context.with_doubts(read)
    advised = advise(replace(context, read=read))
    warnings = tuple(dict.fromkeys((*report.warnings, *advised.warnings)))
    verdict, items = advised.verdict, advised.items
    return replace(report, rows=_rank_items(items), items=items, verdict=verdict, warnings=warnings, context=context)


def _rank_items(items: Sequence[Advice]) -> tuple[dict[str, Any], ...]:
    return tuple({"rank": rank, **advice.to_dict()} for rank, advice in enumerate(items, 1))


def _item_cells(row: Mapping[str, Any]) -> dict[str, Cell]:
    cells = {field.name: row[field.name] for field in FIELDS}
    return cells | {"actions": "; ".join(row["actions"]), "culprit": _culprit_text(row["culprit"])}


def _culprit_text(culprit: Mapping[str, Any] | None) -> str | None:
    if culprit is None:
        return None
    return f"{culprit['file']}:{culprit['line']} {culprit['name']}" if culprit["file"] else str(culprit["name"])


def _item_lines(row: Mapping[str, Any]) -> list[str]:
    lines = [f"beside     {row['beside']}"] if row["beside"] else []
    lines.append(f"because    {row['evidence']}")
    if row["measured"]:
        lines.append(f"measured   {row['measured']['sentence']}")
    if row["predicted_speedup"]:
        lines.append(f"predicted  {_speedup_text(row)}: {row['reasoning']}")
    lines += [f"do         {action}" for action in row["actions"]]
    if row["prove"] and not row["measured"]:
        lines.append(f"prove      {row['prove']}")
    lines += [
        f"see        {place['name'] or 'the longest interval'} on {place['host']}, "
        f"{place['start_ms']:.3f} to {place['end_ms']:.3f} ms"
        for place in row["intervals"][:1]
    ]
    return [*lines, f"details    stepscope {row['tool']}; confidence {100 * row['confidence']:.0f} %{_doubt_text(row)}"]


def _speedup_text(row: Mapping[str, Any]) -> str:
    keys = ("predicted_speedup", "predicted_speedup_least", "predicted_speedup_most")
    gain, between = describe_speedup(*(row[key] for key in keys))
    return f"{gain} (likely {between})" if between else gain


def _doubt_text(row: Mapping[str, Any]) -> str:
    return ", so check the evidence before you change anything" if row["confidence"] < _DOUBTFUL else ""
