"""The ops of the host by name and shapes of their inputs, with their time on the host and on the devices, and by the
line of the program that they were called from.

Total time includes nested ops, self time does not. The device time of an op is that of the work launched inside it; its
device self time is that of the work it launches itself. Device times sum over streams. An op that calls itself counts
inside itself, so total times of such ops exceed the elapsed time.

Shapes are recorded with `torch.profiler.profile(record_shapes=True)`, lines with `with_stack=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import ClassVar

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import OPS, forest, self_times
from stepscope.analysis.trace.origin import Origin, framework_of, header, origin_of
from stepscope.analysis.trace.remedies import CALL_SITES, SHAPES, remedy
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Groups, sum_groups
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Report,
    Role,
    Table,
    add_records,
    as_table,
    fields_named,
    make_rows,
    percent,
    round_us,
)

K = EventKind

MOST_ROWS = 4000  # kept per host and table, those with most time

_NAME = Field("name", "text", "the op", role=Role.NAME)
_TIME_FIELDS: tuple[Field, ...] = (
    Field("calls", "count", "number of runs", "int"),
    Field("host_total_us", "us", "time on the host, with nested ops"),
    Field("host_self_us", "us", "time on the host, without nested ops"),
    Field("device_total_us", "us", "time of the device work launched inside it"),
    Field("device_self_us", "us", "time of the device work launched by the op itself"),
    Field("avg_device_us", "us", "device total divided by calls"),
    Field("percent", "percent", "share of all ops' device self time; without devices, of their host self time"),
)
SHAPE_FIELDS: tuple[Field, ...] = (
    _NAME,
    Field(
        "input_shapes", "text", "the shapes of its inputs, as in the trace; unknown if not recorded", role=Role.SHAPE
    ),
    Field("input_types", "text", "the types of its inputs; unknown if not recorded", role=Role.TYPE),
    *_TIME_FIELDS,
)
SITE_FIELDS: tuple[Field, ...] = (
    _NAME,
    Field("call_site", "text", "the line of the program", role=Role.SOURCE),
    *_TIME_FIELDS,
)
LINE_FIELDS: tuple[Field, ...] = (
    Field("call_site", "text", "the line of the program; unknown for ops without one", role=Role.SOURCE),
    *fields_named(_TIME_FIELDS, "calls", "host_self_us", "device_self_us", "percent"),
)
_EMPTY = "no ops were recorded on the host: record with ProfilerOptions(host_tracer_level=2)"
_NO_LINES = "no Python calls were recorded"


@dataclass(frozen=True)
class OpGroup:
    """Ops with the same name and up to two more equal texts; times in ps."""

    name: str
    first: str
    second: str
    calls: int
    host_total_ps: int
    host_self_ps: int
    device_total_ps: int
    device_self_ps: int

    @property
    def key(self) -> tuple[str, str, str]:
        """The texts that they share."""
        return self.name, self.first, self.second


@dataclass(frozen=True)
class Partial:
    """The part of one host; `host_ps` and `device_ps` are the self times of all ops."""

    origin: Origin
    shapes: list[OpGroup]
    sites: list[OpGroup]
    left_out: int
    host_ps: int
    device_ps: int


@dataclass(frozen=True, kw_only=True)
class OpShapesReport(Report):
    """Ops by shape and by line, those with most self time first; see the FIELDS tables of this module."""

    TOOL: ClassVar[str] = "op-shapes"

    rows: Table = as_table("Ops by shape of their inputs", SHAPE_FIELDS, _EMPTY)
    call_sites: Table = as_table("Ops by line of the program", SITE_FIELDS, _NO_LINES)
    lines: Table = as_table("Lines of the program", LINE_FIELDS, _NO_LINES)

    def lacks(self) -> tuple[str, ...]:
        """Lines or shapes, where none was recorded."""
        has_shapes = any(row["input_shapes"] for row in self.rows)
        return (*(() if has_shapes else ("shape",)), *(() if self.lines else ("line",)))


def _shapes_by_side(report: OpShapesReport) -> Iterator[dict[str, Cell]]:
    """Two rows per op and shape: the time on the devices, and the time on the host."""
    for row in report.rows:
        for where in ("device", "host"):
            op = {"name": row["name"], "input_shapes": row["input_shapes"], "calls": row["calls"]}
            yield {"side": where, **op, "self_us": row[f"{where}_self_us"]}


COMPARABLES = (
    Comparable(
        id="op_shapes",
        title="Ops by shape of their inputs",
        keys=(
            Field("side", "text", "`host` or `device`", role=Role.PLACE),
            *fields_named(SHAPE_FIELDS, "name", "input_shapes"),
        ),
        measure=Field("self_us", "us", "self time of the op with inputs of these shapes"),
        rows=_shapes_by_side,
        count="calls",
        is_total=True,
        empty="neither side has ops on the host",
    ),
)


def partial(trace: HostTrace) -> Partial:
    """The part of one host."""
    counts = is_any_kind(trace.events.kind, OPS) & is_thread_event(trace)
    rows = np.flatnonzero(counts)
    device = _device_times(trace)
    whole = (trace.events.duration_ps, self_times(trace, counts), device, self_times(trace, counts, device))
    times = tuple(time[rows] for time in whole)
    dims, types = (_texts(trace, rows, names) for names in (stat_names.INPUT_DIMS, stat_names.INPUT_TYPES))
    shapes = _groups(trace, rows, times, dims, types)
    sites = call_sites(trace, rows)
    known = sites >= 0
    none = np.full(int(known.sum()), -1, np.int64)
    by_site = _groups(trace, rows[known], tuple(time[known] for time in times), sites[known], none, site_text)
    left_out = len(shapes[MOST_ROWS:]) + len(by_site[MOST_ROWS:])
    return Partial(
        origin_of(trace), shapes[:MOST_ROWS], by_site[:MOST_ROWS], left_out, int(times[1].sum()), int(times[3].sum())
    )


def _texts(trace: HostTrace, rows: I64, names: tuple[str, ...]) -> I64:
    return trace.stat_strings(names, rows=rows) if trace.has_stat(names) else np.full(len(rows), -1, np.int64)


def _device_times(trace: HostTrace) -> I64:
    """Time of the device work launched inside every event: int64 of shape (events,)."""
    found = attribute(trace)
    known = found.call >= 0
    time = sum_groups(found.call[known], found.time_ps[known], len(trace.events))
    kernels.nesting.add_to_ancestors(time, forest(trace).parent)
    return time


def _groups(
    trace: HostTrace, rows: I64, times: Sequence[I64], first: I64, second: I64, shown: Callable[[str], str] = str
) -> list[OpGroup]:
    """Merges ops of equal name and texts; most self time first."""
    groups, text = Groups.of(event_name_rows(trace, rows), first, second), trace.strings
    at, sums = groups.first, [column.tolist() for column in (groups.count(), *map(groups.sum, times))]
    keys = (event_name_rows(trace, rows[at]).tolist(), first[at].tolist(), second[at].tolist())
    found = [
        OpGroup(text[name], shown(text[one]), text[two], *figures)
        for name, one, two, *figures in zip(*keys, *sums, strict=True)
    ]
    return sorted(found, key=_rank)


def _rank(row: OpGroup) -> tuple[object, ...]:
    return -row.device_self_ps, -row.host_self_ps, row.key


def condense(partials: Sequence[Partial]) -> list[Partial]:
    """The partials with the ops of all hosts in the first."""
    shapes = _sum_groups(row for part in partials for row in part.shapes)
    sites = _sum_groups(row for part in partials for row in part.sites)
    first, *others = partials
    return [replace(first, shapes=shapes, sites=sites), *(replace(part, shapes=[], sites=[]) for part in others)]


_FIRST = attrgetter("first")
_SHAPE_TEXTS = {"input_shapes": lambda row: row.first or None, "input_types": lambda row: row.second or None}


def merge(partials: Sequence[Partial]) -> OpShapesReport:
    """The ops of all hosts; equal ops are merged."""
    device = sum(part.device_ps for part in partials)
    whole = device or sum(part.host_ps for part in partials)
    shapes = _merge_groups(row for part in partials for row in part.shapes)
    sites = _merge_groups(row for part in partials for row in part.sites)
    times: dict[str, Callable[[OpGroup], Cell]] = {
        "avg_device_us": lambda row: round_us(row.device_total_ps / row.calls) if device else None,
        "percent": lambda row: percent(row.device_self_ps if device else row.host_self_ps, whole),
    }
    return OpShapesReport(
        **header([part.origin for part in partials], _warnings(partials, shapes, sites)),
        rows=make_rows(SHAPE_FIELDS, shapes, **times, **_SHAPE_TEXTS),
        call_sites=make_rows(SITE_FIELDS, sites, **times, call_site=_FIRST),
        lines=make_rows(
            LINE_FIELDS,
            _merge_lines(sites, sum(part.host_ps for part in partials), device),
            **times,
            call_site=lambda row: row.first or None,
            calls=lambda row: row.calls or None,
        ),
    )


def _merge_lines(sites: Sequence[OpGroup], host_ps: int, device_ps: int) -> list[OpGroup]:
    """All ops of a line as one; last what no line is known of, without calls."""
    lines = _merge_groups(replace(row, name="") for row in sites)
    host = host_ps - sum(row.host_self_ps for row in lines)
    device = device_ps - sum(row.device_self_ps for row in lines)
    rest = [OpGroup("", "", "", 0, 0, host, 0, device)] if lines and (host > 0 or device > 0) else []
    return [*lines, *rest]


def _merge_groups(rows: Iterable[OpGroup]) -> list[OpGroup]:
    return sorted(_sum_groups(rows), key=_rank)


def _sum_groups(rows: Iterable[OpGroup]) -> list[OpGroup]:
    figures = ("calls", "host_total_ps", "host_self_ps", "device_total_ps", "device_self_ps")
    return add_records(rows, lambda row: row.key, figures)


def _warnings(partials: Sequence[Partial], shapes: Sequence[OpGroup], sites: Sequence[OpGroup]) -> list[str]:
    found = []
    framework = framework_of([part.origin for part in partials])
    if shapes and not any(row.first for row in shapes):
        found.append(f"no shapes were recorded: {remedy(SHAPES, framework)}")
    if shapes and not sites:
        found.append(f"no Python calls were recorded: {remedy(CALL_SITES, framework)}")
    left_out = sum(part.left_out for part in partials)
    return [*found, *([f"{left_out:,} rows of ops with the least time are not listed"] if left_out else [])]
