"""A tool: the events that took longest.

A tool has two halves: `partial` makes a small result from the trace of one host, and `merge` makes the report of all
hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np

from stepscope.analysis.registry import Tool
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Field, Report, Role, Row, Table, as_table, round_us

MOST = 10

TOOL = Tool("longest-events", "the events that took longest", module_name="acme_stepscope.longest_events")

NOT_COMPARABLE = "which event takes longest is a matter of chance"

FIELDS = (
    Field("host", "text", "the host", role=Role.HOST),
    Field("name", "text", "the event", role=Role.NAME),
    Field("duration_us", "us", "how long it took"),
)


@dataclass(frozen=True)
class Partial:
    """The longest events of one host, names and durations in ps."""

    host: str
    names: list[str] = field(default_factory=list)
    durations_ps: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class LongestEventsReport(Report):
    """The longest events of all hosts."""

    TOOL: ClassVar[str] = "longest-events"

    rows: Table = as_table("Longest events", FIELDS, empty="the profile holds no events")


def partial(trace: HostTrace) -> Partial:
    """What one host contributes."""
    duration = trace.events.duration_ps
    longest = np.argsort(-duration, kind="stable")[:MOST]
    return Partial(trace.host, [trace.name_of(int(row)) for row in longest], duration[longest].tolist())


def merge(partials: Sequence[Partial]) -> LongestEventsReport:
    """The report of all hosts."""
    found = [
        (duration, part.host, name)
        for part in partials
        for name, duration in zip(part.names, part.durations_ps, strict=True)
    ]
    rows: list[Row] = [
        {"host": host, "name": name, "duration_us": round_us(duration)}
        for duration, host, name in sorted(found, key=lambda each: -each[0])[:MOST]
    ]
    return LongestEventsReport(
        hosts=tuple(part.host for part in partials), warnings=(), partial=False, rows=tuple(rows)
    )
