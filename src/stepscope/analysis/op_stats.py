"""The tool `op-stats`: every op that ran, on the hosts and on the devices.

Total time includes what runs inside an op, self time does not. Percentages are of the self time of all ops on the same
side: host ops say nothing of the device and the other way round, and read 0 there. Idle time is not an op; the columns
with idle time show the shares that remain if it is counted in.

On a host, an op's time is that of the thread that runs it, so that ops on several threads add up to more than the time
that passes. Idle is the time between the first and the last op of each thread in which it runs none. On a device, an
op's time is that of its kernels and copies; idle is the time between the first and the last work of each device in
which it does none. Work that cannot be attributed to an op has a row under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from stepscope import kernels
from stepscope.analysis import attribution
from stepscope.analysis.attribution import Shares, names_of, shares
from stepscope.analysis.kernel_facts import stated_bytes
from stepscope.analysis.kernel_names import brief
from stepscope.analysis.op_work import OpWork, device_calls, device_work, eager_dispatch, host_work
from stepscope.analysis.origin import Origin, header, origin_of
from stepscope.analysis.tensor_cores import kernel_uses, op_is_eligible
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, Mask, number_pairs
from stepscope.report import Cell, Field, Figures, Report, Rows, Section, percent, round_6, round_us

K = EventKind
T = TypeVar("T", int, float)
_HALF = re.compile(r"-(?:start|done)(?:\.\d+)?$")
MOST_OPS = 2000  # kept per host and side
TOP = 10  # of a distribution

_STAND_INS = {
    K.TRACED_FUNCTION: "the traced functions that it called",
    K.ANNOTATION: "the ranges that the program named",
    K.PYTHON_CALL: "the Python functions that it called",
}

_RANK = Field("rank", "number", "place in the list: device ops by self time, then host ops by self time", "int")
_NAME = Field("name", "text", "the op: its name in the framework, else the XLA instruction, else the kernel", "str")
OP_FIELDS: tuple[Field, ...] = (
    _RANK,
    Field("where", "text", "`host` or `device`", "str"),
    Field("type", "text", "the op's type, as the framework calls it; for copies the direction", "str"),
    _NAME,
    Field("occurrences", "count", "how often the op ran; on a device, launches of all its kernels count once", "int"),
    Field("total_self_us", "us", "self time: without what runs inside it"),
    Field("self_percent", "percent", "self time as a share of that of all ops on the same side"),
)
TIME_FIELDS: tuple[Field, ...] = (
    _RANK,
    _NAME,
    Field("total_us", "us", "accumulated time: with what runs inside it"),
    Field("avg_us", "us", "total time divided by occurrences"),
    Field("avg_self_us", "us", "self time divided by occurrences"),
    Field("cumulative_self_percent", "percent", "self_percent added up from the side's first row to this one"),
)
RATE_FIELDS: tuple[Field, ...] = (
    _RANK,
    _NAME,
    Field("gflop_per_s", "GFLOP/s", "floating-point operations that the trace states, by total time"),
    Field(
        "gib_per_s",
        "GiB/s",
        "bytes of memory that the trace states the op accesses or copies, by total time; unknown for the begin and the "
        "end of asynchronous copies, whose time is not that of the copy",
    ),
    Field("flop_per_byte", "FLOP/byte", "the operations divided by the bytes"),
    Field(
        "tensor_core_percent",
        "percent",
        "time of the op's kernels on tensor cores (AMD: matrix cores), of all its kernels; unknown if no name tells",
    ),
    Field(
        "bound_by",
        "text",
        "`compute` or `memory`, whichever comes closer to the peak rate that the trace states for the device; unknown "
        "where it states no peaks or no operations and bytes",
        "str",
    ),
    Field(
        "eager_percent",
        "percent",
        "self time of the op's runs on the host that were dispatched one by one; the rest runs in traced functions; "
        "unknown where the trace does not tell",
    ),
)
SHARE_FIELDS: tuple[Field, ...] = (
    _RANK,
    _NAME,
    *(
        Field(f"{side}_{name}", "percent", f"{meaning} {side}; 0 for ops that ran on the {other}")
        for side, other in (("device", "host"), ("host", "device"))
        for name, meaning in (
            ("self_percent", "share of the self time of all ops on the"),
            ("cumulative_self_percent", "the same added up to this row, for the"),
        )
    ),
    Field("self_percent_with_idle", "percent", "self time as a share of the self time of all ops and idle time"),
    Field(
        "cumulative_self_percent_with_idle",
        "percent",
        "the same added up to this row, with idle time taking its place among the ops by its length",
    ),
)
_BY_CONTRACT = (
    "rank", "where", "type", "name", "occurrences", "total_us", "avg_us", "total_self_us", "avg_self_us",
    "self_percent", "cumulative_self_percent",
)  # fmt: skip
_ALL = {field.name: field for field in (*OP_FIELDS, *TIME_FIELDS, *RATE_FIELDS, *SHARE_FIELDS)}
FIELDS: tuple[Field, ...] = tuple(_ALL[name] for name in dict.fromkeys((*_BY_CONTRACT, *_ALL)))
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
            f"different ops that ran on the {side}; unknown where one of several hosts has more than are kept",
            "int",
        ),
        Field(f"{side}_self_us", "us", f"self time of {busy}"),
        Field(f"{side}_idle_us", "us", f"time without any between {idle}, added up"),
    )
)
DISTRIBUTION_FIELDS: tuple[Field, ...] = (
    Field("where", "text", "`host` or `device`", "str"),
    Field("by", "text", "`type` for op types, `op` for single ops", "str"),
    Field("name", "text", "the type or the op; `others` for all that are not listed; `IDLE` for idle time", "str"),
    Field("self_us", "us", "self time"),
    Field("percent", "percent", "share of the self time on this side; unknown for idle time"),
    Field("percent_with_idle", "percent", "share of self time and idle time on this side"),
)


class OpRow(NamedTuple):
    """One op of one side; times in ps, unknown is None.  A tuple, since thousands are made at a time.

    Attributes:
        calls: how often it ran.
        flops, bytes: what the trace states for all its occurrences.
        tensor_ps, kernel_ps: time of its kernels on tensor cores, and of all its kernels; of the former None if some
            names do not tell.
        eager_ps: self time of its runs that were dispatched one by one, None if unknown.
    """

    name: str
    type: str
    calls: int
    total_ps: int
    self_ps: int
    flops: float | None
    bytes: float | None
    tensor_ps: int | None
    kernel_ps: int
    eager_ps: int | None


_TOTAL_PS, _SELF_PS = OpRow._fields.index("total_ps"), OpRow._fields.index("self_ps")


@dataclass(frozen=True)
class Side:
    """The ops of one side of one host.

    Attributes:
        ops: by self time, longest first, at most MOST_OPS.
        left_out: ops that are not in the list, and `left_out_ps` their self time.
        types: self time by type of all ops.
        idle_ps: see the module.
    """

    ops: list[OpRow]
    left_out: int
    left_out_ps: int
    types: dict[str, int]
    idle_ps: int


@dataclass(frozen=True)
class Peaks:
    """What a device can do at most, as the trace states it: operations and bytes a second."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class Partial:
    """What one host contributes."""

    origin: Origin
    device: Side
    on_host: Side
    stand_in: str | None
    attributed: Shares
    peaks: Peaks | None


@dataclass(frozen=True, kw_only=True)
class OpStatsReport(Report):
    """Ops and their times; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "op-stats"

    rows: tuple[dict[str, Cell], ...]
    totals: dict[str, Cell]
    distributions: tuple[dict[str, Cell], ...]
    attribution: dict[str, Cell]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "rows": list(self.rows),
            "totals": self.totals,
            "distributions": list(self.distributions),
            "attribution": self.attribution,
        }

    def sections(self) -> Sequence[Section]:
        """The ops, how their time spreads, and how far it can be attributed."""
        rows, spread = _briefly(self.rows), _briefly(self.distributions)
        return [
            Rows("Ops", OP_FIELDS, rows, _EMPTY),
            Rows("Self time by type and by op", DISTRIBUTION_FIELDS, spread, "no ops"),
            Rows("Times of ops", TIME_FIELDS, rows, "no ops"),
            Rows("Rates of ops", RATE_FIELDS, rows, "no ops"),
            Rows("Shares of ops", SHARE_FIELDS, rows, "no ops"),
            Figures("Totals", TOTAL_FIELDS, self.totals),
            Figures("How the ops of device work are known", attribution.FIELDS, self.attribution),
        ]

    def main_table(self) -> Rows:
        """The ops with all columns."""
        return Rows("Ops", FIELDS, self.rows, _EMPTY)


def _briefly(rows: Sequence[dict[str, Cell]]) -> tuple[dict[str, Cell], ...]:
    """The same rows with the names of kernels as they fit on a screen; paths of ops are cut by who shows them."""
    return tuple(row if "/" in str(row["name"]) else row | {"name": brief(str(row["name"]))} for row in rows)


_EMPTY = (
    "no ops: neither host nor device recorded any; record with ProfilerOptions(host_tracer_level=2) and, on a GPU or "
    "TPU, device_tracer_level=1"
)


# -- one host ------------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> Partial:
    """What one host contributes."""
    on_host, on_device = host_work(trace), device_work(trace)
    return Partial(
        origin=origin_of(trace),
        device=_side(trace, on_device, device_calls(trace, on_device), _device_idle(trace, on_device.rows)),
        on_host=_side(trace, on_host, None, _host_idle(trace, on_host)),
        stand_in=_STAND_INS.get(on_host.stand_in) if on_host.stand_in else None,
        attributed=shares(trace),
        peaks=_peaks(trace),
    )


def _side(trace: HostTrace, work: OpWork, calls: I64 | None, idle_ps: int) -> Side:
    on_device = calls is not None
    size = len(work.ops)
    count, total, own, own_count, low, high = (np.zeros(size, np.int64) for _ in range(6))
    kernels.ops.add_up(work.op, work.time_ps, count, total, low, high)
    kernels.ops.add_up(work.op, work.own_ps, own_count, own, low, high)
    flops, moved = _costs(trace, work, size, with_copies=on_device)
    tensor, kernel_ps = _tensor_time(trace, work, size)
    eager = [None] * size if on_device else _eager_time(trace, work, size)
    kept = np.argsort(-own, kind="stable")[:MOST_OPS]
    numbers: list[list[Any]] = [column[kept].tolist() for column in (count if calls is None else calls, total, own)]
    listed = kept.tolist()
    others: list[list[Any]] = [[column[at] for at in listed] for column in (flops, moved, tensor, kernel_ps, eager)]
    names = zip(*(work.ops[at] for at in listed), strict=True)
    rows = [OpRow(*row) for row in zip(*names, *numbers, *others, strict=True)]
    rows.sort(key=lambda row: (-row.self_ps, row.name, row.type))
    types: dict[str, int] = {}
    for (_, sort), ps in zip(work.ops, own.tolist(), strict=True):
        types[sort] = types.get(sort, 0) + ps
    left_out_ps = int(own.sum()) - sum(row.self_ps for row in rows)
    return Side(rows, size - len(rows), left_out_ps, types, idle_ps)


def _host_idle(trace: HostTrace, work: OpWork) -> int:
    """Time between the first and the last op of each thread in which it runs none, in ps."""
    rows = work.rows
    if not len(rows):
        return 0
    line, start = trace.events.line[rows], trace.events.start_ps[rows]
    begin = np.flatnonzero(np.append(True, line[1:] != line[:-1]))  # events of a line are neighbours
    first, last = start[begin], np.maximum.reduceat(start + trace.events.duration_ps[rows], begin)
    return int(np.maximum(last - first - np.add.reduceat(work.own_ps, begin), 0).sum())


def _device_idle(trace: HostTrace, rows: I64) -> int:
    """Time between the first and the last work of each device in which it does none, in ps."""
    plane = trace.lines.plane[trace.events.line[rows]]
    idle = 0
    for device in trace.device_planes():
        here = rows[plane == device]
        if len(here):
            here = here[np.argsort(trace.events.start_ps[here], kind="stable")]
            start = trace.events.start_ps[here]
            free = np.maximum.accumulate(start + trace.events.duration_ps[here])[:-1]
            idle += int(np.maximum(start[1:] - free, 0).sum())
    return idle


# -- what an op costs ------------------------------------------------------------------------------------------------


def _costs(
    trace: HostTrace, work: OpWork, size: int, with_copies: bool
) -> tuple[list[float | None], list[float | None]]:
    """Operations and bytes that the trace states for each op."""
    flops = trace.stat_ints(stat_names.FLOPS, rows=work.rows) if trace.has_stat(stat_names.FLOPS) else None
    moved = stated_bytes(trace, work.rows, with_copies)
    if moved is not None:
        moved = np.where(_is_half(work)[work.op], -1, moved)
    return _sums(work.op, flops, size), _sums(work.op, moved, size)


def _is_half(work: OpWork) -> Mask:
    """The begin or the end of something asynchronous, such as `copy-start`: all its bytes, but not its time."""
    return np.array([any(map(_HALF.search, op)) for op in work.ops], np.bool_)


def _sums(op: I32, values: I64 | None, size: int) -> list[float | None]:
    """The sum of each op's values, None where one of them is not stated: it would be too small for the op's time."""
    if values is None:
        return [None] * size
    sums = np.bincount(op, weights=values, minlength=size).tolist()
    unstated = np.bincount(op[values < 0], minlength=size).tolist()
    return [None if lacking else value for value, lacking in zip(sums, unstated, strict=True)]


def _peaks(trace: HostTrace) -> Peaks | None:
    """The peaks of the host's devices; None if a device states none or they differ."""
    found = set()
    for device in trace.device_planes():
        stats = trace.stats_of_plane(device)
        tera, giga = stats.get("peak_teraflops_per_second"), stats.get("peak_hbm_bw_gigabytes_per_second")
        found.add(Peaks(tera * 1e12, giga * 1e9) if isinstance(tera, float) and isinstance(giga, float) else None)
    peaks = found.pop() if len(found) == 1 else None
    return peaks if peaks and peaks.flops > 0 and peaks.bytes > 0 else None


def _eager_time(trace: HostTrace, work: OpWork, size: int) -> Sequence[int | None]:
    """Self time of the runs of each op that were dispatched one by one."""
    eager = eager_dispatch(trace)
    if eager is None:
        return [None] * size
    sums, count, low, high = (np.zeros(size, np.int64) for _ in range(4))
    kernels.ops.add_up(work.op, np.where(eager[work.rows], work.own_ps, 0), count, sums, low, high)
    known: list[int] = sums.tolist()
    return known


def _tensor_time(trace: HostTrace, work: OpWork, size: int) -> tuple[list[int | None], list[int]]:
    """Time of each op's kernels on tensor cores, and of all its kernels."""
    tensor: list[int | None] = [0] * size
    whole = [0] * size
    kernel = (trace.events.kind[work.rows] == K.KERNEL).nonzero()[0]
    name = names_of(trace, work.rows[kernel])
    op = work.op[kernel]
    number, first = number_pairs(op, name)
    count, total, low, high = (np.zeros(len(first), np.int64) for _ in range(4))
    kernels.ops.add_up(number, trace.events.duration_ps[work.rows[kernel]], count, total, low, high)
    names = {row: trace.strings[row] for row in np.unique(name[first]).tolist()}
    eligible = [op_is_eligible(*pair) for pair in work.ops] if len(kernel) else []
    for at, ps in zip(first.tolist(), total.tolist(), strict=True):
        here = int(op[at])
        verdict = kernel_uses(names[int(name[at])], eligible[here])
        whole[here] += ps
        so_far = tensor[here]
        tensor[here] = None if verdict is None or so_far is None else so_far + (ps if verdict else 0)
    return tensor, whole


# -- all hosts -----------------------------------------------------------------------------------------------------


def merge(partials: Sequence[Partial]) -> OpStatsReport:
    """The ops of all hosts together."""
    sides = {
        "device": _whole([part.device for part in partials]),
        "host": _whole([part.on_host for part in partials]),
    }
    stated = {part.peaks for part in partials if part.device.ops}
    peaks = stated.pop() if len(stated) == 1 else None
    rows: list[dict[str, Cell]] = []
    for name, side in sides.items():
        rows += _side_rows(name, side, len(rows), peaks)
    return OpStatsReport(
        **header([part.origin for part in partials], _warnings(partials, sides)),
        rows=tuple(rows),
        totals={
            key: value for name, side in sides.items() for key, value in _totals(name, side, len(partials)).items()
        },
        distributions=tuple(row for name, side in sides.items() for row in _distributions(name, side)),
        attribution=dict(attribution.figures([part.attributed for part in partials])),
    )


def _whole(sides: Sequence[Side]) -> Side:
    """One side of all hosts."""
    types: dict[str, int] = {}
    for side in sides:
        for name, ps in side.types.items():
            types[name] = types.get(name, 0) + ps
    left_out, left_out_ps = sum(side.left_out for side in sides), sum(side.left_out_ps for side in sides)
    return Side(_added_up(sides), left_out, left_out_ps, types, sum(side.idle_ps for side in sides))


def _added_up(sides: Sequence[Side]) -> list[OpRow]:
    merged: dict[tuple[str, str], OpRow] = {}
    for side in sides:
        for row in side.ops:
            key = (row.name, row.type)
            merged[key] = _sum(merged[key], row) if key in merged else row
    return sorted(merged.values(), key=lambda row: (-row.self_ps, row.name, row.type))


def _sum(one: OpRow, other: OpRow) -> OpRow:
    """Both rows as one.  What a host does not tell is unknown of both: the sum would be too small for their time."""

    def plus(mine: T | None, its: T | None) -> T | None:
        return None if mine is None or its is None else mine + its

    return OpRow(
        one.name, one.type, one.calls + other.calls, one.total_ps + other.total_ps, one.self_ps + other.self_ps,
        plus(one.flops, other.flops), plus(one.bytes, other.bytes), plus(one.tensor_ps, other.tensor_ps),
        one.kernel_ps + other.kernel_ps, plus(one.eager_ps, other.eager_ps),
    )  # fmt: skip


def _self_ps(side: Side) -> int:
    return sum(side.types.values())


def _side_rows(where: str, side: Side, before: int, peaks: Peaks | None) -> list[dict[str, Cell]]:
    """The rows of one side, made column by column: there are thousands."""
    columns: dict[str, Sequence[Cell]] = {
        "rank": range(before + 1, before + 1 + len(side.ops)),
        "where": [where] * len(side.ops),
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


def _times(side: Side) -> dict[str, list[float]]:
    calls = np.array([row.calls for row in side.ops], np.int64)
    total, own = (np.array([row[at] for row in side.ops], np.int64) for at in (_TOTAL_PS, _SELF_PS))
    us = {"total_us": total, "avg_us": total / calls, "total_self_us": own, "avg_self_us": own / calls}
    return {name: (np.floor(ps + 0.5) / 1e6).tolist() for name, ps in us.items()}


def _shares(where: str, side: Side) -> dict[str, list[float | None]]:
    own, idle = _self_ps(side), side.idle_ps
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


def _percents(parts: I64, whole: int) -> list[float | None]:
    """`percent` of each part."""
    if whole <= 0:
        return [None] * len(parts)
    found: list[float | None] = (np.floor(1e6 * parts / whole + 0.5) / 1e4).tolist()
    return found


def _rates(side: Side) -> dict[str, list[float | None]]:
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


def _bound_by(row: OpRow, peaks: Peaks) -> str | None:
    compute, memory = (row.flops or 0.0) / peaks.flops, (row.bytes or 0.0) / peaks.bytes
    return None if not compute and not memory else "compute" if compute >= memory else "memory"


def _totals(where: str, side: Side, hosts: int) -> dict[str, Cell]:
    # What one host left out another may have, in its list or left out as well.
    ops = None if side.left_out and hosts > 1 else len(side.ops) + side.left_out
    return {
        f"{where}_ops": ops,
        f"{where}_self_us": round_us(_self_ps(side)),
        f"{where}_idle_us": round_us(side.idle_ps),
    }


def _distributions(where: str, side: Side) -> list[dict[str, Cell]]:
    """How the self time of one side spreads over types and over ops."""
    types, ops = list(side.types.items()), [(row.name, row.self_ps) for row in side.ops]
    return [*_distribution(where, "type", types, side), *_distribution(where, "op", ops, side)]


def _distribution(where: str, by: str, found: list[tuple[str, int]], side: Side) -> list[dict[str, Cell]]:
    own, idle = _self_ps(side), side.idle_ps
    ranked = sorted(found, key=lambda item: (-item[1], item[0]))
    shown = ranked[:TOP]
    others = own - sum(ps for _, ps in shown)
    shown += [("others", others)] if others > 0 else []
    rows: list[dict[str, Cell]] = [
        {
            "where": where, "by": by, "name": name, "self_us": round_us(ps), "percent": percent(ps, own),
            "percent_with_idle": percent(ps, own + idle),
        }
        for name, ps in shown
    ]  # fmt: skip
    if rows and idle:
        rows.append({
            "where": where, "by": by, "name": "IDLE", "self_us": round_us(idle), "percent": None,
            "percent_with_idle": percent(idle, own + idle),
        })  # fmt: skip
    return rows


def _warnings(partials: Sequence[Partial], sides: dict[str, Side]) -> list[str]:
    if not any(side.ops for side in sides.values()):
        return [_EMPTY]
    found = attribution.warning([part.attributed for part in partials])
    stand_ins = dict.fromkeys(part.stand_in for part in partials if part.stand_in)
    found += [f"a host recorded no ops, so {what} stand for them" for what in stand_ins]
    for name, side in sides.items():
        if side.left_out:
            share = percent(side.left_out_ps, _self_ps(side)) or 0.0
            found.append(f"{side.left_out:,} ops on the {name} with {share:.2g} % of its self time are not listed")
    return found
