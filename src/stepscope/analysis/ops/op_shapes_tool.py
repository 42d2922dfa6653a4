"""The ops of the host by name and shapes of their inputs, with their time on the host and on the devices, and by the
line of the program that they were called from.

Total time includes nested ops, self time does not. The device time of an op is that of the work launched inside it; its
device self time is that of the work it launches itself. Device times sum over streams. An op that calls itself counts
inside itself, so total times of such ops exceed the elapsed time.

Shapes are recorded with `torch.profiler.profile(record_shapes=True)`, lines with `with_stack=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.origin import Origin, framework_of, header, origin_of
from stepscope.analysis.trace.remedies import CALL_SITES, SHAPES, remedy
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, number_pairs
from stepscope.records import dataclass
from stepscope.report import Cell, Comparable, Field, Report, Role, Rows, Section, fields_named, percent, round_us

K = EventKind

MOST_ROWS = 4000  # kept per host and table, those with most time
_OPS = (K.OP, K.BACKWARD, K.COLLECTIVE_CALL)

_NAME = Field("name", "text", "the op", "str", role=Role.NAME)
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
        "input_shapes",
        "text",
        "the shapes of its inputs, as in the trace; unknown if not recorded",
        "str",
        role=Role.SHAPE,
    ),
    Field("input_types", "text", "the types of its inputs; unknown if not recorded", "str", role=Role.TYPE),
    *_TIME_FIELDS,
)
SITE_FIELDS: tuple[Field, ...] = (
    _NAME,
    Field("call_site", "text", "the line of the program", "str", role=Role.SOURCE),
    *_TIME_FIELDS,
)
LINE_FIELDS: tuple[Field, ...] = (
    Field("call_site", "text", "the line of the program; unknown for ops without one", "str", role=Role.SOURCE),
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
    host_ps: int
    host_self_ps: int
    device_ps: int
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

    rows: tuple[dict[str, Cell], ...]
    call_sites: tuple[dict[str, Cell], ...]
    lines: tuple[dict[str, Cell], ...]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {"rows": list(self.rows), "call_sites": list(self.call_sites), "lines": list(self.lines)}

    def sections(self) -> Sequence[Section]:
        """By shape, then by line, with all ops of a line added up at the end."""
        return [
            Rows("rows", "Ops by shape of their inputs", SHAPE_FIELDS, self.rows, _EMPTY),
            Rows("call_sites", "Ops by line of the program", SITE_FIELDS, self.call_sites, _NO_LINES),
            Rows("lines", "Lines of the program", LINE_FIELDS, self.lines, _NO_LINES),
        ]


def _shapes_by_side(report: OpShapesReport) -> Iterator[dict[str, Cell]]:
    """Two rows per op and shape: the time on the devices, and the time on the host."""
    for row in report.rows:
        for where in ("device", "host"):
            op = {"name": row["name"], "input_shapes": row["input_shapes"], "calls": row["calls"]}
            yield {"where": where, **op, "self_us": row[f"{where}_self_us"]}


COMPARABLES = (
    Comparable(
        id="op_shapes",
        title="Ops by shape of their inputs",
        keys=(
            Field("where", "text", "`host` or `device`", "str", role=Role.PLACE),
            *fields_named(SHAPE_FIELDS, "name", "input_shapes"),
        ),
        measure=Field("self_us", "us", "self time of the op with inputs of these shapes"),
        rows=_shapes_by_side,
        count="calls",
        is_total=True,
        empty="neither side has ops on the host",
    ),
)


# -- one host ------------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> Partial:
    """The part of one host."""
    counts = is_any_kind(trace.events.kind, _OPS) & is_thread_event(trace)
    rows = np.flatnonzero(counts)
    device = _device_times(trace)
    duration = trace.events.duration_ps
    times = (
        duration[rows],
        _self_times(trace, duration, counts)[rows],
        device[rows],
        _self_times(trace, device, counts)[rows],
    )
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
    found, time = attribute(trace), np.zeros(len(trace.events), np.int64)
    known = found.call >= 0
    np.add.at(time, found.call[known], found.time_ps[known])
    kernels.nesting.add_to_ancestors(time, forest(trace).parent)
    return time


def _self_times(trace: HostTrace, time: I64, counts: Mask) -> I64:
    """`time` without that of nested counted events."""
    own = np.empty(len(time), np.int64)
    kernels.nesting.self_times(time, forest(trace).parent, counts, own)
    return np.maximum(own, 0)


def _groups(
    trace: HostTrace, rows: I64, times: Sequence[I64], first: I64, second: I64, shown: Callable[[str], str] = str
) -> list[OpGroup]:
    """Merges ops of equal name and texts; most self time first."""
    group, _ = number_pairs(event_name_rows(trace, rows), first)
    group, at = number_pairs(group, second)
    size, text = len(at), trace.strings
    sums = []
    for time in times:
        total = np.zeros(size, np.int64)
        np.add.at(total, group, time)
        sums.append(total.tolist())
    calls = np.bincount(group, minlength=size).tolist()
    keys = (event_name_rows(trace, rows[at]).tolist(), first[at].tolist(), second[at].tolist())
    found = [
        OpGroup(text[name], shown(text[one]), text[two], *figures)
        for name, one, two, *figures in zip(*keys, calls, *sums, strict=True)
    ]
    return sorted(found, key=_rank)


def _rank(row: OpGroup) -> tuple[object, ...]:
    return -row.device_self_ps, -row.host_self_ps, row.key


# -- all hosts -----------------------------------------------------------------------------------------------------


def condense(partials: Sequence[Partial]) -> list[Partial]:
    """The partials with the ops of all hosts in the first."""
    shapes = _sum_groups([row for part in partials for row in part.shapes])
    sites = _sum_groups([row for part in partials for row in part.sites])
    first, *others = partials
    return [
        replace(first, shapes=[*shapes.values()], sites=[*sites.values()]),
        *(replace(part, shapes=[], sites=[]) for part in others),
    ]


def merge(partials: Sequence[Partial]) -> OpShapesReport:
    """The ops of all hosts; equal ops are merged."""
    device = sum(part.device_ps for part in partials)
    whole = device or sum(part.host_ps for part in partials)
    shapes = _merge_groups([row for part in partials for row in part.shapes])
    sites = _merge_groups([row for part in partials for row in part.sites])
    return OpShapesReport(
        **header([part.origin for part in partials], _warnings(partials, shapes, sites)),
        rows=tuple(_shape_row(row, whole, bool(device)) for row in shapes),
        call_sites=tuple(_site_row(row, whole, bool(device)) for row in sites),
        lines=tuple(_line_rows(sites, sum(part.host_ps for part in partials), device)),
    )


def _merge_groups(rows: Sequence[OpGroup]) -> list[OpGroup]:
    return sorted(_sum_groups(rows).values(), key=_rank)


def _sum_groups(rows: Sequence[OpGroup]) -> dict[tuple[str, str, str], OpGroup]:
    """Equal ops added up, in the order in which they first appear."""
    merged: dict[tuple[str, str, str], OpGroup] = {}
    for row in rows:
        merged[row.key] = _sum(merged[row.key], row) if row.key in merged else row
    return merged


def _sum(one: OpGroup, other: OpGroup) -> OpGroup:
    figures = ("calls", "host_ps", "host_self_ps", "device_ps", "device_self_ps")
    return OpGroup(*one.key, *(getattr(one, name) + getattr(other, name) for name in figures))


def _shape_row(row: OpGroup, whole: int, on_device: bool) -> dict[str, Cell]:
    texts = {"name": row.name, "input_shapes": row.first or None, "input_types": row.second or None}
    return {**texts, **_cells(row, whole, on_device)}


def _site_row(row: OpGroup, whole: int, on_device: bool) -> dict[str, Cell]:
    return {"name": row.name, "call_site": row.first, **_cells(row, whole, on_device)}


def _line_rows(sites: Sequence[OpGroup], host_ps: int, device_ps: int) -> Iterator[dict[str, Cell]]:
    """The lines of the program with the self times of all their ops; last what no line is known of."""
    lines = _merge_groups([replace(row, name="") for row in sites])
    for row in lines:
        yield _line_row(row.first, row.calls, row.host_self_ps, row.device_self_ps, device_ps or host_ps, device_ps > 0)
    rest_host = host_ps - sum(row.host_self_ps for row in lines)
    rest_device = device_ps - sum(row.device_self_ps for row in lines)
    if lines and (rest_host > 0 or rest_device > 0):
        yield _line_row(None, None, rest_host, rest_device, device_ps or host_ps, device_ps > 0)


def _line_row(
    site: str | None, calls: int | None, host_ps: int, device_ps: int, whole: int, on_device: bool
) -> dict[str, Cell]:
    share = percent(device_ps if on_device else host_ps, whole)
    times: dict[str, Cell] = {"host_self_us": round_us(host_ps), "device_self_us": round_us(device_ps)}
    return {"call_site": site, "calls": calls, **times, "percent": share}


def _cells(row: OpGroup, whole: int, on_device: bool) -> dict[str, Cell]:
    return {
        "calls": row.calls,
        "host_total_us": round_us(row.host_ps),
        "host_self_us": round_us(row.host_self_ps),
        "device_total_us": round_us(row.device_ps),
        "device_self_us": round_us(row.device_self_ps),
        "avg_device_us": round_us(row.device_ps / row.calls) if on_device else None,
        "percent": percent(row.device_self_ps if on_device else row.host_self_ps, whole),
    }


def _warnings(partials: Sequence[Partial], shapes: Sequence[OpGroup], sites: Sequence[OpGroup]) -> list[str]:
    found = []
    framework = framework_of([part.origin for part in partials])
    if shapes and not any(row.first for row in shapes):
        found.append(f"no shapes were recorded: {remedy(SHAPES, framework)}")
    if shapes and not sites:
        found.append(f"no Python calls were recorded: {remedy(CALL_SITES, framework)}")
    left_out = sum(part.left_out for part in partials)
    return [*found, *([f"{left_out:,} rows of ops with the least time are not listed"] if left_out else [])]
