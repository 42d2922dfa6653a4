"""The tool `steps`: every step of every host with its duration and breakdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stepscope.analysis.steps.breakdown import CATEGORIES, LABELS, MEANING
from stepscope.analysis.steps.session_steps import (
    Aligned,
    StepRow,
    StepsOfHost,
    align,
    finding_of,
    merge_sentences,
    steps_of_host,
)
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Report, Role, Rows, Section, round_ms
from stepscope.vocabulary.serving import Batch

Partial = StepsOfHost

FIELDS: tuple[Field, ...] = (
    Field(
        "step",
        "number",
        "the step's number: the program's own if it gives one, else counted from 0",
        "int",
        role=Role.STEP,
    ),
    Field("name", "text", "the name of the step mark with its number", "str", role=Role.NAME),
    Field("host", "text", "the host that recorded this row", "str", role=Role.HOST),
    Field("start_ms", "ms", "start of the step, from the start of the host's session", role=Role.INSTANT),
    Field("duration_ms", "ms", "duration of the step; the categories that follow add up to it"),
    *(
        Field(name, "ms", f"time of the step in which {MEANING[name]}", label=LABELS.get(name, ""))
        for name in CATEGORIES
    ),
    Field(
        "complete",
        "",
        "no if the edge of the capture cuts the step; such steps are left out of statistics",
        "bool",
        role=Role.COMPLETE,
    ),
    Field("requests", "count", "requests in the batch of a model server, if the step's mark says it", "int"),
    Field("tokens", "count", "tokens that the batch computes, if the step's mark says it", "int"),
    Field("prefill", "count", "requests of the batch whose prompt is read", "int"),
    Field("decode", "count", "requests of the batch that are continued by a token", "int"),
)


@dataclass(frozen=True, kw_only=True)
class StepsReport(Report):
    """Every step of every host.

    Attributes:
        steps_source: "markers", "inferred" or "none"; the least certain of several hosts.
        confidence: of inferred steps, 0 to 1; the lowest of several hosts.
        rows: one per step and host, in order of time; keys as in FIELDS.
    """

    TOOL: ClassVar[str] = "steps"

    steps_source: str
    confidence: float | None
    rows: tuple[dict[str, Cell], ...]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {"steps_source": self.steps_source, "confidence": self.confidence, "rows": list(self.rows)}

    def sections(self) -> Sequence[Section]:
        """One table."""
        return [Rows("rows", "Steps", FIELDS, self.rows, empty="no steps: the profile holds no events that take time")]


def partial(trace: HostTrace) -> StepsOfHost:
    """The steps of one host."""
    return steps_of_host(trace)


def merge(partials: Sequence[StepsOfHost]) -> StepsReport:
    """The steps of all hosts, ordered by step, then host."""
    aligned = align(partials)
    found = finding_of(aligned.participants(partials) or partials)
    whole = [_table_row(host, row) for rows in aligned.steps for host, row in zip(aligned.hosts, rows, strict=True)]
    return StepsReport(
        hosts=tuple(part.host for part in partials),
        warnings=step_warnings(partials, aligned),
        partial=any(part.partial for part in partials),
        steps_source=found.source,
        confidence=found.confidence,
        rows=tuple(whole),
    )


def step_warnings(partials: Sequence[StepsOfHost], aligned: Aligned) -> tuple[str, ...]:
    """What makes steps less reliable: damage, missing marks, and steps that not all hosts have.

    Each sentence appears once, not once per host.
    """
    taking = aligned.participants(partials) or partials
    found = [problem for part in partials for problem in part.problems]
    found += merge_sentences(
        {part.host: _describe_source(part) for part in taking if part.source != "markers"}, len(taking)
    )
    cut = sum(not all(row.complete for row in rows) for rows in aligned.steps)
    if cut:
        steps = "1 step is" if cut == 1 else f"{cut} steps are"
        all_cut = cut == len(aligned.steps)
        lost = "but kept in the statistics: no step is complete" if all_cut else "and left out of the statistics"
        found.append(f"{steps} cut by the edge of the capture {lost}")
    return tuple(dict.fromkeys([*found, *aligned.warnings]))


def _describe_source(part: StepsOfHost) -> str:
    return part.how + (f" (confidence {part.confidence:.2f})" if part.confidence is not None else "")


def _table_row(host: str, row: StepRow) -> dict[str, Cell]:
    parts: dict[str, Cell] = {
        category: round_ms(value) for category, value in zip(CATEGORIES, row.parts_ps, strict=True)
    }
    batch = row.batch or Batch("")
    return {
        "step": row.number,
        "name": row.name,
        "host": host,
        "start_ms": round_ms(row.start_ps),
        "duration_ms": round_ms(row.duration_ps),
        **parts,
        "complete": row.complete,
        "requests": batch.requests,
        "tokens": batch.tokens,
        "prefill": batch.prefill,
        "decode": batch.decode,
    }
