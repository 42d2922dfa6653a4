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

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from stepscope.analysis.ops.op_sides import OPS, RecordedPeaks, count_ops, host_idle, peaks_of
from stepscope.analysis.trace import attribution
from stepscope.analysis.trace.attribution import Shares, shares
from stepscope.analysis.trace.op_work import device_calls, device_idle, device_work, host_work
from stepscope.analysis.trace.origin import Origin, header, origin_of, session_recorder
from stepscope.analysis.trace.program_facts import TracedGraph, traced_graphs
from stepscope.analysis.trace.remedies import HOST_ACTIVITY, remedy
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Comparable,
    Field,
    Part,
    Report,
    Role,
    Row,
    Table,
    as_figures,
    as_table,
    fields_named,
    make_rows,
    percent,
    round_6,
    round_us,
)
from stepscope.report.columns import percents
from stepscope.report.relation import Counted, Merged, Relation
from stepscope.vocabulary.kernel_names import brief

# ---- The ops of one side of all hosts as rows ------------------------------------------------------------------------
# their shares, rates and time distribution.


TOP = 10  # of a distribution
IDLE = "IDLE"  # the name and type of idle time, which is not an op

TYPES = Relation(("type",), ("self_ps",), order=("-self_ps", "type"))


@dataclass(frozen=True)
class OpSide:
    """The ops of one side of all hosts, `device` or `host`, and the time without any."""

    where: str
    ops: Merged
    idle_ps: int

    @property
    def self_ps(self) -> int:
        """Self time of all ops, also of those that are not listed."""
        return int(self.ops.total("self_ps"))


def side_rows(side: OpSide, before: int, peaks: RecordedPeaks | None) -> Table:
    """The rows of one side; `before` rows precede them."""
    ops = side.ops
    return ops.table(
        FIELDS,
        rank=[*range(before + 1, before + 1 + len(ops))],
        side=side.where,
        occurrences=ops["calls"],
        avg_us=ops.mean("total_ps", "calls"),
        total_self_us=[*map(round_us, ops["self_ps"])],
        avg_self_us=ops.mean("self_ps", "calls"),
        **_rates(ops),
        bound_by=_bounds(ops, peaks) if peaks else None,
        eager_percent=_percents(ops["eager_ps"], ops["self_ps"]),
        **_shares(side),
    )


def _shares(side: OpSide) -> dict[str, Sequence[float | None]]:
    own, idle = side.self_ps, side.idle_ps
    nothing: list[float | None] = [0.0] * len(side.ops)
    self_ps = np.array(side.ops["self_ps"], np.int64)
    so_far = np.cumsum(self_ps)
    here, up_to_here = percents(self_ps, own), percents(so_far, own)
    on_device = side.where == "device"
    return {
        "self_percent": here,
        "cumulative_self_percent": up_to_here,
        "self_percent_with_idle": percents(self_ps, own + idle),
        "cumulative_self_percent_with_idle": percents(so_far + np.where(idle >= self_ps, idle, 0), own + idle),
        "device_self_percent": here if on_device else nothing,
        "device_cumulative_self_percent": up_to_here if on_device else nothing,
        "host_self_percent": nothing if on_device else here,
        "host_cumulative_self_percent": nothing if on_device else up_to_here,
    }


def idle_row(side: OpSide) -> list[Row]:
    """The idle time of one side, ranked among its ops; none if the side has no idle time."""
    own, idle = side.self_ps, side.idle_ps
    if not len(side.ops) or idle <= 0:
        return []
    longer = [ps for ps in side.ops["self_ps"] if ps > idle]
    return [
        {
            "side": side.where, "type": IDLE, "name": IDLE, "rank_with_idle": len(longer) + 1,
            "total_self_us": round_us(idle), "self_percent_with_idle": percent(idle, own + idle),
            "cumulative_self_percent_with_idle": percent(sum(longer) + idle, own + idle),
        }
    ]  # fmt: skip


def _percents(amounts: Sequence[int | None], wholes: Sequence[int]) -> list[float | None]:
    return [None if part is None else percent(part, whole) for part, whole in zip(amounts, wholes, strict=True)]


def _rates(ops: Merged) -> dict[str, list[float | None]]:
    def rates(amounts: str, per: str, scale: float) -> list[float | None]:
        pairs = zip(ops[amounts], ops[per], strict=True)
        return [round_6(amount / whole * scale) if amount is not None and whole else None for amount, whole in pairs]

    return {
        "gflop_per_s": rates("flops", "total_ps", 1e3),
        "gib_per_s": rates("bytes", "total_ps", 1e12 / 2**30),
        "flop_per_byte": rates("flops", "bytes", 1),
        "tensor_core_percent": _percents(ops["tensor_ps"], ops["kernel_ps"]),
    }


def _bounds(ops: Merged, peaks: RecordedPeaks) -> list[str | None]:
    needed = [
        ((flops or 0.0) / peaks.flops, (moved or 0.0) / peaks.bytes)
        for flops, moved in zip(ops["flops"], ops["bytes"], strict=True)
    ]
    return [
        None if not compute and not memory else "compute" if compute >= memory else "memory"
        for compute, memory in needed
    ]


def totals(side: OpSide, hosts: int) -> Row:
    """The figures of one side over `hosts` hosts."""
    # An op left out on one host may also be on another, listed or left out.
    ops = None if side.ops.left_out and hosts > 1 else len(side.ops) + side.ops.left_out
    figures = {"ops": ops, "self_us": round_us(side.self_ps), "idle_us": round_us(side.idle_ps)}
    return {f"{side.where}_{name}": figure for name, figure in figures.items()}


def distributions(side: OpSide) -> Iterator[Row]:
    """The distribution of one side's self time over types and over ops."""
    own, idle = side.self_ps, side.idle_ps
    for by, rows, column in (("type", side.ops.regroup(TYPES), "type"), ("op", side.ops, "name")):
        shown = [*zip(rows[column], rows["self_ps"], strict=True)][:TOP]
        others = own - sum(ps for _, ps in shown)
        shown += [("others", others)] if others > 0 else []
        for name, ps in shown:
            shares = {"percent": percent(ps, own), "percent_with_idle": percent(ps, own + idle)}
            yield {"side": side.where, "by": by, "name": name, "self_us": round_us(ps), **shares}
        if shown and idle:
            shares = {"percent": None, "percent_with_idle": percent(idle, own + idle)}
            yield {"side": side.where, "by": by, "name": IDLE, "self_us": round_us(idle), **shares}


# ---- The graphs that the program traced, as rows of `op-stats` -------------------------------------------------------
# how many nodes of which types, and which nobody uses.


_MOST_TYPES = 5

GRAPH_FIELDS: tuple[Field, ...] = (
    Field("graph", "text", "the function that TensorFlow traced (`tf.function`)", role=Role.TERM),
    Field("nodes", "count", "nodes of its graph before TensorFlow optimizes it", "int"),
    Field("op_types", "text", "the most frequent types of nodes, with their numbers", role=Role.TEXT),
    Field("unused_nodes", "count", "nodes on which no result and no effect of the function depends", "int"),
    Field(
        "unused_layers",
        "text",
        "scopes of unused nodes that multiply or convolve: layers whose output nothing uses",
        role=Role.TERM,
    ),
)


def graph_rows(graphs: Sequence[TracedGraph]) -> Table:
    """A row for each graph, the largest first; of those of one name on several hosts the largest."""
    largest: dict[str, TracedGraph] = {}
    for graph in sorted(graphs, key=lambda each: (-each.nodes, each.name)):
        largest.setdefault(graph.name, graph)
    return make_rows(
        GRAPH_FIELDS,
        [*largest.values()],
        graph=[*largest],
        op_types=_list_types,
        unused_nodes=lambda graph: graph.unused,
        unused_layers=lambda graph: ", ".join(graph.unused_layers),
    )


def _list_types(graph: TracedGraph) -> str:
    types = sorted(graph.types.items(), key=lambda item: (-item[1], item[0]))[:_MOST_TYPES]
    return ", ".join(f"{count} {name}" for name, count in types)


K = EventKind

_STAND_INS = {
    K.TRACED_FUNCTION: "the traced functions that it called",
    K.ANNOTATION: "the ranges that the program named",
    K.PYTHON_CALL: "the Python functions that it ran",
}

FIELDS: tuple[Field, ...] = (
    Field("rank", "number", "rank: device ops by self time, then host ops by self time", "int", role=Role.ORDINAL),
    Field("side", "text", "`host` or `device`", role=Role.PLACE),
    Field("type", "text", "the framework's type of the op; for copies the direction", role=Role.TYPE),
    Field(
        "name", "text", "the op: its name in the framework, else the XLA instruction, else the kernel", role=Role.NAME
    ),
    Field(
        "occurrences", "count", "runs of the op; on a device, all kernels of one run count once", "int", label="Count"
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
    Part("Ops", ("rank", "side", "type", "name", "occurrences", "total_self_us", "self_percent")),
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
    for side, all_of, busy, idle in (
        ("device", "devices", "kernels, copies and ops of all devices together", "each device's first and last work"),
        ("host", "threads", "ops on all threads together", "each thread's first and last op"),
    )
    for field in (
        Field(
            f"{side}_ops",
            "count",
            f"different ops that ran on the {side}; unknown if one of several hosts has more than are kept",
            "int",
        ),
        Field(f"{side}_self_us", "us", f"self time of {busy}", label=f"Self, all {all_of}"),
        Field(f"{side}_idle_us", "us", f"total time without any between {idle}", label=f"Idle, all {all_of}"),
    )
)
DISTRIBUTION_FIELDS: tuple[Field, ...] = (
    Field("side", "text", "`host` or `device`", role=Role.PLACE),
    Field("by", "text", "`type` for op types, `op` for single ops", role=Role.TERM),
    Field("name", "text", "the type or the op; `others` for all not listed; `IDLE` for idle time", role=Role.NAME),
    Field("self_us", "us", "self time"),
    Field("percent", "percent", "share of the self time on this side; unknown for idle time"),
    Field("percent_with_idle", "percent", "share of self time and idle time on this side"),
)


IDLE_FIELDS: tuple[Field, ...] = (
    Field("side", "text", "`host` or `device`", role=Role.PLACE),
    Field("type", "text", "`IDLE`", role=Role.TYPE),
    Field("name", "text", "`IDLE`: idle time is not an op", role=Role.TERM),
    Field("rank_with_idle", "number", "its place among the ops of its side, by self time", "int", role=Role.ORDINAL),
    Field("total_self_us", "us", "idle time, of all threads or devices together", label="Idle time"),
    *(field for field in FIELDS if field.name in ("self_percent_with_idle", "cumulative_self_percent_with_idle")),
)


@dataclass(frozen=True)
class OpsOfHost:
    """The part of one host; `peaks` has those of its devices if they ran an op."""

    origin: Origin
    device: Counted
    on_host: Counted
    device_idle_ps: int
    host_idle_ps: int
    stand_in: str | None
    attributed: Shares
    peaks: list[RecordedPeaks | None]
    graphs: tuple[TracedGraph, ...] = ()


RELATIONS = {"device": OPS, "on_host": OPS}


def _shorten_name(row: Row) -> Row:
    """The row with a kernel name that fits on a screen; paths of ops are shortened where they are shown."""
    return row if "/" in str(row["name"]) else row | {"name": brief(str(row["name"]))}


def _empty(recorder: str) -> str:
    return f"no ops: neither host nor device recorded any; {remedy(HOST_ACTIVITY, recorder)}"


_NO_GRAPHS = "no graphs: captures by Stepscope list the functions that TensorFlow traced"


@dataclass(frozen=True, kw_only=True)
class OpStatsReport(Report):
    """Ops and their times; the FIELDS tables of this module explain its parts."""

    TOOL: ClassVar[str] = "op-stats"
    SCHEMA_VERSION: ClassVar[int] = 2

    rows: Table = as_table("Ops", FIELDS, lambda report: _empty(report.recorder), _PARTS, _shorten_name)
    idle: Table = as_table("Idle time", IDLE_FIELDS, "no idle time")
    distributions: Table = as_table("Self time by type and by op", DISTRIBUTION_FIELDS, "no ops", brief=_shorten_name)
    graphs: Table = as_table("Graphs that the program traced", GRAPH_FIELDS, _NO_GRAPHS)
    totals: Row = as_figures("Totals", TOTAL_FIELDS)
    attribution: Row = as_figures("How the ops of device work are known", attribution.FIELDS)


COMPARABLES = (
    Comparable(
        id="rows",
        title="Ops",
        keys=fields_named(FIELDS, "side", "type", "name"),
        measure=Field("total_self_us", "us", "self time of the op, over all threads and devices"),
        count="occurrences",
        is_total=True,
        empty="neither side has ops",
    ),
)


def partial(trace: HostTrace) -> OpsOfHost:
    """The part of one host."""
    on_host, on_device = host_work(trace), device_work(trace)
    return OpsOfHost(
        origin=origin_of(trace),
        device=count_ops(trace, on_device, device_calls(trace, on_device)),
        on_host=count_ops(trace, on_host, None),
        device_idle_ps=device_idle(trace, on_device.rows),
        host_idle_ps=host_idle(trace, on_host),
        stand_in=_STAND_INS.get(on_host.stand_in) if on_host.stand_in else None,
        attributed=shares(trace),
        peaks=[peaks_of(trace)] if on_device.ops else [],
        graphs=traced_graphs(trace),
    )


def merge(partials: Sequence[OpsOfHost]) -> OpStatsReport:
    """The ops of all hosts together."""
    device = OpSide(
        "device", OPS.merge([part.device for part in partials]), sum(part.device_idle_ps for part in partials)
    )
    host = OpSide("host", OPS.merge([part.on_host for part in partials]), sum(part.host_idle_ps for part in partials))
    stated = {peaks for part in partials for peaks in part.peaks}
    peaks = stated.pop() if len(stated) == 1 else None
    return OpStatsReport(
        **header([part.origin for part in partials], _warnings(partials, (device, host))),
        rows=(*side_rows(device, 0, peaks), *side_rows(host, len(device.ops), None)),
        idle=(*idle_row(device), *idle_row(host)),
        graphs=graph_rows([graph for part in partials for graph in part.graphs]),
        totals=totals(device, len(partials)) | totals(host, len(partials)),
        distributions=(*distributions(device), *distributions(host)),
        attribution=dict(attribution.figures([part.attributed for part in partials])),
    )


def _warnings(partials: Sequence[OpsOfHost], sides: Sequence[OpSide]) -> list[str]:
    if not any(len(side.ops) for side in sides):
        return [_empty(session_recorder([part.origin for part in partials]))]
    stand_ins = dict.fromkeys(part.stand_in for part in partials if part.stand_in)
    found = [f"a host recorded no ops: {what} are listed instead" for what in stand_ins]
    for side in sides:
        if side.ops.left_out:
            share = percent(side.ops.rest["self_ps"], side.self_ps) or 0.0
            found.append(
                f"{side.ops.left_out:,} ops on the {side.where} with {share:.2g} % of its self time are not listed"
            )
    return found
