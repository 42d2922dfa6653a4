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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis import attribution
from stepscope.analysis.attribution import Shares, attribute, instruction_names, names_of, number_pairs, shares
from stepscope.analysis.grouping import forest
from stepscope.analysis.kernel_facts import copied_bytes
from stepscope.analysis.kernel_names import brief
from stepscope.analysis.op_names import op_name
from stepscope.analysis.tensor_cores import kernel_uses, op_is_eligible
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.report import Cell, Field, Figures, Report, Rows, Section, percent

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
K = EventKind
MOST_OPS = 2000  # kept per host and side
TOP = 10  # of a distribution

_HOST_KINDS = (K.OP, K.BACKWARD, K.ITERATOR, K.COLLECTIVE_CALL, K.CHECKPOINT, K.INPUT_WAIT)
_INSTEAD = (K.TRACED_FUNCTION,)  # on a host without ops
_COPIES = (
    K.COPY_HOST_TO_DEVICE, K.COPY_DEVICE_TO_HOST, K.COPY_DEVICE_TO_DEVICE, K.COPY_PEER, K.COPY_OTHER, K.MEMSET,
)  # fmt: skip

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
    Field("gib_per_s", "GiB/s", "bytes of memory that the trace states the op accesses or copies, by total time"),
    Field("flop_per_byte", "FLOP/byte", "the operations divided by the bytes"),
    Field(
        "tensor_core_percent",
        "percent",
        "time of the op's kernels on tensor cores (AMD: matrix cores), of all its kernels; unknown if no name tells",
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
        Field(f"{side}_ops", "count", f"different ops that ran on the {side}", "int"),
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


@dataclass(frozen=True)
class OpRow:
    """One op of one side; times in ps, unknown is None.

    Attributes:
        calls: how often it ran.
        flops, bytes: what the trace states for all its occurrences.
        tensor_ps, kernel_ps: time of its kernels on tensor cores, and of all its kernels; of the former None if some
            names do not tell.
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
class Partial:
    """What one host contributes."""

    host: str
    device: Side
    on_host: Side
    instead: bool
    attributed: Shares
    problems: list[str]
    partial: bool


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


@dataclass(frozen=True)
class _Pieces:
    """Events and the ops they belong to: int64, int64, int32 and int64 of shape (n,); `ops` are name and type."""

    rows: I64
    time_ps: I64
    op: I32
    own_ps: I64
    ops: list[tuple[str, str]]


def partial(trace: HostTrace) -> Partial:
    """What one host contributes."""
    on_host, instead = _host_pieces(trace)
    on_device = _device_pieces(trace)
    return Partial(
        host=trace.host,
        device=_side(trace, on_device, _device_calls(trace, on_device), _device_idle(trace, on_device.rows)),
        on_host=_side(trace, on_host, None, _host_idle(trace, on_host)),
        instead=instead,
        attributed=shares(trace),
        problems=[str(problem) for problem in trace.problems] + list(trace.recorder_messages),
        partial=trace.partial,
    )


def _side(trace: HostTrace, pieces: _Pieces, calls: I64 | None, idle_ps: int) -> Side:
    size = len(pieces.ops)
    count, total, own, own_count, low, high = (np.zeros(size, np.int64) for _ in range(6))
    kernels.ops.add_up(pieces.op, pieces.time_ps, count, total, low, high)
    kernels.ops.add_up(pieces.op, pieces.own_ps, own_count, own, low, high)
    flops, moved = _costs(trace, pieces, size, with_copies=calls is not None)
    tensor, kernel_ps = _tensor_time(trace, pieces, size)
    numbers: list[list[Any]] = [column.tolist() for column in (count if calls is None else calls, total, own)]
    columns = [*zip(*pieces.ops, strict=True), *numbers, flops, moved, tensor, kernel_ps]
    kept = np.argsort(-own, kind="stable")[:MOST_OPS].tolist()
    rows = [OpRow(*(column[at] for column in columns)) for at in kept]
    rows.sort(key=lambda row: (-row.self_ps, row.name, row.type))
    types: dict[str, int] = {}
    for (_, sort), ps in zip(pieces.ops, numbers[2], strict=True):
        types[sort] = types.get(sort, 0) + ps
    left_out_ps = int(own.sum()) - sum(row.self_ps for row in rows)
    return Side(rows, size - len(rows), left_out_ps, types, idle_ps)


def _numbered(op: I32, names: Sequence[tuple[str, str]]) -> tuple[I32, list[tuple[str, str]]]:
    """The same with each name once."""
    places: dict[tuple[str, str], int] = {}
    place = np.array([places.setdefault(name, len(places)) for name in names], np.int32)
    return place[op] if len(op) else op, list(places)


# -- host ------------------------------------------------------------------------------------------------------------


def _host_pieces(trace: HostTrace) -> tuple[_Pieces, bool]:
    """The ops on the host's threads; where there are none, the traced functions, and True."""
    kind = trace.events.kind
    threads = (trace.lines.kind == LineKind.THREAD)[trace.events.line]
    wanted = np.zeros(256, np.bool_)
    wanted[[int(k) for k in _HOST_KINDS]] = True
    chosen = wanted[kind] & threads
    instead = not chosen.any()
    if instead:
        chosen = np.isin(kind, _INSTEAD) & threads
    # A wait inside a wait is the same wait, seen by the function that implements the op.
    parent = forest(trace).parent
    waits = np.flatnonzero(chosen & (kind == K.INPUT_WAIT))
    inner = waits[(parent[waits] >= 0) & (kind[np.maximum(parent[waits], 0)] == K.INPUT_WAIT)]
    chosen[inner] = False
    rows = np.flatnonzero(chosen)
    op, names = _host_names(trace, rows)
    op, ops = _numbered(op, names)
    time = trace.events.duration_ps[rows]
    return _Pieces(rows, time, op, _own_times(trace, chosen)[rows], ops), instead and bool(len(rows))


def _own_times(trace: HostTrace, counts: NDArray[np.bool_]) -> I64:
    own = np.empty(len(trace.events), np.int64)
    kernels.nesting.self_times(trace.events.duration_ps, forest(trace).parent, counts, own)
    return np.maximum(own, 0)


def _host_names(trace: HostTrace, rows: I64) -> tuple[I32, list[tuple[str, str]]]:
    kind = trace.events.kind[rows]
    instruction = trace.stat_strings(stat_names.HLO_OP)[rows]
    if (instruction > 0).any():
        name_of = instruction_names(trace)
        program = trace.stat_ints(stat_names.PROGRAM_ID)[rows]
        number, first = number_pairs(np.where(instruction > 0, instruction, -names_of(trace, rows)), program)
    else:
        number, first = number_pairs(names_of(trace, rows), kind)
    names = [
        name_of(int(rows[at]), int(instruction[at]))
        if instruction[at] > 0
        else op_name(trace.name_of(int(rows[at])), EventKind(kind[at]))
        for at in first.tolist()
    ]
    return number, names


def _host_idle(trace: HostTrace, pieces: _Pieces) -> int:
    """Time between the first and the last op of each thread in which it runs none, in ps."""
    rows = pieces.rows
    if not len(rows):
        return 0
    line, start = trace.events.line[rows], trace.events.start_ps[rows]
    begin = np.flatnonzero(np.append(True, line[1:] != line[:-1]))  # events of a line are neighbours
    first, last = start[begin], np.maximum.reduceat(start + trace.events.duration_ps[rows], begin)
    return int(np.maximum(last - first - np.add.reduceat(pieces.own_ps, begin), 0).sum())


# -- device ----------------------------------------------------------------------------------------------------------


def _device_pieces(trace: HostTrace) -> _Pieces:
    """Device work by op; copies of an op are apart from its kernels, and work without an op goes by its own name."""
    found = attribute(trace)
    kind = trace.events.kind[found.rows]
    name = np.where(found.op >= 0, -1, names_of(trace, found.rows))
    sort = np.where(np.isin(kind, (*_COPIES, K.COLLECTIVE)), kind, 0).astype(np.int64)
    number, _ = number_pairs(found.op, name)
    number, first = number_pairs(number, sort)

    def name_of(at: int) -> tuple[str, str]:
        op, event_kind = int(found.op[at]), EventKind(kind[at])
        if op < 0:
            return op_name(trace.strings[name[at]], event_kind)
        label, known = found.ops[op]
        return (label, op_name(label, event_kind)[1]) if sort[at] else (label, known)

    op, ops = _numbered(number, [name_of(at) for at in first.tolist()])
    core = (trace.lines.kind == LineKind.DEVICE_OPS)[trace.events.line[found.rows]]
    own = _own_times_of_cores(trace, found.rows, found.time_ps) if core.any() else found.time_ps
    return _Pieces(found.rows, found.time_ps, op, own, ops)


def _own_times_of_cores(trace: HostTrace, rows: I64, time_ps: I64) -> I64:
    """Self times of the ops of TPU cores, which nest by the clock that measured them: int64 of shape (rows,)."""
    line = trace.events.line[rows]
    start = trace.stat_ints(stat_names.DEVICE_OFFSET_PS)[rows]
    if (start < 0).any():
        start = trace.events.start_ps[rows]
    order = np.lexsort((-time_ps, start, line))
    on_stream = (trace.lines.kind == LineKind.STREAM)[line[order]]
    bounds = np.flatnonzero(np.append(True, np.diff(line[order]) != 0))
    duration, parent = time_ps[order], np.full(len(rows), -1, np.int32)
    kernels.nesting.parents(
        start[order], duration, bounds, np.append(bounds[1:], len(rows)), trace.events.kind[rows[order]], on_stream,
        int(K.REGION_BEGIN), int(K.REGION_END), parent, duration.copy(),
    )  # fmt: skip
    own = np.empty(len(rows), np.int64)
    kernels.nesting.self_times(duration, parent, np.ones(len(rows), np.bool_), own)
    own[order] = np.maximum(own, 0)
    return own


def _device_calls(trace: HostTrace, pieces: _Pieces) -> I64:
    """How often each op ran: int64 of shape (ops,).

    One run of an op on the host may launch several kernels, and counts once.  An XLA instruction launches the same
    kernels whenever it runs, so that it ran as often as the rarest of them; an op of several instructions, as often as
    the most frequent.  Of other ops whose run is not in the trace only their most frequent kernel tells.
    """
    found, size = attribute(trace), len(pieces.ops)
    of_xla = found.instruction > 0
    of_host = ~of_xla & (found.run >= 0)
    calls = np.zeros(size, np.int64)
    _, first = number_pairs(pieces.op[of_host], found.run[of_host])
    np.add.at(calls, pieces.op[of_host][first], 1)
    return calls + _xla_runs(trace, pieces, np.flatnonzero(of_xla)) + _most(trace, pieces, ~of_xla & ~of_host)


def _xla_runs(trace: HostTrace, pieces: _Pieces, at: I64) -> I64:
    instruction, first_of = number_pairs(pieces.op[at], attribute(trace).instruction[at])
    kernel, first = number_pairs(instruction, names_of(trace, pieces.rows[at]))
    runs = np.full(len(first_of), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(runs, instruction[first], np.bincount(kernel, minlength=len(first)))
    most = np.zeros(len(pieces.ops), np.int64)
    np.maximum.at(most, pieces.op[at[first_of]], runs)
    return most


def _most(trace: HostTrace, pieces: _Pieces, among: NDArray[np.bool_]) -> I64:
    op = pieces.op[among]
    kernel, first = number_pairs(op, names_of(trace, pieces.rows[among]))
    most = np.zeros(len(pieces.ops), np.int64)
    np.maximum.at(most, op[first], np.bincount(kernel, minlength=len(first)))
    return most


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
    trace: HostTrace, pieces: _Pieces, size: int, with_copies: bool
) -> tuple[list[float | None], list[float | None]]:
    """Operations and bytes that the trace states for each op."""
    flops = trace.stat_ints(stat_names.FLOPS)[pieces.rows] if trace.has_stat(stat_names.FLOPS) else None
    moved = _bytes(trace, pieces.rows, with_copies)
    return _sums(pieces.op, flops, size), _sums(pieces.op, moved, size)


def _sums(op: I32, values: I64 | None, size: int) -> list[float | None]:
    if values is None:
        return [None] * size
    stated = values >= 0
    sums = np.bincount(op[stated], weights=values[stated], minlength=size).tolist()
    any_stated = np.bincount(op[stated], minlength=size).tolist()
    return [value if known else None for value, known in zip(sums, any_stated, strict=True)]


def _bytes(trace: HostTrace, rows: I64, with_copies: bool) -> I64 | None:
    """Bytes that each event accesses or copies, -1 where the trace does not state it; None if it never does."""
    out = None
    for names in (stat_names.BYTES_COPIED, stat_names.BYTES_ACCESSED)[not with_copies :]:
        if trace.has_stat(names):
            stated = trace.stat_ints(names)[rows]
            out = stated if out is None else np.where(stated >= 0, stated, out)
    if with_copies and trace.has_stat(stat_names.COPY_DETAILS):
        text = trace.stat_strings(stat_names.COPY_DETAILS)[rows]
        at = np.flatnonzero(text > 0)
        out = np.full(len(rows), -1, np.int64) if out is None else out
        different, which = np.unique(text[at], return_inverse=True)
        size = [copied_bytes(trace.strings[row]) for row in different.tolist()]
        out[at] = np.array([-1 if value is None else value for value in size], np.int64)[which.reshape(-1)]
    return out


def _tensor_time(trace: HostTrace, pieces: _Pieces, size: int) -> tuple[list[int | None], list[int]]:
    """Time of each op's kernels on tensor cores, and of all its kernels."""
    tensor: list[int | None] = [0] * size
    whole = [0] * size
    kernel = (trace.events.kind[pieces.rows] == K.KERNEL).nonzero()[0]
    name = names_of(trace, pieces.rows[kernel])
    op = pieces.op[kernel]
    number, first = number_pairs(op, name)
    count, total, low, high = (np.zeros(len(first), np.int64) for _ in range(4))
    kernels.ops.add_up(number, trace.events.duration_ps[pieces.rows[kernel]], count, total, low, high)
    names = {row: trace.strings[row] for row in np.unique(name[first]).tolist()}
    eligible = [op_is_eligible(*pair) for pair in pieces.ops] if len(kernel) else []
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
    rows: list[dict[str, Cell]] = []
    for name, side in sides.items():
        rows += _side_rows(name, side, len(rows))
    return OpStatsReport(
        hosts=tuple(part.host for part in partials),
        warnings=tuple(dict.fromkeys(_warnings(partials, sides))),
        partial=any(part.partial for part in partials),
        rows=tuple(rows),
        totals={key: value for name, side in sides.items() for key, value in _totals(name, side).items()},
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
    def plus(a: float | None, b: float | None) -> float | None:
        return a + b if a is not None and b is not None else a if b is None else b

    tensor = None if one.tensor_ps is None or other.tensor_ps is None else one.tensor_ps + other.tensor_ps
    return OpRow(
        one.name, one.type, one.calls + other.calls, one.total_ps + other.total_ps, one.self_ps + other.self_ps,
        plus(one.flops, other.flops), plus(one.bytes, other.bytes), tensor, one.kernel_ps + other.kernel_ps,
    )  # fmt: skip


def _self_ps(side: Side) -> int:
    return sum(side.types.values())


def _us(ps: float) -> float:
    return round(ps / 1e6, 6)


def _side_rows(where: str, side: Side, before: int) -> list[dict[str, Cell]]:
    own, so_far, rows = _self_ps(side), 0, []
    for rank, row in enumerate(side.ops, before + 1):
        so_far += row.self_ps
        rows.append(_cells(rank, where, row) | _shares(where, row.self_ps, so_far, own, side.idle_ps))
    return rows


def _cells(rank: int, where: str, row: OpRow) -> dict[str, Cell]:
    return {
        "rank": rank,
        "where": where,
        "type": row.type,
        "name": row.name,
        "occurrences": row.calls,
        "total_us": _us(row.total_ps),
        "avg_us": _us(row.total_ps / row.calls),
        "total_self_us": _us(row.self_ps),
        "avg_self_us": _us(row.self_ps / row.calls),
        **_rates(row),
    }


def _shares(where: str, self_ps: int, so_far: int, own: int, idle: int) -> dict[str, Cell]:
    here, up_to_here = percent(self_ps, own), percent(so_far, own)
    on_device = where == "device"
    return {
        "self_percent": here,
        "cumulative_self_percent": up_to_here,
        "self_percent_with_idle": percent(self_ps, own + idle),
        "cumulative_self_percent_with_idle": percent(so_far + (idle if idle >= self_ps else 0), own + idle),
        "device_self_percent": here if on_device else 0.0,
        "device_cumulative_self_percent": up_to_here if on_device else 0.0,
        "host_self_percent": 0.0 if on_device else here,
        "host_cumulative_self_percent": 0.0 if on_device else up_to_here,
    }


def _rates(row: OpRow) -> dict[str, Cell]:
    ns = row.total_ps / 1e3
    return {
        "gflop_per_s": round(row.flops / ns, 6) if row.flops is not None and ns else None,
        "gib_per_s": round(row.bytes / ns * 1e9 / 2**30, 6) if row.bytes is not None and ns else None,
        "flop_per_byte": round(row.flops / row.bytes, 6) if row.flops is not None and row.bytes else None,
        "tensor_core_percent": percent(row.tensor_ps, row.kernel_ps) if row.tensor_ps is not None else None,
    }


def _totals(where: str, side: Side) -> dict[str, Cell]:
    return {
        f"{where}_ops": len(side.ops) + side.left_out,
        f"{where}_self_us": _us(_self_ps(side)),
        f"{where}_idle_us": _us(side.idle_ps),
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
            "where": where, "by": by, "name": name, "self_us": _us(ps), "percent": percent(ps, own),
            "percent_with_idle": percent(ps, own + idle),
        }
        for name, ps in shown
    ]  # fmt: skip
    if rows and idle:
        rows.append({
            "where": where, "by": by, "name": "IDLE", "self_us": _us(idle), "percent": None,
            "percent_with_idle": percent(idle, own + idle),
        })  # fmt: skip
    return rows


def _warnings(partials: Sequence[Partial], sides: dict[str, Side]) -> list[str]:
    found = [problem for part in partials for problem in part.problems]
    if not any(side.ops for side in sides.values()):
        return [*found, _EMPTY]
    found += attribution.warning([part.attributed for part in partials])
    if any(part.instead for part in partials):
        found.append("a host recorded no ops, so the traced functions that it called stand for them")
    for name, side in sides.items():
        if side.left_out:
            share = percent(side.left_out_ps, _self_ps(side)) or 0.0
            found.append(f"{side.left_out} ops on the {name} with {share:.2g} % of its self time are not listed")
    return found
