"""The tool `steps`: every step of every host, and what it waited for.

A step lasts from its start to the start of the next one. The causes are those of the account that the overview gives of
the median step, for every step. The step-time breakdown of the TensorFlow Profiler guide and XProf is a separate table;
nothing else uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stepscope.analysis.account.account_text import CAUSE_FIELDS, cause_cells
from stepscope.analysis.account.every_step import accounted_steps
from stepscope.analysis.steps import breakdown
from stepscope.analysis.steps.host_steps import Loop
from stepscope.analysis.steps.session_steps import (
    StepRow,
    StepsOfHost,
    align,
    batches_a_step,
    finding_of,
    step_warnings,
)
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Report, Role, Rows, Section, round_ms
from stepscope.vocabulary.serving import Batch

DURATION = Field("duration_ms", "ms", "from its start to the start of the next step; what follows adds up to it")
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
    DURATION,
    *CAUSE_FIELDS,
    Field("complete", "", "no if the edge of the capture cuts the step", "bool", role=Role.COMPLETE),
    Field("usual", "", "yes for steps that statistics count: complete ones without the warm-up", "bool"),
    Field("requests", "count", "requests in the batch of a model server, if the step's mark says it", "int"),
    Field("tokens", "count", "tokens that the batch computes, if the step's mark says it", "int"),
    Field("prefill", "count", "requests of the batch whose prompt is read", "int"),
    Field("decode", "count", "requests of the batch that are continued by a token", "int"),
)
GUIDE_FIELDS: tuple[Field, ...] = (
    *FIELDS[:3],
    DURATION,
    *(
        Field(name, "ms", f"time of the step in which {breakdown.MEANING[name]}", label=breakdown.LABELS.get(name, ""))
        for name in breakdown.CATEGORIES
    ),
)


LOOP_FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host that recorded it", "str", role=Role.HOST),
    Field("loop", "text", "what its marks are called, without their numbers", "str", role=Role.NAME),
    Field("thread", "text", "the thread of the marks", "str", role=Role.LABEL),
    Field("count", "count", "how many marks there are", "int"),
    Field("median_ms", "ms", "how long a mark lasts, the median"),
    Field("min_ms", "ms", "the shortest mark"),
    Field("max_ms", "ms", "the longest mark"),
    Field("total_ms", "ms", "all marks together"),
)


@dataclass(frozen=True, kw_only=True)
class StepsReport(Report):
    """Every step of every host.

    Attributes:
        steps_source: "markers", "inferred" or "none"; the least certain of several hosts.
        confidence: of inferred steps, 0 to 1; the lowest of several hosts.
        rows: one per step and host, in order of time; keys as in FIELDS and GUIDE_FIELDS.
        loops: loops that are marked as well and are not these steps, such as an evaluation; keys as in LOOP_FIELDS.
        batches_a_step: how many batches a step is; 1 where no regular number was recorded.
    """

    TOOL: ClassVar[str] = "steps"
    SCHEMA_VERSION: ClassVar[int] = 2

    steps_source: str
    confidence: float | None
    rows: tuple[dict[str, Cell], ...]
    loops: tuple[dict[str, Cell], ...] = ()
    batches_a_step: int = 1

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "steps_source": self.steps_source,
            "confidence": self.confidence,
            "rows": list(self.rows),
            "loops": list(self.loops),
            "batches_a_step": self.batches_a_step,
        }

    def sections(self) -> Sequence[Section]:
        """The steps by cause; and as the guide defines their parts."""
        empty = "no steps: the profile holds no events that take time"
        return [
            Rows("rows", "What each step waits for", FIELDS, self.rows, empty),
            Rows(
                "guide",
                "Steps by TensorFlow's profiler guide: a part counts waited for or not",
                GUIDE_FIELDS,
                self.rows,
                empty,
            ),
            Rows("loops", "Other loops", LOOP_FIELDS, self.loops, "no other loop is marked"),
        ]


def partial(trace: HostTrace) -> StepsOfHost:
    """The steps of one host."""
    return accounted_steps(trace)


def merge(partials: Sequence[StepsOfHost]) -> StepsReport:
    """The steps of all hosts, ordered by step, then host."""
    aligned = align(partials)
    found = finding_of(aligned.participants(partials) or partials)
    whole = [row for rows in aligned.steps for row in rows]
    hosts = aligned.hosts * len(aligned.steps)
    causes, parts = (
        cause_cells([row.causes_ps for row in whole]),
        breakdown.category_cells([row.parts_ps for row in whole]),
    )
    return StepsReport(
        hosts=tuple(part.host for part in partials),
        warnings=step_warnings(partials, aligned),
        partial=any(part.partial for part in partials),
        steps_source=found.source,
        confidence=found.confidence,
        rows=tuple(map(_table_row, hosts, whole, causes, parts)),
        batches_a_step=batches_a_step(aligned.participants(partials) or partials),
        loops=tuple(_loop_row(part.host, loop) for part in partials for loop in part.others),
    )


def _loop_row(host: str, loop: Loop) -> dict[str, Cell]:
    return {
        "host": host,
        "loop": loop.name,
        "thread": loop.thread,
        "count": loop.count,
        "median_ms": round_ms(loop.median_ps),
        "min_ms": round_ms(loop.least_ps),
        "max_ms": round_ms(loop.most_ps),
        "total_ms": round_ms(loop.total_ps),
    }


def _table_row(host: str, row: StepRow, causes: dict[str, Cell], parts: dict[str, Cell]) -> dict[str, Cell]:
    batch = row.batch or Batch("")
    return {
        "step": row.number,
        "name": row.name,
        "host": host,
        "start_ms": round_ms(row.start_ps),
        "duration_ms": round_ms(row.duration_ps),
        **causes,
        **parts,
        "complete": row.complete,
        "usual": row.usual,
        "requests": batch.requests,
        "tokens": batch.tokens,
        "prefill": batch.prefill,
        "decode": batch.decode,
    }
