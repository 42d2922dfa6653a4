"""The tool `kernel-stats`: every kernel with the op that launched it, how it was launched, and how long it took.

A row is a kernel, its op, and one launch configuration: the same kernel with another grid has a separate row. Rows sum
over hosts and devices. A figure that the trace lacks, or records as garbage, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from stepscope.analysis.ops import device_use, launches
from stepscope.analysis.ops.device_use import DeviceUse
from stepscope.analysis.ops.launches import STREAM_FIELDS, StreamLaunches, launches_of_streams
from stepscope.analysis.trace import attribution
from stepscope.analysis.trace.attribution import Shares, attribute, event_name_rows, shares
from stepscope.analysis.trace.grouping import KERNELS
from stepscope.analysis.trace.kernel_facts import Launch, launches_of
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.model import HostTrace, LineKind, PlaneKind
from stepscope.model.arrays import I64, Groups, distinct, measure_groups
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
    not_in_json,
    percent,
    round_us,
)
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.tensor_cores import kernel_uses, op_is_eligible

MOST_ROWS = 50_000  # kept per host
_FIRST_TENSOR_CORES = 7  # NVIDIA's compute capability

FIELDS: tuple[Field, ...] = (
    Field("rank", "number", "rank by total time, longest first", "int", role=Role.ORDINAL),
    Field("kernel", "text", "the kernel's name; shortened on screens, complete in files", role=Role.NAME),
    Field(
        "op", "text", "the op that launched it; unknown if the trace does not link the kernel to an op", role=Role.NAME
    ),
    Field("registers_per_thread", "count", "registers per thread of the kernel", "int", label="Registers"),
    Field("shared_memory_bytes", "bytes", "static and dynamic shared memory per block", "int", label="Shared"),
    Field("block_dim", "threads", "threads of a block in x, y, z", "ints", label="Block"),
    Field("grid_dim", "blocks", "blocks of the grid in x, y, z, as the tracer counts them", "ints", label="Grid"),
    Field(
        "occupancy_percent",
        "percent",
        "active warps as a share of the device's maximum: the theoretical value; in PyTorch's traces its estimate of "
        "the achieved value",
    ),
    Field(
        "tensor_core_eligible",
        "",
        "whether the op could use tensor cores: it multiplies matrices or convolves",
        "bool",
        label="TC eligible",
    ),
    Field(
        "uses_tensor_core",
        "",
        "whether the kernel computes on tensor cores (AMD: matrix cores), by its name",
        "bool",
        label="TC used",
    ),
    Field("occurrences", "count", "runs of the kernel for this op", "int", label="Count"),
    Field("total_us", "us", "time of all occurrences on the devices"),
    Field("avg_us", "us", "total time divided by occurrences"),
    Field("min_us", "us", "the shortest occurrence"),
    Field("max_us", "us", "the longest occurrence"),
    Field("total_percent", "percent", "total time as a share of the time of all kernels"),
)
_PARTS = (
    Part("Kernels", ("rank", "kernel", "op", "occurrences", "total_us", "total_percent")),
    Part(
        "Single occurrences, and tensor cores",
        ("rank", "kernel", "avg_us", "min_us", "max_us", "tensor_core_eligible", "uses_tensor_core"),
    ),
    Part(
        "Launch configurations of kernels",
        (
            *("rank", "kernel", "registers_per_thread", "shared_memory_bytes", "block_dim", "grid_dim"),
            "occupancy_percent",
        ),
    ),
)
BY_KERNEL_FIELDS: tuple[Field, ...] = (
    Field("kernel", "text", "the kernel's name; `others` for those left out of a very long list", role=Role.NAME),
    Field("occurrences", "count", "its runs, for any op", "int", label="Count"),
    Field("total_us", "us", "its time on the devices"),
    Field("percent", "percent", "share of the time of all kernels"),
    Field("op", "text", "the op that it runs longest for; unknown if not recorded", role=Role.NAME),
    *fields_named(FIELDS, "avg_us", "min_us", "max_us", "uses_tensor_core"),
)
TENSOR_CORE_FIELDS: tuple[Field, ...] = (
    Field("uses_percent", "percent", "share of kernel time on tensor cores", label="On tensor cores"),
    Field("unknown_percent", "percent", "share of kernel time in kernels whose names do not show it"),
    Field("eligible_percent", "percent", "share of kernel time in ops that could use tensor cores"),
    Field(
        "eligible_unused_percent",
        "percent",
        "share of kernel time of such ops in kernels without tensor cores; some only prepare data for the others",
        label="Eligible, not used",
    ),
)


@dataclass(frozen=True)
class KernelRow:
    """One kernel of one op with one launch configuration; `kernel` is its index in the names, times in ps."""

    kernel: int
    op: str | None
    launch: Launch
    eligible: bool | None
    uses: bool | None
    count: int
    total_ps: int
    min_ps: int
    max_ps: int


@dataclass(frozen=True)
class Partial:
    """What one host contributes.

    Attributes:
        names: the kernels' names.
        rows: by total time, longest first, at most MOST_ROWS.
        left_out: how many rows more there are, `left_out_count` occurrences, `left_out_ps` their time.
        devices: kinds of devices in the trace.
        uses: how well kernels fill each device.
    """

    origin: Origin
    names: list[str]
    rows: list[KernelRow]
    left_out: int
    left_out_count: int
    left_out_ps: int
    streams: list[StreamLaunches]
    attributed: Shares
    devices: list[str]
    uses: list[DeviceUse]


def _shorten_name(row: Row) -> Row:
    """The row with a kernel name that fits on a screen."""
    return row | {"kernel": brief(str(row["kernel"]))}


@dataclass(frozen=True, kw_only=True)
class KernelStatsReport(Report):
    """Kernels and launches; the FIELDS tables of this module explain its parts."""

    TOOL: ClassVar[str] = "kernel-stats"

    rows: Table = as_table("Kernels", FIELDS, lambda report: report.empty, _PARTS, _shorten_name)
    by_kernel: Table = as_table("Kernels of all ops", BY_KERNEL_FIELDS, "no kernels", brief=_shorten_name)
    devices: Table = as_table("How well kernels fill their devices", device_use.FIELDS, "no steps with kernels")
    tensor_cores: Row = as_figures("Tensor cores", TENSOR_CORE_FIELDS)
    launches: Row = as_figures("Launches", launches.FIELDS)
    streams: Table = as_table("Launches by stream", STREAM_FIELDS, "no kernels")
    attribution: Row = as_figures("How the ops of kernels are known", attribution.FIELDS)
    empty: str = not_in_json()


COMPARABLES = (
    Comparable(
        id="kernels",
        title="Kernels",
        keys=fields_named(FIELDS, "kernel"),
        measure=Field("total_us", "us", "time of the kernel on the devices, for any op"),
        count="occurrences",
        is_total=True,
        empty="neither side has kernels",
    ),
)


def partial(trace: HostTrace) -> Partial:
    """The part of one host."""
    found = attribute(trace)
    on_stream = (trace.lines.kind == LineKind.STREAM)[trace.events.line[found.rows]]
    among = on_stream & np.isin(trace.events.kind[found.rows], KERNELS)
    names, rows = _kernel_rows(trace, np.flatnonzero(among))
    kept, rest = rows[:MOST_ROWS], rows[MOST_ROWS:]
    used = dict.fromkeys(row.kernel for row in kept)
    place = {name: at for at, name in enumerate(used)}
    return Partial(
        origin=origin_of(trace),
        names=[names[name] for name in used],
        rows=[replace(row, kernel=place[row.kernel]) for row in kept],
        left_out=len(rest),
        left_out_count=sum(row.count for row in rest),
        left_out_ps=sum(row.total_ps for row in rest),
        streams=launches_of_streams(trace),
        attributed=shares(trace, among),
        devices=sorted({PlaneKind(trace.planes.kind[plane]).name for plane in trace.device_planes()}),
        uses=device_use.device_uses(trace),
    )


def _kernel_rows(trace: HostTrace, pieces: I64) -> tuple[dict[int, str], list[KernelRow]]:
    """Names by string row, and the rows of kernels, longest first."""
    found = attribute(trace)
    events = found.rows[pieces]
    launch, different = launches_of(trace, events)
    name = event_name_rows(trace, events)
    may_use = _may_use_tensor_cores(trace, events)
    groups = Groups.of(name, found.op[pieces], launch, may_use)
    names = {row: trace.strings[row] for row in distinct(name[groups.first]).tolist()}
    eligible = [op_is_eligible(*op) for op in found.ops]
    columns = (groups.first, *measure_groups(groups.number, trace.events.duration_ps[events], len(groups)))
    rows = []
    for at, *figures in zip(*(column.tolist() for column in columns), strict=True):
        op, kernel = int(found.op[pieces[at]]), int(name[at])
        could = eligible[op] if op >= 0 else None
        uses = kernel_uses(names[kernel], could) if may_use[at] else False
        label = found.ops[op][0] if op >= 0 else None
        # A kernel that uses tensor cores could use them, whatever the op's name says.
        rows.append(KernelRow(kernel, label, different[launch[at]], uses or could, uses, *figures))
    rows.sort(key=lambda row: (-row.total_ps, names[row.kernel], row.op or ""))
    return names, rows


def _may_use_tensor_cores(trace: HostTrace, events: I64) -> I64:
    """1 for kernels on a device that may have tensor cores, 0 for kernels on older devices."""
    may = np.ones(len(trace.planes), np.int64)
    for plane in trace.device_planes():
        facts = trace.stats_of_plane(plane)
        major = facts.get("compute_cap_major")
        if facts.get("device_vendor") != "AMD" and isinstance(major, int) and 0 < major < _FIRST_TENSOR_CORES:
            may[plane] = 0
    return may[trace.lines.plane[trace.events.line[events]]]


def condense(partials: Sequence[Partial]) -> list[Partial]:
    """The partials with the kernels of all hosts in the first."""
    rows = _sum_rows(partials)
    names = {name: at for at, name in enumerate(dict.fromkeys(name for name, _ in rows))}
    first, *others = partials
    summed = replace(first, names=[*names], rows=[replace(row, kernel=names[name]) for name, row in rows])
    return [summed, *(replace(part, names=[], rows=[]) for part in others)]


def merge(partials: Sequence[Partial]) -> KernelStatsReport:
    """The kernels of all hosts; equal rows are merged."""
    rows = _merge_rows(partials)
    total = sum(row.total_ps for _, row in rows) + sum(part.left_out_ps for part in partials)
    streams = [(part.origin.host, stream) for part in partials for stream in part.streams]
    attributed = [part.attributed for part in partials]
    return KernelStatsReport(
        **header([part.origin for part in partials], _warnings(partials, bool(rows))),
        rows=tuple(_cells(rank, name, row, total) for rank, (name, row) in enumerate(rows, 1)),
        by_kernel=_sum_by_kernel(rows, partials, total),
        tensor_cores=_tensor_cores([row for _, row in rows], total),
        attribution=dict(attribution.figures(attributed)),
        launches=launches.figures([stream for _, stream in streams]),
        streams=tuple(launches.stream_row(host, stream) for host, stream in streams),
        devices=tuple(device_use.row(part.origin.host, use) for part in partials for use in part.uses),
        empty=_explain_empty(partials),
    )


def _merge_rows(partials: Sequence[Partial]) -> list[tuple[str, KernelRow]]:
    """Merges equal rows of all hosts, longest first; returns them with their names."""
    return sorted(_sum_rows(partials), key=lambda item: (-item[1].total_ps, item[0], item[1].op or ""))


def _sum_rows(partials: Sequence[Partial]) -> list[tuple[str, KernelRow]]:
    """Equal rows added up, with their names, in the order in which they first appear."""
    names = [*dict.fromkeys(name for part in partials for name in part.names)]
    place = {name: at for at, name in enumerate(names)}
    rows = [replace(row, kernel=place[part.names[row.kernel]]) for part in partials for row in part.rows]
    summed = add_records(
        rows,
        lambda row: (row.kernel, row.op, row.launch, row.eligible, row.uses),
        ("count", "total_ps", "min_ps", "max_ps"),
    )
    return [(names[row.kernel], row) for row in summed]


def _cells(rank: int, name: str, row: KernelRow, total: int) -> dict[str, Cell]:
    return {
        "rank": rank,
        "kernel": name,
        "op": row.op,
        "registers_per_thread": row.launch.registers,
        "shared_memory_bytes": row.launch.shared_bytes,
        "block_dim": row.launch.block and list(row.launch.block),
        "grid_dim": row.launch.grid and list(row.launch.grid),
        "occupancy_percent": row.launch.occupancy_percent,
        "tensor_core_eligible": row.eligible,
        "uses_tensor_core": row.uses,
        "occurrences": row.count,
        "total_us": round_us(row.total_ps),
        "avg_us": round_us(row.total_ps / row.count),
        "min_us": round_us(row.min_ps),
        "max_us": round_us(row.max_ps),
        "total_percent": percent(row.total_ps, total),
    }


def _sum_by_kernel(
    rows: Sequence[tuple[str, KernelRow]], partials: Sequence[Partial], total: int
) -> tuple[dict[str, Cell], ...]:
    """The kernels whichever op launches them; each with the op that it runs longest for."""
    names = {row.kernel: name for name, row in rows}
    summed = add_records(
        (row for _, row in rows), lambda row: row.kernel, ("count", "total_ps", "min_ps", "max_ps")
    )  # the longest come first
    found = [
        _kernel_cells(names[row.kernel], row.count, row.total_ps, total)
        | {"op": row.op, "min_us": round_us(row.min_ps), "max_us": round_us(row.max_ps), "uses_tensor_core": row.uses}
        for row in sorted(summed, key=lambda row: (-row.total_ps, names[row.kernel]))
    ]
    rest = sum(part.left_out_count for part in partials), sum(part.left_out_ps for part in partials)
    return (*found, *([_kernel_cells("others", *rest, total)] if rest[0] else []))


def _kernel_cells(name: str, count: int, ps: int, total: int) -> dict[str, Cell]:
    known: dict[str, Cell] = {field.name: None for field in BY_KERNEL_FIELDS}
    times = {"total_us": round_us(ps), "avg_us": round_us(ps / count)}
    return known | times | {"kernel": name, "occurrences": count, "percent": percent(ps, total)}


def _tensor_cores(rows: Sequence[KernelRow], total: int) -> dict[str, Cell]:
    def share(counts: Callable[[KernelRow], bool]) -> float | None:
        return percent(sum(row.total_ps for row in rows if counts(row)), total)

    return {
        "uses_percent": share(lambda row: row.uses is True),
        "unknown_percent": share(lambda row: row.uses is None),
        "eligible_percent": share(lambda row: row.eligible is True),
        "eligible_unused_percent": share(lambda row: row.eligible is True and row.uses is False),
    }


def _warnings(partials: Sequence[Partial], any_kernels: bool) -> list[str]:
    if not any_kernels:
        return [_explain_empty(partials)]
    left_out = sum(part.left_out for part in partials)
    return [f"{left_out:,} rows with the least time are not listed; all shares include their time"] if left_out else []


def _explain_empty(partials: Sequence[Partial]) -> str:
    devices = {device for part in partials for device in part.devices}
    if not devices:
        return "no kernels: no device took part in this run; stepscope op-stats shows the ops on the host"
    if "GPU" not in devices:
        return "no kernels: a TPU runs ops, not kernels; stepscope op-stats shows them"
    return (
        "no kernels: the profile names GPUs but contains none of their work; record with "
        "ProfilerOptions(device_tracer_level=1) while the device works"
    )
