"""The tool `advice`: what to change first, with the evidence, the step time to expect, and where to look.

It says what the overview says, and asks other tools for details: the slowest stage of a tf.data pipeline, tensor cores
that stand idle, memory that is nearly full.  [Advice](../advice.md) explains each class and how a gain is predicted;
[how often it is right](../advice-truth.md) is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.advice.ranking import advise
from stepscope.analysis.advice.reading import Read
from stepscope.analysis.overview import overview_tool as overview
from stepscope.records import dataclass
from stepscope.report import Cell, Comparable, Field, Prose, Report, Role, Rows, Section

Partial = overview.Partial

_DOUBTFUL = 0.6  # below it a rule is not sure of the class

FIELDS: tuple[Field, ...] = (
    Field("rank", "number", "1 for what to change first", "int", role=Role.ORDINAL),
    Field("class", "text", "the class of the bottleneck", "str", role=Role.LABEL),
    Field("title", "text", "what to do, in a few words", "str", role=Role.LABEL),
    Field("evidence", "text", "the measured facts behind it", "str", role=Role.TEXT),
    Field(
        "step_time_ms", "ms", "from one step to the next, without what the recording itself cost where that is known"
    ),
    Field("predicted_step_time_ms", "ms", "the same if the cause vanished"),
    Field("predicted_speedup", "ratio", "the one over the other; unknown where it cannot be told"),
    Field(
        "predicted_speedup_least",
        "ratio",
        "the least to expect: the real one lay between the two in three of four programs with a known gain",
    ),
    Field("predicted_speedup_most", "ratio", "the most to expect"),
    Field("confidence", "0 to 1", "how sure the class is"),
    Field("actions", "text", "what to do, most effective first, separated by semicolons", "str", role=Role.TEXT),
    Field("reasoning", "text", "how the prediction comes about", "str", role=Role.TEXT),
    Field("tool", "text", "the tool that shows the details", "str", role=Role.TYPE),
    Field("docs", "text", "the section of the documentation on the class", "str", role=Role.TEXT),
)


@dataclass(frozen=True, kw_only=True)
class AdviceReport(Report):
    """Advice, largest predicted gain first.

    Attributes:
        rows: the items as in JSON, each with its rank.
        verdict: the overview's verdict in words.
        context: what the rules looked at.
    """

    TOOL: ClassVar[str] = "advice"

    rows: tuple[dict[str, Any], ...]
    verdict: str
    context: Context

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {"verdict_text": self.verdict, "advice": list(self.rows)}

    def sections(self) -> Sequence[Section]:
        """The verdict, then each item in words; `main_table` holds the same for other programs."""
        told = [Prose(f"advice-{row['id']}", _head(row), tuple(_lines(row))) for row in self.rows]
        return [Prose("verdict", "Verdict", (self.verdict,)), *told]

    def main_table(self) -> Rows:
        """One row an item."""
        return Rows(
            "advice", "Advice", FIELDS, tuple(_cells(row) for row in self.rows), empty="no steps, so nothing to advise"
        )


def _savings(report: AdviceReport) -> Iterator[dict[str, Cell]]:
    """How much time of a step each piece of advice predicts to save; one without a prediction has no row."""
    for row in report.rows:
        now, then = row["step_time_ms"], row["predicted_step_time_ms"]
        if now is not None and then is not None:
            yield {"class": row["class"], "saved_ms": now - then}


def _advice_on_one_side(before: AdviceReport, after: AdviceReport) -> tuple[str, ...]:
    """Which classes only one side is advised of, and which both are, with or without a prediction."""
    one, other = (
        list(dict.fromkeys(row["class"] for row in side.rows if row["class"] != "none")) for side in (before, after)
    )
    found = {
        "advised before only": [name for name in one if name not in other],
        "advised after only": [name for name in other if name not in one],
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
        measure=Field(
            "saved_ms", "ms", "how much shorter a step becomes, as the advice predicts; the largest of a class"
        ),
        rows=_savings,
        joined="largest",
        sentences=_advice_on_one_side,
        empty="on neither side does advice predict a gain",
    ),
)


def partial(trace: Any) -> Partial:
    """What one host contributes: the same as to the overview."""
    return overview.partial(trace)


def merge(partials: Sequence[Partial]) -> AdviceReport:
    """Advice from what the overview alone can tell."""
    found = overview.merge(partials)
    return AdviceReport(
        hosts=found.hosts,
        warnings=found.warnings,
        partial=found.partial,
        rows=_rows(found.advice),
        verdict=found.verdict.sentence,
        context=found.context,
    )


def finish(report: AdviceReport, read: Read) -> AdviceReport:
    """The report with what other tools add; `read` gives the report of one of them."""
    advised = advise(replace(report.context, read=read))
    warnings = tuple(dict.fromkeys((*report.warnings, *advised.warnings)))
    return replace(report, rows=_rows(advised.items), warnings=warnings)


def _rows(items: Sequence[Advice]) -> tuple[dict[str, Any], ...]:
    return tuple({"rank": rank, **advice.to_dict()} for rank, advice in enumerate(items, 1))


def _cells(row: Mapping[str, Any]) -> dict[str, Cell]:
    return {field.name: "; ".join(row["actions"]) if field.name == "actions" else row[field.name] for field in FIELDS}


def _head(row: Mapping[str, Any]) -> str:
    return f"{row['rank']}. {row['title']} ({row['class']})"


def _lines(row: Mapping[str, Any]) -> list[str]:
    lines = [f"because    {row['evidence']}"]
    if row["predicted_speedup"]:
        lines.append(f"predicted  {_how_fast(row)}: {row['reasoning']}")
    lines += [f"do         {action}" for action in row["actions"]]
    lines += [
        f"see        {place['name'] or 'the longest of it'} on {place['host']}, "
        f"{place['start_ms']:.3f} to {place['end_ms']:.3f} ms"
        for place in row["intervals"][:1]
    ]
    return [*lines, f"details    stepscope {row['tool']}; confidence {100 * row['confidence']:.0f} %{_doubt(row)}"]


def _how_fast(row: Mapping[str, Any]) -> str:
    least, most = row["predicted_speedup_least"], row["predicted_speedup_most"]
    between = f", {least:g} to {most:g} to be expected" if least is not None else ""
    return f"about {row['predicted_speedup']:g} times as fast{between}"


def _doubt(row: Mapping[str, Any]) -> str:
    return ", so look at the evidence before you change anything" if row["confidence"] < _DOUBTFUL else ""
