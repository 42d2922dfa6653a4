"""The tool `kernel-stats`: every kernel with the op that launched it, how it was launched, and how long it took.

A row is a kernel, its op, and one launch configuration: the same kernel with another grid has a separate row. Rows sum
over hosts and devices. A figure that the trace lacks, or records as garbage, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from typing import ClassVar

import numpy as np

from stepscope.analysis.ops import device_use, launches
from stepscope.analysis.ops.launches import STREAM_FIELDS
from stepscope.analysis.trace import attribution
from stepscope.analysis.trace.attribution import OpName, Shares, attribute, event_name_rows, shares
from stepscope.analysis.trace.devices_told_of import is_device_told_of
from stepscope.analysis.trace.grouping import KERNELS
from stepscope.analysis.trace.kernel_facts import launches_of
from stepscope.analysis.trace.origin import Origin, header, origin_of, session_recorder
from stepscope.analysis.trace.remedies import DEVICE_ACTIVITY, remedy
from stepscope.model import HostTrace, LineKind, PlaneKind
from stepscope.model.arrays import I32, I64, Groups
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
    not_in_json,
    percent,
    round_us,
)
from stepscope.report.relation import Counted, Merged, Relation
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.tensor_cores import kernel_uses, op_is_eligible

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
    Part("Kernels by op and launch", ("rank", "kernel", "op", "occurrences", "total_us", "total_percent")),
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
    *fields_named(FIELDS, "op", "occurrences"),
    Field("total_us", "us", "its time on the devices for this op"),
    Field("percent", "percent", "share of the time of all kernels"),
    *fields_named(FIELDS, "avg_us", "min_us", "max_us", "uses_tensor_core"),
)
_BY_KERNEL_PARTS = (Part("Kernels", ("kernel", "op", "occurrences", "total_us", "percent", "avg_us")),)
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


_MEASURES = ("occurrences", "total_ps", "min_ps", "max_ps")
LAUNCHED = Relation(
    ("kernel", "op", "launch", "eligible", "uses"), _MEASURES, order=("-total_ps", "kernel", "op"), most=50_000
)
"""The kernels by op and launch; `eligible` and `uses` are about tensor cores, None if unknown."""
BY_KERNEL = Relation(("kernel", "op"), _MEASURES, order=("-total_ps", "kernel", "op"))
"""The same whatever the launch: the rows of an op add up to its time, as the other pages have it."""


@dataclass(frozen=True)
class KernelsOfHost:
    """What one host contributes: its kernels, its streams, the kinds of its devices, and how full each of them is."""

    origin: Origin
    kernels: Counted
    streams: Counted
    attributed: Shares
    devices: list[str]
    uses: list[Row]


RELATIONS = {"kernels": LAUNCHED, "streams": launches.STREAMS}


def _shorten_name(row: Row) -> Row:
    """The row with a kernel name that fits on a screen."""
    return row | {"kernel": brief(str(row["kernel"]))}


@dataclass(frozen=True, kw_only=True)
class KernelStatsReport(Report):
    """Kernels and launches; the FIELDS tables of this module explain its parts."""

    TOOL: ClassVar[str] = "kernel-stats"

    by_kernel: Table = as_table("Kernels", BY_KERNEL_FIELDS, "", _BY_KERNEL_PARTS, _shorten_name)
    rows: Table = as_table("Kernels by op and launch", FIELDS, lambda report: report.empty, _PARTS, _shorten_name)
    devices: Table = as_table("How well kernels fill their devices", device_use.FIELDS, "no steps with kernels")
    tensor_cores: Row = as_figures("Tensor cores", TENSOR_CORE_FIELDS)
    launches: Row = as_figures("Launches", launches.FIELDS)
    streams: Table = as_table("Launches by stream", STREAM_FIELDS, "no kernels")
    attribution: Row = as_figures("How the ops of kernels are known", attribution.FIELDS)
    empty: str = not_in_json()

    def arranged(self, sort: str | None = None, where: str | Sequence[str] = ()) -> Report:
        """The same report with its rows filtered and sorted.  The kernels of all launches, which stand first, would
        answer another question and are left out."""
        found = super().arranged(sort, where)
        return found if found is self else replace(found, by_kernel=())  # type: ignore[call-arg]


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


def partial(trace: HostTrace) -> KernelsOfHost:
    """The part of one host."""
    found = attribute(trace)
    on_stream = (trace.lines.kind == LineKind.STREAM)[trace.events.line[found.rows]]
    among = on_stream & np.isin(trace.events.kind[found.rows], KERNELS)
    return KernelsOfHost(
        origin=origin_of(trace),
        kernels=_count_kernels(trace, found.rows[among], found.op[among], found.ops),
        streams=launches.launches_of_streams(trace),
        attributed=shares(trace, among),
        devices=sorted({PlaneKind(trace.planes.kind[plane]).name for plane in trace.device_planes()})
        or [PlaneKind.GPU.name] * is_device_told_of(trace),
        uses=device_use.device_rows(trace),
    )


def _count_kernels(trace: HostTrace, events: I64, op: I32, ops: Sequence[OpName]) -> Counted:
    launch, different = launches_of(trace, events)
    name, duration = event_name_rows(trace, events), trace.events.duration_ps[events]
    may_use = _may_use_tensor_cores(trace, events)
    pairs = Groups.of(name, op, may_use)
    tensor_cores = [
        _tensor_cores_of(trace.strings[name[at]], ops[op[at]] if op[at] >= 0 else None, bool(may_use[at]))
        for at in pairs.first.tolist()
    ]
    return LAUNCHED.count(
        {
            "kernel": (name, trace.strings.__getitem__),
            "op": (op, lambda number: ops[number][0] if number >= 0 else None),
            "launch": (launch, lambda number: astuple(different[number])),
            "eligible": (pairs.number, lambda number: tensor_cores[number][0]),
            "uses": (pairs.number, lambda number: tensor_cores[number][1]),
        },
        dict.fromkeys(("total_ps", "min_ps", "max_ps"), duration),
    )


def _tensor_cores_of(kernel: str, op: OpName | None, may_use: bool) -> tuple[bool | None, bool | None]:
    """Whether a kernel of an op could use tensor cores, and whether it does.

    One that uses them could, whatever the op's name says.
    """
    could = op_is_eligible(*op) if op else None
    uses = kernel_uses(kernel, could) if may_use else False
    return uses or could, uses


def _may_use_tensor_cores(trace: HostTrace, events: I64) -> I64:
    """1 for kernels on a device that may have tensor cores, 0 for kernels on older devices."""
    may = np.ones(len(trace.planes), np.int64)
    for plane in trace.device_planes():
        facts = trace.stats_of_plane(plane)
        major = facts.get("compute_cap_major")
        if facts.get("device_vendor") != "AMD" and isinstance(major, int) and 0 < major < _FIRST_TENSOR_CORES:
            may[plane] = 0
    return may[trace.lines.plane[trace.events.line[events]]]


def merge(partials: Sequence[KernelsOfHost]) -> KernelStatsReport:
    """The kernels of all hosts; equal rows are merged."""
    found = LAUNCHED.merge([part.kernels for part in partials])
    streams = launches.STREAMS.merge([part.streams for part in partials])
    registers, shared, block, grid, occupancy = [*zip(*found["launch"], strict=True)] or [()] * 5
    return KernelStatsReport(
        **header([part.origin for part in partials], _warnings(partials, found)),
        rows=found.table(
            FIELDS,
            rank=[*range(1, len(found) + 1)],
            registers_per_thread=[*registers],
            shared_memory_bytes=[*shared],
            block_dim=[each and list(each) for each in block],
            grid_dim=[each and list(each) for each in grid],
            occupancy_percent=[*occupancy],
            tensor_core_eligible=found["eligible"],
            uses_tensor_core=found["uses"],
            avg_us=found.mean("total_ps", "occurrences"),
            total_percent=found.share("total_ps"),
        ),
        by_kernel=_list_by_kernel(found),
        tensor_cores=_tensor_cores(found),
        attribution=dict(attribution.figures([part.attributed for part in partials])),
        launches=launches.figures(streams),
        streams=launches.table(streams),
        devices=tuple(row for part in partials for row in part.uses),
        empty=_explain_empty(partials),
    )


def _list_by_kernel(found: Merged) -> Table:
    """The kernels of each op however they are launched; last those left out."""
    kernels = found.regroup(BY_KERNEL, "uses")
    listed = kernels.table(
        BY_KERNEL_FIELDS,
        percent=kernels.share("total_ps"),
        avg_us=kernels.mean("total_ps", "occurrences"),
        uses_tensor_core=kernels["uses"],
    )
    if not found.left_out:
        return listed
    count, ps = found.rest["occurrences"], found.rest["total_ps"]
    others: Row = {field.name: None for field in BY_KERNEL_FIELDS}
    times = {"total_us": round_us(ps), "avg_us": round_us(ps / count), "percent": percent(ps, found.total("total_ps"))}
    return (*listed, others | times | {"kernel": "others", "occurrences": count})


def _tensor_cores(found: Merged) -> Row:
    kinds = [*zip(found["eligible"], found["uses"], found["total_ps"], strict=True)]

    def share(counts: Callable[[bool | None, bool | None], bool]) -> float | None:
        return percent(sum(ps for could, uses, ps in kinds if counts(could, uses)), found.total("total_ps"))

    return {
        "uses_percent": share(lambda could, uses: uses is True),
        "unknown_percent": share(lambda could, uses: uses is None),
        "eligible_percent": share(lambda could, uses: could is True),
        "eligible_unused_percent": share(lambda could, uses: could is True and uses is False),
    }


def _warnings(partials: Sequence[KernelsOfHost], found: Merged) -> list[str]:
    if not len(found):
        return [_explain_empty(partials)]
    if not found.left_out:
        return []
    return [f"{found.left_out:,} rows with the least time are not listed; all shares include their time"]


def _explain_empty(partials: Sequence[KernelsOfHost]) -> str:
    devices = {device for part in partials for device in part.devices}
    if not devices:
        return "no kernels: no device took part in this run; stepscope op-stats shows the ops on the host"
    if "GPU" not in devices:
        return "no kernels: a TPU runs ops, not kernels; stepscope op-stats shows them"
    how = remedy(DEVICE_ACTIVITY, session_recorder([part.origin for part in partials]))
    return f"no kernels: a GPU took part but none of its work was recorded; {how}"
