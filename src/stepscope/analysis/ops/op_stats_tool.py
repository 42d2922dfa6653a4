"""The tool `op-stats`: every op that ran, on the hosts and on the devices.

Total time includes nested ops, self time does not. Percentages are shares of the self time of all ops on the same side;
host ops show 0 in the device's columns, and device ops in the host's. Idle time is not an op; the columns with idle
time include it in the total.

On a host, an op's time is that of its thread, so ops on several threads add up to more than the elapsed time. Idle is
the time without an op between the first and the last op of each thread. On a device, an op's time is that of its
kernels and copies. Idle is the time without work between the first and the last work of each device. Work that cannot
be attributed to an op has a row under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from stepscope.analysis.ops.graph_rows import GRAPH_FIELDS, graph_rows
from stepscope.analysis.ops.op_sides import NO_OPS, Peaks, Side, device_idle, host_idle, peaks_of, side_of
from stepscope.analysis.ops.op_table import distributions, idle_row, merge_sides, side_rows, sum_sides, totals
from stepscope.analysis.trace import attribution
from stepscope.analysis.trace.attribution import Shares, shares
from stepscope.analysis.trace.op_work import device_calls, device_work, host_work
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.program_facts import TracedGraph, traced_graphs
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Figures,
    Part,
    Report,
    Role,
    Row,
    Rows,
    Section,
    fields_named,
    percent,
)
from stepscope.vocabulary.kernel_names import brief

K = EventKind

_STAND_INS = {
    K.TRACED_FUNCTION: "the traced functions that it called",
    K.ANNOTATION: "the ranges that the program named",
    K.PYTHON_CALL: "the Python functions that it ran",
}

FIELDS: tuple[Field, ...] = (
    Field(
        "rank",
        "number",
        "rank: device ops by self time, then host ops by self time",
        "int",
        role=Role.ORDINAL,
    ),
    Field("where", "text", "`host` or `device`", "str", role=Role.PLACE),
    Field("type", "text", "the framework's type of the op; for copies the direction", "str", role=Role.TYPE),
    Field(
        "name",
        "text",
        "the op: its name in the framework, else the XLA instruction, else the kernel",
        "str",
        role=Role.NAME,
    ),
    Field(
        "occurrences",
        "count",
        "runs of the op; on a device, all kernels of one run count once",
        "int",
        label="Count",
    ),
    Field("total_us", "us", "total time, with nested ops"),
    Field("avg_us", "us", "total time divided by occurrences"),
    Field("total_self_us", "us", "self time, without nested ops"),
    Field("avg_self_us", "us", "self time divided by occurrences"),
    Field("self_percent", "percent", "self time as a share of that of all ops on the same side"),
    Field(
        "cumulative_self_percent",
        "percent",
        "sum of `self_percent` from the side's first row to this one",
        label="Cumulative",
    ),
    Field("gflop_per_s", "GFLOP/s", "recorded floating-point operations per total time", label="Compute rate"),
    Field(
        "gib_per_s",
        "GiB/s",
        "recorded bytes that the op accesses or copies, per total time; unknown for the start and the end of "
        "asynchronous copies, whose time is not that of the copy",
        label="Memory rate",
    ),
    Field("flop_per_byte", "FLOP/byte", "the operations divided by the bytes", label="Intensity"),
    Field(
        "tensor_core_percent",
        "percent",
        "share of the op's kernel time on tensor cores (AMD: matrix cores); unknown if no kernel name shows it",
    ),
    Field(
        "bound_by",
        "text",
        "`compute` or `memory`, whichever is closer to the device's recorded peak rate; unknown without recorded peaks "
        "or without operations and bytes",
        "str",
        role=Role.TERM,
    ),
    Field(
        "eager_percent",
        "percent",
        "self time of the op's runs on the host that were dispatched one by one; the rest runs in traced functions; "
        "unknown if not recorded",
    ),
    *(
        Field(f"{side}_{name}", "percent", f"{meaning} {side}; 0 for ops that ran on the {other}")
        for side, other in (("device", "host"), ("host", "device"))
        for name, meaning in (
            ("self_percent", "share of the self time of all ops on the"),
            ("cumulative_self_percent", "sum of these shares up to this row, for the"),
        )
    ),
    Field("self_percent_with_idle", "percent", "self time as a share of the self time of all ops and idle time"),
    Field(
        "cumulative_self_percent_with_idle",
        "percent",
        "sum of these shares up to this row, with idle time ranked among the ops",
        label="Cumulative",
    ),
)
_PARTS = (
    Part("Ops", ("rank", "where", "type", "name", "occurrences", "total_self_us", "self_percent")),
    Part("Times of ops", ("rank", "name", "total_us", "avg_us", "avg_self_us", "cumulative_self_percent")),
    Part(
        "Rates of ops",
        (
            *("rank", "name", "gflop_per_s", "gib_per_s", "flop_per_byte", "tensor_core_percent", "bound_by"),
            "eager_percent",
        ),
    ),
    Part(
        "Shares of ops",
        (
            *("rank", "name", "device_self_percent", "device_cumulative_self_percent"),
            *("host_self_percent", "host_cumulative_self_percent"),
            *("self_percent_with_idle", "cumulative_self_percent_with_idle"),
        ),
    ),
)
TOTAL_FIELDS: tuple[Field, ...] = tuple(
    field
    for side, busy, idle in (
        ("device", "kernels, copies and ops of all devices together", "each device's first and last work"),
        ("host", "ops on all threads together", "each thread's first and last op"),
    )
    for field in (
        Field(
            f"{side}_ops",
            "count",
            f"different ops that ran on the {side}; unknown if one of several hosts has more than are kept",
            "int",
        ),
        Field(f"{side}_self_us", "us", f"self time of {busy}"),
        Field(f"{side}_idle_us", "us", f"total time without any between {idle}"),
    )
)
DISTRIBUTION_FIELDS: tuple[Field, ...] = (
    Field("where", "text", "`host` or `device`", "str", role=Role.PLACE),
    Field("by", "text", "`type` for op types, `op` for single ops", "str", role=Role.TERM),
    Field(
        "name",
        "text",
        "the type or the op; `others` for all not listed; `IDLE` for idle time",
        "str",
        role=Role.NAME,
    ),
    Field("self_us", "us", "self time"),
    Field("percent", "percent", "share of the self time on this side; unknown for idle time"),
    Field("percent_with_idle", "percent", "share of self time and idle time on this side"),
)


IDLE_FIELDS: tuple[Field, ...] = (
    Field("where", "text", "`host` or `device`", "str", role=Role.PLACE),
    Field("type", "text", "`IDLE`", "str", role=Role.TYPE),
    Field("name", "text", "`IDLE`: idle time is not an op", "str", role=Role.TERM),
    Field("rank_with_idle", "number", "its place among the ops of its side, by self time", "int", role=Role.ORDINAL),
    Field("total_self_us", "us", "idle time, of all threads or devices together", label="Idle time"),
    *(field for field in FIELDS if field.name in ("self_percent_with_idle", "cumulative_self_percent_with_idle")),
)


@dataclass(frozen=True)
class Partial:
    """The part of one host."""

    origin: Origin
    device: Side
    on_host: Side
    stand_in: str | None
    attributed: Shares
    peaks: Peaks | None
    graphs: tuple[TracedGraph, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OpStatsReport(Report):
    """Ops and their times; the FIELDS tables of this module explain its parts."""

    TOOL: ClassVar[str] = "op-stats"

    rows: tuple[dict[str, Cell], ...]
    idle: tuple[dict[str, Cell], ...]
    graphs: tuple[dict[str, Cell], ...]
    totals: dict[str, Cell]
    distributions: tuple[dict[str, Cell], ...]
    attribution: dict[str, Cell]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "rows": list(self.rows),
            "idle": list(self.idle),
            "graphs": list(self.graphs),
            "totals": self.totals,
            "distributions": list(self.distributions),
            "attribution": self.attribution,
        }

    def sections(self) -> Sequence[Section]:
        """The ops, the distribution of their time, and how far it can be attributed."""
        spread = self.distributions
        return [
            Rows("rows", "Ops", FIELDS, self.rows, _EMPTY, _PARTS, _shorten_name),
            Rows("idle", "Idle time", IDLE_FIELDS, self.idle, "no idle time"),
            Rows(
                "distributions",
                "Self time by type and by op",
                DISTRIBUTION_FIELDS,
                spread,
                "no ops",
                brief=_shorten_name,
            ),
            Rows("graphs", "Graphs that the program traced", GRAPH_FIELDS, self.graphs, _NO_GRAPHS),
            Figures("totals", "Totals", TOTAL_FIELDS, self.totals),
            Figures("attribution", "How the ops of device work are known", attribution.FIELDS, self.attribution),
        ]


def _shorten_name(row: Row) -> Row:
    """The row with a kernel name that fits on a screen; paths of ops are shortened where they are shown."""
    return row if "/" in str(row["name"]) else row | {"name": brief(str(row["name"]))}


_EMPTY = (
    "no ops: neither host nor device recorded any; record with ProfilerOptions(host_tracer_level=2) and, on a GPU or "
    "TPU, device_tracer_level=1"
)
_NO_GRAPHS = "no graphs: captures by Stepscope list the functions that TensorFlow traced"


COMPARABLES = (
    Comparable(
        id="rows",
        title="Ops",
        keys=fields_named(FIELDS, "where", "type", "name"),
        measure=Field("total_self_us", "us", "self time of the op, over all threads and devices"),
        count="occurrences",
        is_total=True,
        empty="neither side has ops",
    ),
)


# -- one host ------------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> Partial:
    """The part of one host."""
    on_host, on_device = host_work(trace), device_work(trace)
    return Partial(
        origin=origin_of(trace),
        device=side_of(trace, on_device, device_calls(trace, on_device), device_idle(trace, on_device.rows)),
        on_host=side_of(trace, on_host, None, host_idle(trace, on_host)),
        stand_in=_STAND_INS.get(on_host.stand_in) if on_host.stand_in else None,
        attributed=shares(trace),
        peaks=peaks_of(trace),
        graphs=traced_graphs(trace),
    )


# -- all hosts -----------------------------------------------------------------------------------------------------


def condense(partials: Sequence[Partial]) -> list[Partial]:
    """The partials with the ops of all hosts in few of them: those of devices in the first with the same peaks."""
    condensed = [replace(part, device=NO_OPS, on_host=NO_OPS) for part in partials]
    condensed[0] = replace(condensed[0], on_host=sum_sides([part.on_host for part in partials]))
    alike: dict[tuple[bool, Peaks | None], list[int]] = {}
    for at, part in enumerate(partials):
        alike.setdefault((bool(part.device.ops), part.peaks), []).append(at)
    for places in alike.values():
        device = sum_sides([partials[at].device for at in places])
        condensed[places[0]] = replace(condensed[places[0]], device=device)
    return condensed


def merge(partials: Sequence[Partial]) -> OpStatsReport:
    """The ops of all hosts together."""
    sides = {
        "device": merge_sides([part.device for part in partials]),
        "host": merge_sides([part.on_host for part in partials]),
    }
    stated = {part.peaks for part in partials if part.device.ops}
    peaks = stated.pop() if len(stated) == 1 else None
    rows: list[dict[str, Cell]] = []
    for name, side in sides.items():
        rows += side_rows(name, side, len(rows), peaks)
    return OpStatsReport(
        **header([part.origin for part in partials], _warnings(partials, sides)),
        rows=tuple(rows),
        idle=tuple(row for name, side in sides.items() for row in idle_row(name, side)),
        graphs=graph_rows([graph for part in partials for graph in part.graphs]),
        totals={key: value for name, side in sides.items() for key, value in totals(name, side, len(partials)).items()},
        distributions=tuple(row for name, side in sides.items() for row in distributions(name, side)),
        attribution=dict(attribution.figures([part.attributed for part in partials])),
    )


def _warnings(partials: Sequence[Partial], sides: dict[str, Side]) -> list[str]:
    if not any(side.ops for side in sides.values()):
        return [_EMPTY]
    stand_ins = dict.fromkeys(part.stand_in for part in partials if part.stand_in)
    found = [f"a host recorded no ops: {what} are listed instead" for what in stand_ins]
    for name, side in sides.items():
        if side.left_out:
            share = percent(side.left_out_ps, side.self_ps) or 0.0
            found.append(f"{side.left_out:,} ops on the {name} with {share:.2g} % of its self time are not listed")
    return found
