"""The ops of the host by name and shapes of their inputs, with their time on the host and on the devices, and by the
line of the program that they were called from; functions and lines of the program with the time of the loop's thread.

Total time includes nested ops, self time does not. The device time of an op is that of the work launched inside it; its
device self time is that of the work it launches itself. Device times sum over streams. An op that calls itself counts
inside itself, so total times of such ops exceed the elapsed time.

Shapes are recorded with `torch.profiler.profile(record_shapes=True)`, lines with `with_stack=True`.  Where no calls of
Python were recorded, the lines are those that compiled programs and graphs were traced at, or that samples of the
loop's stack show while an op runs.  Functions and lines of the program need calls of Python or such samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.sampled_time import sampled_time_of
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.ops import program_time
from stepscope.analysis.ops.program_time import ProgramTime
from stepscope.analysis.steps.own_tracers import events_of_thread
from stepscope.analysis.trace import remedies
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.call_sites import call_sites, site_text, sites_in_libraries
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.grouping import OPS, forest, self_times
from stepscope.analysis.trace.origin import Origin, header, origin_of, session_recorder
from stepscope.analysis.trace.source_lines import source_lines
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, distinct, sum_groups
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Report,
    Role,
    Row,
    Table,
    as_table,
    fields_named,
    percent,
    round_us,
)
from stepscope.report.relation import Counted, Merged, Relation
from stepscope.vocabulary.lines import holds_statements
from stepscope.vocabulary.python import is_of_user, place_of, statement_of

K = EventKind

_NEARLY_ALL = 0.9  # of the ops' time: a line with so much tells nothing apart
MOST_ROWS = 4000  # kept per host and table, those with most time

_NAME = Field("name", "text", "the op", role=Role.NAME)
_TIME_FIELDS: tuple[Field, ...] = (
    Field("calls", "count", "number of runs", "int"),
    Field("host_total_us", "us", "time on the host, with nested ops"),
    Field("host_self_us", "us", "time on the host, without nested ops"),
    Field("device_total_us", "us", "time of the device work launched inside it"),
    Field("device_self_us", "us", "time of the device work launched by the op itself"),
    Field("avg_device_us", "us", "device total divided by calls"),
    Field(
        "percent", "percent", "share of the devices' time, as in op-stats; without devices, of all ops' host self time"
    ),
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
    Field(
        "call_site",
        "text",
        "the line of the program, of a gradient that of its forward op; unknown where none was recorded",
        role=Role.SOURCE,
    ),
    *_TIME_FIELDS,
)
LINE_FIELDS: tuple[Field, ...] = (
    Field(
        "call_site",
        "text",
        "the line of the program, or of a library's model where the program has one line for nearly everything; "
        "unknown for what has none",
        role=Role.SOURCE,
    ),
    *fields_named(_TIME_FIELDS, "calls", "host_self_us", "device_self_us", "percent"),
)
_NO_LINES = "no Python calls were recorded"


_MEASURES = ("calls", "host_total_ps", "host_self_ps", "device_total_ps", "device_self_ps")
_LONGEST = ("-device_self_ps", "-host_self_ps")
SHAPES = Relation(
    ("name", "input_shapes", "input_types"),
    _MEASURES,
    order=(*_LONGEST, "name", "input_shapes", "input_types"),
    most=MOST_ROWS,
)
SITES = Relation(("name", "call_site"), _MEASURES, order=(*_LONGEST, "name", "call_site"), most=MOST_ROWS)
LINES = Relation(("call_site",), _MEASURES, order=(*_LONGEST, "call_site"))


@dataclass(frozen=True)
class OpShapesOfHost:
    """The part of one host; `host_ps` is the self time of all ops, `device_ps` the time of all device work."""

    origin: Origin
    shapes: Counted
    sites: Counted
    host_ps: int
    device_ps: int
    program: ProgramTime


RELATIONS = {"shapes": SHAPES, "sites": SITES}


@dataclass(frozen=True, kw_only=True)
class OpShapesReport(Report):
    """Ops by shape and by line, those with most self time first; see the FIELDS tables of this module."""

    TOOL: ClassVar[str] = "op-shapes"

    rows: Table = as_table("Ops by shape of their inputs", SHAPE_FIELDS, lambda report: _empty(report.recorder))
    call_sites: Table = as_table("Ops by line of the program", SITE_FIELDS, _NO_LINES)
    lines: Table = as_table("Time of ops by line", LINE_FIELDS, _NO_LINES)
    statements: Table = as_table(
        "Lines of the program", program_time.LINE_FIELDS, "the stack of the loop's thread was not sampled"
    )
    functions: Table = as_table("Functions of the program", program_time.FUNCTION_FIELDS, _NO_LINES)

    def lacks(self) -> tuple[str, ...]:
        """Lines or shapes, where none was recorded."""
        has_shapes = any(row["input_shapes"] for row in self.rows)
        has_lines = self.lines or self.statements or self.functions
        return (*(() if has_shapes else ("shape",)), *(() if has_lines else ("line",)))


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


def _empty(recorder: str) -> str:
    return f"no ops were recorded on the host: {remedies.remedy(remedies.HOST_ACTIVITY, recorder)}"


def partial(trace: HostTrace) -> OpShapesOfHost:
    """The part of one host."""
    counts = is_any_kind(trace.events.kind, OPS) & is_thread_event(trace)
    rows = np.flatnonzero(counts)
    device = _device_times(trace)
    times = (trace.events.duration_ps, self_times(trace, counts), device, self_times(trace, counts, device))
    measures = {name: time[rows] for name, time in zip(_MEASURES[1:], times, strict=True)}
    text, name = trace.strings.__getitem__, event_name_rows(trace, rows)
    asked = forward_events(trace, rows)
    sites, site = _tell_apart(trace, asked, measures["device_self_ps" if device.any() else "host_self_ps"]), text
    if not (sites >= 0).any():
        sites, other = _lines_without_calls(trace, asked)
        site = other.__getitem__
    shapes = SHAPES.count(
        {
            "name": (name, text),
            "input_shapes": (_texts(trace, rows, stat_names.INPUT_DIMS), text),
            "input_types": (_texts(trace, rows, stat_names.INPUT_TYPES), text),
        },
        measures,
    )
    by_site = SITES.count(
        {"name": (name, text), "call_site": (sites, lambda at: site_text(site(at)) if at >= 0 else "")}, measures
    )
    whole = int(measures["host_self_ps"].sum()), int(attribute(trace).time_ps.sum())
    return OpShapesOfHost(origin_of(trace), shapes, by_site, *whole, program_time.program_time(trace))


def _tell_apart(trace: HostTrace, rows: I64, time_ps: I64) -> I64:
    """The lines of ops.  Where one line asks for nearly everything, as of a program that runs a library's model, they
    are the library's lines inside it: string rows of shape (n,), -1 without one."""
    sites = call_sites(trace, rows)
    known = sites >= 0
    by_site = np.bincount(sites[known], weights=time_ps[known])
    if not len(by_site) or by_site.max() < _NEARLY_ALL * time_ps.sum():
        return sites
    inside = sites_in_libraries(trace, rows)
    return np.where((sites == int(np.argmax(by_site))) & (inside >= 0), inside, sites)


def _lines_without_calls(trace: HostTrace, rows: I64) -> tuple[I64, list[str]]:
    """The line of the program of each op: int64 of shape (n,), -1 where none is known, and the different lines as
    `train.py(9): fit`.

    Of compiled programs and graphs it is the line that they were traced at; of other ops of the loop's thread the one
    that samples show furthest in while it runs.
    """
    traced, lines = source_lines(trace, rows)
    places = {f"{each.file}({each.line}): {each.function}".removesuffix(": "): at for at, each in enumerate(lines)}
    sampled = _sampled_lines(trace, rows, places)
    return np.where(traced >= 0, traced, sampled), list(places)


def _sampled_lines(trace: HostTrace, rows: I64, places: dict[str, int]) -> I64:
    """The line of the program that samples of the loop's thread show furthest in while each op runs: int64 of shape
    (n,), numbers of the places, to which new ones are added; -1 where none is known."""
    loop, found = threads_of(trace).main, np.full(len(rows), -1, np.int64)
    statements = events_of_thread(trace, loop, holds_statements) if loop >= 0 else rows[:0]
    sampled = sampled_time_of(trace, loop) if len(statements) else None
    if sampled is None:
        return found
    own = np.flatnonzero(trace.events.line[rows] == loop)
    order = np.argsort(sampled.start, kind="stable")
    middle = trace.events.start_ps[rows[own]] + trace.events.duration_ps[rows[own]] // 2
    piece = order[np.maximum(np.searchsorted(sampled.start[order], middle, side="right") - 1, 0)]
    shown = (sampled.start[piece] <= middle) & (middle < sampled.end[piece])
    own, sample = own[shown], sampled.sample[piece[shown]]
    of_statements = int(trace.events.line[statements[0]])
    said = cut_by_events(trace, of_statements, sampled.times, sampled.times + 1)[3][sample]
    for type_ in distinct(trace.events.type[said[said >= 0]]).tolist():
        here = (said >= 0) & (trace.events.type[said] == type_)
        statement = statement_of(trace.name_of(int(said[here][0])))
        if is_of_user(statement.frame):
            name, file, _ = place_of(statement.frame)
            found[own[here]] = places.setdefault(f"{file}({statement.line}): {name}", len(places))
    return found


def _texts(trace: HostTrace, rows: I64, names: tuple[str, ...]) -> I64:
    return trace.stat_strings(names, rows=rows) if trace.has_stat(names) else np.full(len(rows), -1, np.int64)


def _device_times(trace: HostTrace) -> I64:
    """Time of the device work launched inside every event: int64 of shape (events,)."""
    found = attribute(trace)
    known = found.call >= 0
    time = sum_groups(found.call[known], found.time_ps[known], len(trace.events))
    kernels.nesting.add_to_ancestors(time, forest(trace).parent)
    return time


def merge(partials: Sequence[OpShapesOfHost]) -> OpShapesReport:
    """The ops of all hosts; equal ops are merged."""
    host, device = (sum(getattr(part, name) for part in partials) for name in ("host_ps", "device_ps"))
    shared_out = "device_self_ps" if device else "host_self_ps"
    shapes = SHAPES.merge([part.shapes for part in partials])
    sites = SITES.merge([part.sites for part in partials])

    def table(fields: Sequence[Field], ops: Merged) -> Table:
        on_device = ops.mean("device_total_ps", "calls") if device else None
        return ops.table(fields, avg_device_us=on_device, percent=ops.share(shared_out, device or host))

    placed = [at for at, site in enumerate(sites["call_site"]) if site]
    lines = sites.take(placed).regroup(LINES)
    outside = {
        "host_self_ps": host - sum(lines["host_self_ps"]),
        "device_self_ps": device - sum(lines["device_self_ps"]),
    }
    rest: Row = {
        **dict.fromkeys(field.name for field in LINE_FIELDS),
        **{f"{name[:-3]}_us": round_us(ps) for name, ps in outside.items()},
        "percent": percent(outside[shared_out], device or host),
    }
    statements, functions = program_time.tables_of([part.program for part in partials])
    return OpShapesReport(
        **header([part.origin for part in partials], _warnings(partials, shapes, sites)),
        rows=table(SHAPE_FIELDS, shapes),
        call_sites=table(SITE_FIELDS, sites) if placed else (),
        lines=(*table(LINE_FIELDS, lines), *([rest] if len(lines) and max(outside.values()) > 0 else [])),
        statements=statements,
        functions=functions,
    )


def _warnings(partials: Sequence[OpShapesOfHost], shapes: Merged, sites: Merged) -> list[str]:
    found = []
    recorder = session_recorder([part.origin for part in partials])
    if len(shapes) and not any(shapes["input_shapes"]):
        found.append(f"no shapes were recorded: {remedies.remedy(remedies.SHAPES, recorder)}")
    if len(shapes) and not any(sites["call_site"]):
        found.append(f"no Python calls were recorded: {remedies.remedy(remedies.CALL_SITES, recorder)}")
    left_out = shapes.left_out + sites.left_out
    return [*found, *([f"{left_out:,} rows of ops with the least time are not listed"] if left_out else [])]
