"""The tool `roofline`: how near each op and each program comes to what the device can do, and which limit it meets.

Below the ridge of a device, an op's rate is limited by memory: intensity (operations for each byte) times bandwidth.
Above, by the peak for its precision. The roof of an op is the lower of the two; its efficiency is the rate achieved as
a share of that roof.

XLA's instructions are counted as `hlo-stats` does. Ops of PyTorch and TensorFlow are counted by the shapes of their
inputs, which PyTorch records with `record_shapes=True`; what `with_flops=True` states wins. With m, n, k for the sizes
of a product, b for its batch, h, q, k, d for heads, queries, keys and width:

| op | operations | bytes |
| --- | --- | --- |
| `mm`, `addmm`, `bmm`, `baddbmm`, `linear`, `MatMul` | 2 b m n k | inputs and result |
| attention | 4 b h q k d, its gradient 2.5 times that; all pairs, whatever the mask | queries, keys, values, result |
| convolution | 2 for each element of the result and of a filter | inputs and result |
| gradient of a convolution | the same for each gradient that it computes | inputs and gradient |
| element by element | 1 per element of the result | inputs and result |
| batch, layer and group norm | 7 an element, the gradient 9 | inputs and result |
| softmax | 5 an element, its gradient 4 | inputs and result |
| sums, means, pooling | 1 an element of the input | the input |
| copies | none | what is read and written |

Recordings of PyTorch before 2.1 have no strides: the result of a convolution is then that of the same convolution whose
gradient is in the trace. Collectives, and copies between host and device, have no roof: a link limits them.

What other ops cost is unknown, and their rows show time only. Bytes are the least that an op has to move; what it finds
in a cache or reads twice is not seen in shapes. Shares above 100 % are possible: Winograd's convolutions need fewer
operations than are counted, and small data stays in caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import ClassVar, NamedTuple

import numpy as np

from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.device_facts import DeviceFacts, device_facts
from stepscope.analysis.trace.origin import header
from stepscope.analysis.xla import ops
from stepscope.analysis.xla.framework_costs import UNKNOWN, Convolutions, Cost, tensorflow_cost, torch_cost
from stepscope.analysis.xla.op_table import (
    DEVICE_FIELDS,
    OP_FIELDS,
    STEP_FIELDS,
    Rates,
    UsedOp,
    add_ops,
    describe_above_peaks,
    device_rows,
    host_ops,
    list_programs,
    op_cells,
    ops_of_host,
    peak_warnings,
    peaks_of_host,
    rates_of,
    rates_of_op,
    step_use,
    use_of,
    warnings_of,
)
from stepscope.analysis.xla.op_time import op_time
from stepscope.analysis.xla.ops import LINKS, XlaOp
from stepscope.analysis.xla.peaks import Peaks, peaks_of
from stepscope.analysis.xla.step_time import share_in_steps
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Groups, distinct, number_pairs, sum_groups
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
    as_figures,
    as_table,
    fields_named,
    not_in_json,
)
from stepscope.vocabulary.computing_ops import CONVOLUTION_GRADIENTS, strip_library
from stepscope.vocabulary.op_names import op_name

# ---- Ops of PyTorch and TensorFlow on a device, by the shapes of their inputs, with what they cost -------------------


MOST_OPS = 2000
_SHAPE = ("shape",)


class FrameworkOp(NamedTuple):
    """Runs of an op with inputs of equal shapes, and these shapes; it belongs to no program."""

    op: XlaOp
    shapes: str


def framework_ops(trace: HostTrace) -> list[FrameworkOp]:
    """The ops that launched device work which belongs to no XLA instruction, longest first."""
    found, xla = attribute(trace), op_time(trace)
    free = ~np.isin(found.rows, xla.rows)
    annotated = (trace.stat_strings(_SHAPE, rows=found.rows) > 0) | (found.run < 0)
    launched = _find_launched_ops(trace, np.flatnonzero(free & ~annotated))
    named = _find_annotated_ops(trace, np.flatnonzero(free & annotated))
    return sorted([*launched, *named], key=lambda each: (-each.op.self_ps, each.op.name, each.shapes))[:MOST_OPS]


def _find_launched_ops(trace: HostTrace, pieces: I64) -> list[FrameworkOp]:
    """Ops whose run on the host is in the trace, as in PyTorch's: the run has the shapes."""
    found = attribute(trace)
    run = found.run[pieces]
    names = (stat_names.INPUT_DIMS, stat_names.INPUT_TYPES, stat_names.CONCRETE_INPUTS)
    dims, types, concrete = (trace.stat_strings(each, rows=run) for each in names)
    op = event_name_rows(trace, run)
    groups = Groups.of(op, dims, types, concrete)
    stated = trace.stat_ints(stat_names.FLOPS, rows=run)
    known = _convolutions(trace)
    costs, labels = [], []
    for at in groups.first.tolist():
        texts = [trace.strings[column[at]] if column[at] > 0 else "" for column in (dims, types, concrete)]
        name = trace.strings[op[at]]
        cost = torch_cost(name, *texts, known)
        costs.append(cost if stated[at] <= 0 else cost._replace(flops=float(stated[at])))
        labels.append((name, op_name(name, EventKind.OP)[1], texts[0]))
    return _sum_ops(trace, pieces, groups.number.astype(np.int64), run, labels, costs)


def _convolutions(trace: HostTrace) -> Convolutions:
    """The convolutions of which the trace records the whole gradient, with the sizes of its inputs."""
    rows = events_of_kind(trace, EventKind.OP)
    names = event_name_rows(trace, rows)
    wanted = [each for each in distinct(names).tolist() if strip_library(trace.strings[each]) in CONVOLUTION_GRADIENTS]
    rows = rows[np.isin(names, wanted)]
    _, first = number_pairs(event_name_rows(trace, rows), trace.stat_strings(stat_names.INPUT_DIMS, rows=rows))
    dims = trace.stat_strings(stat_names.INPUT_DIMS, rows=rows[first])
    return Convolutions(
        (trace.name_of(row), trace.strings[text]) for row, text in zip(rows[first].tolist(), dims.tolist(), strict=True)
    )


def _find_annotated_ops(trace: HostTrace, pieces: I64) -> list[FrameworkOp]:
    """Ops that kernels name themselves, as TensorFlow's do; some give the shapes of their inputs."""
    found = attribute(trace)
    pieces = pieces[found.op[pieces] >= 0]
    shapes = trace.stat_strings(_SHAPE, rows=found.rows[pieces])
    group, first = number_pairs(found.op[pieces], shapes)
    costs, labels = [], []
    for at in first.tolist():
        name, op_type = found.ops[found.op[pieces[at]]]
        text = trace.strings[shapes[at]] if shapes[at] > 0 else ""
        costs.append(tensorflow_cost(op_type, text) if text else UNKNOWN)
        labels.append((name, op_type, text))
    return _sum_ops(trace, pieces, group.astype(np.int64), None, labels, costs)


def _sum_ops(
    trace: HostTrace, pieces: I64, group: I64, run: I64 | None, labels: list[tuple[str, str, str]], costs: list[Cost]
) -> list[FrameworkOp]:
    found, size = attribute(trace), len(labels)
    time = sum_groups(group, found.time_ps[pieces], size)
    runs = (
        _count_distinct(group, run, size)
        if run is not None
        else _count_rarest_kernel(trace, found.rows[pieces], group, size)
    )
    inside = share_in_steps(trace, found.rows[pieces], group, size)
    links = _find_links(trace, pieces, group, time)
    columns = zip(labels, runs, time, inside, costs, links, strict=True)
    return [
        FrameworkOp(
            XlaOp(
                -1, name, op_type, int(count), int(ps), int(ps), _scale(cost.flops, count), _scale(cost.bytes, count),
                float(share), cost.precision, cost.matrix, link=link,
            ),
            shapes,
        )
        for (name, op_type, shapes), count, ps, share, cost, link in columns
    ]  # fmt: skip


def _find_links(trace: HostTrace, pieces: I64, group: I64, time: I64) -> list[str]:
    """The link that most of each group's time uses; empty for work that stays on its device."""
    found = attribute(trace)
    kind, links = trace.events.kind[found.rows[pieces]], [""] * len(time)
    for each, link in LINKS.items():
        used = np.where(kind == each, found.time_ps[pieces], 0)
        for at in np.flatnonzero(2 * sum_groups(group, used, len(time)) > time).tolist():
            links[at] = link
    return links


def _count_distinct(group: I64, run: I64, size: int) -> I64:
    _, first = number_pairs(group, run)
    return np.bincount(group[first], minlength=size)


def _count_rarest_kernel(trace: HostTrace, rows: I64, group: I64, size: int) -> I64:
    """An op launches the same kernels whenever it runs with the same shapes."""
    kernel, first = number_pairs(group, event_name_rows(trace, rows))
    runs = np.full(size, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(runs, group[first], np.bincount(kernel, minlength=len(first)))
    return runs


def _scale(amount: float | None, count: int) -> float | None:
    return None if amount is None else amount * int(count)


FIELDS: tuple[Field, ...] = (
    Field("rank", "number", "place in the list: programs, then ops, each by time", "int", role=Role.ORDINAL),
    Field("kind", "text", "`program` or `op`", role=Role.TERM),
    Field("program", "text", "the XLA program; unknown for ops of PyTorch and TensorFlow", role=Role.LABEL),
    *fields_named(OP_FIELDS, "category"),
    Field("name", "text", "the op; of XLA the instruction", role=Role.NAME),
    Field("shapes", "text", "the shapes of its inputs, where the framework recorded them", role=Role.SHAPE),
    *fields_named(OP_FIELDS, "occurrences", "self_us", "self_percent", "flops", "bytes", "gflop_per_s", "gib_per_s"),
    *fields_named(OP_FIELDS, "flop_per_byte", "precision", "bound_by", "compute_percent", "memory_percent"),
    Field("roof_gflop_per_s", "GFLOP/s", "the most that its intensity allows", label="Roof"),
    Field("efficiency_percent", "percent", "the larger of compute_percent and memory_percent"),
)
_PARTS = (
    Part(
        "Ops and their roofs",
        (
            *("rank", "category", "name", "shapes", "occurrences", "self_us", "self_percent", "gflop_per_s"),
            *("gib_per_s", "flop_per_byte", "bound_by", "roof_gflop_per_s", "efficiency_percent"),
        ),
    ),
)
ROOF_FIELDS: tuple[Field, ...] = (
    Field("device", "text", "the device", role=Role.PLACE),
    Field("kind", "text", "`compute` or `memory`", role=Role.TERM),
    Field("name", "text", "precision and units, or the memory", role=Role.LABEL),
    Field("tflop_per_s", "TFLOP/s", "height of a compute roof", label="Peak"),
    Field("gb_per_s", "GB/s", "slope of a memory roof", label="Bandwidth"),
    Field("ridge_flop_per_byte", "FLOP/byte", "intensity where a compute roof meets main memory's", label="Ridge"),
)


@dataclass(frozen=True)
class RooflineOfHost:
    """What one host contributes: XLA's ops, the framework's, and the time of all work of its devices."""

    xla: ops.XlaOpsOfHost
    framework: list[FrameworkOp]
    devices: list[DeviceFacts]
    busy_ps: int


@dataclass(frozen=True, kw_only=True)
class RooflineReport(Report):
    """Ops against their roofs; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "roofline"

    rows: Table = as_table("Ops and their roofs", FIELDS, lambda report: report.empty, _PARTS)
    roofs: Table = as_table("Roofs", ROOF_FIELDS, "no device whose peaks are known")
    steps: Row = as_figures("Use of the hardware by steps", STEP_FIELDS)
    devices: Table = as_table("Devices", DEVICE_FIELDS, "no device worked")
    empty: str = not_in_json()


COMPARABLES = (
    Comparable(
        id="roofline_ops",
        title="Ops and their roofs",
        keys=fields_named(FIELDS, "category", "name", "shapes"),
        measure=Field("self_us", "us", "time of the op on the devices, without what runs inside"),
        count="occurrences",
        is_total=True,
        empty="neither side has ops on devices",
    ),
)


def partial(trace: HostTrace) -> RooflineOfHost:
    """What one host contributes."""
    xla, found = ops.partial(trace), attribute(trace)
    devices = device_facts(trace, found.rows) if len(found.rows) else xla.devices
    return RooflineOfHost(xla, framework_ops(trace), devices, xla.busy_ps or int(found.time_ps.sum()))


_EMPTY = "no device work with a known cost: XLA programs state it, PyTorch records shapes with record_shapes=True"


def merge(partials: Sequence[RooflineOfHost]) -> RooflineReport:
    """The ops of all hosts together."""
    busy = sum(part.busy_ps for part in partials)
    xla = host_ops([part.xla for part in partials])
    programs = [use_of(label, ops, runs) for label, runs, ops in list_programs([part.xla for part in partials], xla)]
    single = add_ops(used for part in partials for used in _framework_ops(part))
    single += [used for used in xla if used.op.self_ps]
    single.sort(key=lambda used: (-used.op.self_ps, used.op.name))
    ranked = [*sorted(programs, key=lambda used: -used.op.self_ps), *single]
    hosts = [(part.xla.origin.host, part.devices) for part in partials]
    known = any(used.op.flops is not None or used.op.bytes is not None or used.op.link for used in single)
    return RooflineReport(
        **header([part.xla.origin for part in partials], [*_warnings(partials, known), *describe_above_peaks(single)]),
        rows=tuple(_row(rank, used, busy) for rank, used in enumerate(ranked if known else (), 1)),
        roofs=tuple(_roofs([facts for _, devices in hosts for facts in devices])),
        steps=step_use([(part.xla.steps, _all_ops(part), part.devices) for part in partials]),
        devices=tuple(device_rows(hosts)),
        empty=_EMPTY,
    )


def _warnings(partials: Sequence[RooflineOfHost], known: bool) -> list[str]:
    xla = [part.xla for part in partials if part.xla.ops]
    found = warnings_of(xla) if xla else peak_warnings([(part.xla.origin.host, part.devices) for part in partials])
    return found if known else [_EMPTY, *found]


def _framework_ops(part: RooflineOfHost) -> list[UsedOp]:
    peaks = peaks_of_host(part.devices)
    return [UsedOp(each.op, "", peaks, each.shapes) for each in part.framework]


def _all_ops(part: RooflineOfHost) -> list[UsedOp]:
    """All ops of a host, with the share of them that lies in steps."""
    return [
        *(replace(used, peaks=peaks_of_host(part.devices)) for used in ops_of_host(part.xla)),
        *_framework_ops(part),
    ]


def _row(rank: int, used: UsedOp, busy: int) -> dict[str, Cell]:
    op, peaks = used.op, used.peaks
    peak = used.peak_flops
    memory = peaks.memory if peaks else None
    rates = rates_of(op.flops, op.bytes, op.self_ps, peak, memory) if used.is_program else rates_of_op(op, peaks)
    known = [share for share in (rates.compute_percent, rates.memory_percent) if share is not None]
    roof = _roof(rates, peak, memory)
    return {
        "rank": rank,
        "kind": "program" if used.is_program else "op",
        "program": used.program or None,
        "name": op.name,
        "shapes": used.shapes or None,
        **op_cells(op, rates, busy),
        "roof_gflop_per_s": None if roof is None else roof / 1e9,
        "efficiency_percent": max(known) if len(known) == 2 else None,
    }


def _roof(rates: Rates, peak: float | None, memory: float | None) -> float | None:
    """The most operations a second that an intensity allows."""
    if rates.intensity is None or peak is None or memory is None:
        return None
    return min(peak, rates.intensity * memory)


def _roofs(devices: Sequence[DeviceFacts]) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    seen: set[str] = set()
    for facts in devices:
        peaks = peaks_of(facts)
        if peaks is None or peaks.name in seen:
            continue
        seen.add(peaks.name)
        for units, rates in (("matrix", peaks.matrix), ("plain", peaks.plain)):
            for name, rate in rates.items():
                ridge = rate / peaks.memory if peaks.memory else None
                rows.append(_roof_row(peaks, "compute", f"{name} {units}", rate / 1e12, None, ridge))
        memories = {"memory": peaks.memory, **peaks.caches}
        rows += [_roof_row(peaks, "memory", name, None, rate / 1e9) for name, rate in memories.items() if rate]
    return rows


def _roof_row(peaks: Peaks, *cells: Cell) -> dict[str, Cell]:
    """The row of a roof: what follows the device in ROOF_FIELDS, unknown where it is left out."""
    return dict(zip_longest((field.name for field in ROOF_FIELDS), (peaks.name, *cells)))
