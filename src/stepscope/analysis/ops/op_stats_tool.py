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
from operator import attrgetter
from typing import ClassVar

import numpy as np

from stepscope.analysis.ops.op_sides import (
    NO_OPS,
    OpRow,
    OpsOfSide,
    RecordedPeaks,
    host_idle,
    peaks_of,
    side_of,
    sum_types,
)
from stepscope.analysis.trace import attribution
from stepscope.analysis.trace.attribution import Shares, shares
from stepscope.analysis.trace.op_work import device_calls, device_idle, device_work, host_work
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.program_facts import TracedGraph, traced_graphs
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Part,
    Report,
    Role,
    Row,
    Table,
    add_records,
    as_figures,
    as_table,
    fields_named,
    make_rows,
    percent,
    round_6,
    round_us,
)
from stepscope.vocabulary.kernel_names import brief

# ---- The ops of one side of all hosts as rows ------------------------------------------------------------------------
# their shares, rates and time distribution.


TOP = 10  # of a distribution
IDLE = "IDLE"  # the name and type of idle time, which is not an op

_SUMMED = OpRow._fields[2:]  # all but name and type
_TOTAL_PS, _SELF_PS = OpRow._fields.index("total_ps"), OpRow._fields.index("self_ps")


def merge_sides(sides: Sequence[OpsOfSide]) -> OpsOfSide:
    """One side of all hosts, the longest ops first."""
    summed = sum_sides(sides)
    return replace(summed, ops=sorted(summed.ops, key=lambda row: (-row.self_ps, row.name, row.type)))


def sum_sides(sides: Sequence[OpsOfSide]) -> OpsOfSide:
    """One side of all hosts, ops in the order in which they first appear: sums may be summed again."""
    ops = add_records((row for side in sides for row in side.ops), attrgetter("name", "type"), _SUMMED)
    left_out, left_out_ps = sum(side.left_out for side in sides), sum(side.left_out_ps for side in sides)
    types = sum_types(item for side in sides for item in side.types.items())
    return OpsOfSide(ops, left_out, left_out_ps, types, sum(side.idle_ps for side in sides))


def side_rows(where: str, side: OpsOfSide, before: int, peaks: RecordedPeaks | None) -> list[dict[str, Cell]]:
    """The rows of one side, made column by column: there are thousands."""
    columns: dict[str, Sequence[Cell]] = {
        "rank": range(before + 1, before + 1 + len(side.ops)),
        "side": [where] * len(side.ops),
        "type": [row.type for row in side.ops],
        "name": [row.name for row in side.ops],
        "occurrences": [row.calls for row in side.ops],
        **_times(side),
        **_rates(side),
        "bound_by": [_bound_by(row, peaks) if peaks and where == "device" else None for row in side.ops],
        "eager_percent": [percent(row.eager_ps, row.self_ps) if row.eager_ps is not None else None for row in side.ops],
        **_shares(where, side),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _times(side: OpsOfSide) -> dict[str, list[float]]:
    calls = np.array([row.calls for row in side.ops], np.int64)
    total, own = (np.array([row[at] for row in side.ops], np.int64) for at in (_TOTAL_PS, _SELF_PS))
    us = {"total_us": total, "avg_us": total / calls, "total_self_us": own, "avg_self_us": own / calls}
    return {name: (np.floor(ps + 0.5) / 1e6).tolist() for name, ps in us.items()}


def _shares(where: str, side: OpsOfSide) -> dict[str, list[float | None]]:
    own, idle = side.self_ps, side.idle_ps
    nothing: list[float | None] = [0.0] * len(side.ops)
    self_ps = np.array([row.self_ps for row in side.ops], np.int64)
    so_far = np.cumsum(self_ps)
    here, up_to_here = _percents(self_ps, own), _percents(so_far, own)
    on_device = where == "device"
    return {
        "self_percent": here,
        "cumulative_self_percent": up_to_here,
        "self_percent_with_idle": _percents(self_ps, own + idle),
        "cumulative_self_percent_with_idle": _percents(so_far + np.where(idle >= self_ps, idle, 0), own + idle),
        "device_self_percent": here if on_device else nothing,
        "device_cumulative_self_percent": up_to_here if on_device else nothing,
        "host_self_percent": nothing if on_device else here,
        "host_cumulative_self_percent": nothing if on_device else up_to_here,
    }


def idle_row(where: str, side: OpsOfSide) -> list[dict[str, Cell]]:
    """The idle time of one side, ranked among its ops; none if the side has no idle time."""
    own, idle = side.self_ps, side.idle_ps
    if not side.ops or idle <= 0:
        return []
    longer = [row.self_ps for row in side.ops if row.self_ps > idle]
    return [
        {
            "side": where, "type": IDLE, "name": IDLE, "rank_with_idle": len(longer) + 1,
            "total_self_us": round_us(idle), "self_percent_with_idle": percent(idle, own + idle),
            "cumulative_self_percent_with_idle": percent(sum(longer) + idle, own + idle),
        }
    ]  # fmt: skip


def _percents(parts: I64, merge_sides: int) -> list[float | None]:
    """`percent` of each part."""
    if merge_sides <= 0:
        return [None] * len(parts)
    found: list[float | None] = (np.floor(1e6 * parts / merge_sides + 0.5) / 1e4).tolist()
    return found


def _rates(side: OpsOfSide) -> dict[str, list[float | None]]:
    def rate(amount: float | None, total: float, scale: float) -> float | None:
        return round_6(amount / total * scale) if amount is not None and total else None

    ops = side.ops
    return {
        "gflop_per_s": [rate(row.flops, row.total_ps, 1e3) for row in ops],
        "gib_per_s": [rate(row.bytes, row.total_ps, 1e12 / 2**30) for row in ops],
        "flop_per_byte": [rate(row.flops, row.bytes or 0.0, 1) for row in ops],
        "tensor_core_percent": [
            percent(row.tensor_ps, row.kernel_ps) if row.tensor_ps is not None else None for row in ops
        ],
    }


def _bound_by(row: OpRow, peaks: RecordedPeaks) -> str | None:
    compute, memory = (row.flops or 0.0) / peaks.flops, (row.bytes or 0.0) / peaks.bytes
    return None if not compute and not memory else "compute" if compute >= memory else "memory"


def totals(where: str, side: OpsOfSide, hosts: int) -> dict[str, Cell]:
    """The figures of one side over `hosts` hosts."""
    # An op left out on one host may also be on another, listed or left out.
    ops = None if side.left_out and hosts > 1 else len(side.ops) + side.left_out
    return {f"{where}_ops": ops, f"{where}_self_us": round_us(side.self_ps), f"{where}_idle_us": round_us(side.idle_ps)}


def distributions(where: str, side: OpsOfSide) -> list[dict[str, Cell]]:
    """The distribution of one side's self time over types and over ops."""
    types, ops = list(side.types.items()), [(row.name, row.self_ps) for row in side.ops]
    return [*_distribution(where, "type", types, side), *_distribution(where, "op", ops, side)]


def _distribution(where: str, by: str, found: list[tuple[str, int]], side: OpsOfSide) -> list[dict[str, Cell]]:
    own, idle = side.self_ps, side.idle_ps
    ranked = sorted(found, key=lambda item: (-item[1], item[0]))
    shown = ranked[:TOP]
    others = own - sum(ps for _, ps in shown)
    shown += [("others", others)] if others > 0 else []
    rows: list[dict[str, Cell]] = [
        {
            "side": where, "by": by, "name": name, "self_us": round_us(ps), "percent": percent(ps, own),
            "percent_with_idle": percent(ps, own + idle),
        }
        for name, ps in shown
    ]  # fmt: skip
    if rows and idle:
        rows.append({
            "side": where, "by": by, "name": IDLE, "self_us": round_us(idle), "percent": None,
            "percent_with_idle": percent(idle, own + idle),
        })  # fmt: skip
    return rows


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
class Partial:
    """The part of one host."""

    origin: Origin
    device: OpsOfSide
    on_host: OpsOfSide
    stand_in: str | None
    attributed: Shares
    peaks: RecordedPeaks | None
    graphs: tuple[TracedGraph, ...] = ()


def _shorten_name(row: Row) -> Row:
    """The row with a kernel name that fits on a screen; paths of ops are shortened where they are shown."""
    return row if "/" in str(row["name"]) else row | {"name": brief(str(row["name"]))}


_EMPTY = (
    "no ops: neither host nor device recorded any; record with ProfilerOptions(host_tracer_level=2) and, on a GPU or "
    "TPU, device_tracer_level=1"
)
_NO_GRAPHS = "no graphs: captures by Stepscope list the functions that TensorFlow traced"


@dataclass(frozen=True, kw_only=True)
class OpStatsReport(Report):
    """Ops and their times; the FIELDS tables of this module explain its parts."""

    TOOL: ClassVar[str] = "op-stats"
    SCHEMA_VERSION: ClassVar[int] = 2

    rows: Table = as_table("Ops", FIELDS, _EMPTY, _PARTS, _shorten_name)
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


def condense(partials: Sequence[Partial]) -> list[Partial]:
    """The partials with the ops of all hosts in few of them: those of devices in the first with the same peaks."""
    condensed = [replace(part, device=NO_OPS, on_host=NO_OPS) for part in partials]
    condensed[0] = replace(condensed[0], on_host=sum_sides([part.on_host for part in partials]))
    alike: dict[tuple[bool, RecordedPeaks | None], list[int]] = {}
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


def _warnings(partials: Sequence[Partial], sides: dict[str, OpsOfSide]) -> list[str]:
    if not any(side.ops for side in sides.values()):
        return [_EMPTY]
    stand_ins = dict.fromkeys(part.stand_in for part in partials if part.stand_in)
    found = [f"a host recorded no ops: {what} are listed instead" for what in stand_ins]
    for name, side in sides.items():
        if side.left_out:
            share = percent(side.left_out_ps, side.self_ps) or 0.0
            found.append(f"{side.left_out:,} ops on the {name} with {share:.2g} % of its self time are not listed")
    return found
