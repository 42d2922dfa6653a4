"""What a step waits for, moment by moment: the chain of events from the start to the end of the step.

It lists what the account of the step is made of. The path is walked back from the end of the step along whatever the
step waited for last: on a device to the work before on the stream, to another stream, or to the call that
launched the work; on the host through the thread's own work, from a wait for a device to the work of that device, and
from a thread that waits to the thread that it waits for. So every moment of a step has exactly one cause, and the parts
add up to the step. Making a part shorter makes the step shorter, at most by that part, until another path is the
longest.

A step lasts from its start to the start of the next one. The parts and the events are those of the median step, on the
host where it takes longest (of several as long the one that the others wait for); the table of steps lists every step
of every host. Where no steps were found, the path is that of the whole capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.account.account import StepAccount, account_of, account_shown
from stepscope.analysis.account.account_text import cause_sentence, culprit_name
from stepscope.analysis.account.causes import MEANING, Cause
from stepscope.analysis.account.critical_path import OWN, Pieces
from stepscope.analysis.account.every_step import CausesOfStep, EveryStep, causes_of_steps, every_step
from stepscope.analysis.steps.session_steps import StepsOfHost, hosts_with_steps, steps_of_host, warn_of_missing_steps
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.attribution import event_name_rows
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.remedies import HOST_ACTIVITY, remedy
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Groups
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Lines,
    Report,
    Role,
    Row,
    Table,
    as_prose,
    as_table,
    fields_named,
    not_in_json,
    percent,
    round_ms,
)
from stepscope.vocabulary.kernel_names import brief

MOST_ROWS = 1000  # kept per host
_MOST_SAID = 3

_OF_KERNELS = ("device_compute", "communication")
PART_FIELDS: tuple[Field, ...] = (
    Field("part", "text", "what the step waits for: a cause of the account", role=Role.TERM),
    Field("ms", "ms", "time on the path of the median step"),
    Field("percent", "percent", "time on the path as a share of that step; the parts add up to 100"),
    Field("meaning", "text", "when a moment has that cause", role=Role.MEANING),
)
ROW_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kernel, op or call", role=Role.NAME),
    Field("part", "text", "the part that its time on the path belongs to", role=Role.TERM),
    Field("count", "count", "how often it is on the path of the median step", "int"),
    Field("ms", "ms", "its time on that path"),
    Field("percent", "percent", "time on the path as a share of the step"),
    Field(
        "delay_ms",
        "ms",
        "time on the path right before it in which it had not started; not a part of `ms`",
        label="Starts late by",
    ),
)
STEP_FIELDS: tuple[Field, ...] = (
    Field("step", "number", "the step's number", "int", role=Role.STEP),
    Field("host", "text", "the host", role=Role.HOST),
    Field("duration_ms", "ms", "from its start to the start of the next step; the following parts add up to it"),
    *(Field(f"{cause.name.lower()}_ms", "ms", f"time on the path in which {MEANING[cause]}") for cause in MEANING),
    Field("is_median", "", "whether the parts and the events above are those of this step", "bool", label="Median"),
)


@dataclass(frozen=True)
class PathsOfHost:
    """The part of one host: its account, the causes of every step, and rows of ROW_FIELDS of the median step."""

    origin: Origin
    stepping: StepsOfHost
    account: StepAccount | None
    steps: list[CausesOfStep]
    rows: list[Row]
    left_out: int

    @property
    def median(self) -> CausesOfStep | None:
        """The median step; None without steps."""
        return next((step for step in self.steps if step.is_median), None)


def _shorten_name(row: Row) -> Row:
    return row | {"name": brief(str(row["name"]))} if row["part"] in _OF_KERNELS else row


def _empty(report: Report) -> str:
    return f"no work in any step: {remedy(HOST_ACTIVITY, report.recorder)}"


@dataclass(frozen=True, kw_only=True)
class CriticalPathReport(Report):
    """The critical path of the median step, and its parts in every step; see the FIELDS tables of this module.

    `usual_steps` are the complete steps of the host whose median step it is, or all if none is complete.
    """

    TOOL: ClassVar[str] = "critical-path"

    findings: Lines = as_prose("Critical path")
    parts: Table = as_table("What the median step waits for", PART_FIELDS, _empty)
    rows: Table = as_table(
        "On the path of the median step, each without what it calls", ROW_FIELDS, _empty, brief=_shorten_name
    )
    steps: Table = as_table("Paths by step", STEP_FIELDS, _empty)
    usual_steps: tuple[dict[str, Cell], ...] = not_in_json()


def _parts_with_samples(report: CriticalPathReport) -> Iterator[dict[str, Any]]:
    """The parts of the path, each with its time in the usual steps."""
    for row in report.parts:
        yield {**row, "samples": [step[f"{row['part']}_ms"] for step in report.usual_steps]}


COMPARABLES = (
    Comparable(
        id="critical_path",
        title="Critical path",
        keys=fields_named(PART_FIELDS, "part"),
        measure=Field("ms", "ms", "time of the part on the critical path of the median step"),
        rows=_parts_with_samples,
        samples="samples",
        carried=fields_named(PART_FIELDS, "meaning"),
        empty="neither side has a critical path",
    ),
)


def partial(trace: HostTrace) -> PathsOfHost:
    """The part of one host."""
    found, steps = every_step(trace), causes_of_steps(trace)
    step_ps = next((step.step_ps for step in steps if step.is_median), 0)
    rows = [] if found is None else _path_rows(trace, found, step_ps)
    left_out = max(len(rows) - MOST_ROWS, 0)
    return PathsOfHost(origin_of(trace), steps_of_host(trace), account_of(trace), steps, rows[:MOST_ROWS], left_out)


def _path_rows(trace: HostTrace, found: EveryStep, step_ps: int) -> list[Row]:
    """Events on the path of the median step by name and cause, longest first."""
    pieces, cause = found.pieces_of_median()
    own = np.flatnonzero(pieces.edge == OWN)
    delay = _delays_before(pieces, own)
    own, delay = own[pieces.event[own] >= 0], delay[pieces.event[own] >= 0]
    event = pieces.event[own]
    groups = Groups.of(event_name_rows(trace, event), cause[own].astype(np.int64))
    names = [trace.name_of(row) for row in event[groups.first].tolist()]
    total, before = groups.sum((pieces.end_ps - pieces.start_ps)[own]), groups.sum(delay)
    count = groups.count(Groups.of(groups.number, event).first)  # of different events
    order = sorted(range(len(names)), key=lambda at: (-int(total[at]), -int(before[at]), names[at]))
    return [
        {
            "name": names[at],
            "part": Cause(int(cause[own[groups.first[at]]])).name.lower(),
            "count": int(count[at]),
            "ms": round_ms(int(total[at])),
            "percent": percent(int(total[at]), step_ps),
            "delay_ms": round_ms(int(before[at])),
        }
        for at in order
    ]


def _delays_before(pieces: Pieces, own: I64) -> I64:
    """For each piece of own time, how long the step waited for its node to start; int64 of shape (own,), ps.

    The first piece of a node has it all.
    """
    order = own[np.lexsort((pieces.start_ps[own], pieces.node[own]))]
    first = order[np.append(True, np.diff(pieces.node[order]) != 0)[: len(order)]]
    waits = np.flatnonzero(pieces.edge != OWN)
    place = np.minimum(np.searchsorted(pieces.node[first], pieces.node[waits]), max(len(first) - 1, 0))
    delay = np.zeros(len(pieces), np.int64)
    if len(first):
        known = pieces.node[first][place] == pieces.node[waits]
        np.add.at(delay, first[place[known]], (pieces.end_ps - pieces.start_ps)[waits[known]])
    return delay[own]


def merge(partials: Sequence[PathsOfHost]) -> CriticalPathReport:
    """The path of the median step of the host that stands for the session."""
    hosts = [part.stepping for part in partials]
    taking = hosts_with_steps(hosts)
    own = [part for part in partials if any(part.stepping is host for host in taking) and part.median is not None]
    shown = account_shown([part.account for part in own])
    chosen = next((part for part in own if part.account is shown), max(own, key=_median_ps, default=None))
    warnings = [*warn_of_missing_steps(hosts, taking)]
    if chosen is not None and chosen.left_out:
        warnings.append(f"{chosen.left_out:,} names are not listed")
    head = header([part.origin for part in partials], warnings)
    steps = sorted(((part.origin.host, step) for part in own for step in part.steps), key=lambda item: item[1].number)
    rows = tuple(_step_row(host, step, chosen) for host, step in steps)
    if chosen is None or chosen.median is None:
        return CriticalPathReport(**head, findings=(), parts=(), rows=(), steps=rows, usual_steps=())
    usual = [step for step in chosen.steps if step.complete] or chosen.steps
    return CriticalPathReport(
        **head,
        findings=tuple(_findings(chosen.account)),
        parts=_part_rows(chosen.median),
        rows=tuple(chosen.rows),
        steps=rows,
        usual_steps=tuple(_step_row(chosen.origin.host, step, chosen) for step in usual),
    )


def _median_ps(part: PathsOfHost) -> int:
    return part.median.step_ps if part.median else 0


def _part_rows(step: CausesOfStep) -> tuple[dict[str, Cell], ...]:
    return tuple(
        {
            "part": cause.name.lower(),
            "ms": round_ms(step.causes_ps[cause]),
            "percent": percent(step.causes_ps[cause], step.step_ps),
            "meaning": MEANING[cause],
        }
        for cause in sorted(MEANING, key=lambda cause: -step.causes_ps[cause])
    )


def _step_row(host: str, step: CausesOfStep, chosen: PathsOfHost | None) -> dict[str, Cell]:
    parts: dict[str, Cell] = {f"{cause.name.lower()}_ms": round_ms(step.causes_ps[cause]) for cause in MEANING}
    is_median = chosen is not None and step is chosen.median
    return {"step": step.number, "host": host, "duration_ms": round_ms(step.step_ps), **parts, "is_median": is_median}


def _findings(account: StepAccount | None) -> Iterator[str]:
    """The longest causes with their culprits; the limit is the one that a change shortens, which may be another."""
    if account is None:
        return
    large = (row for row in account.rows[1:_MOST_SAID] if account.percent(row.ps, row.cause) >= LARGE_SHARE)
    rows = [*account.rows[:1], *large]
    said = [cause_sentence(account, row) for row in rows]
    if first := rows and rows[0].culprit:
        place = f"`{culprit_name(first)}`"  # said once: what is inside it differs
        said[1:] = [line.replace(place, "there, too") for line in said[1:]]
    yield from [f"longest part: {said[0]}", *said[1:]] if len(said) > 1 else said
