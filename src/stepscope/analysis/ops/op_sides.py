"""The ops of one side of a host (its threads or its devices): their times, operations and bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.trace.attribution import event_name_rows
from stepscope.analysis.trace.kernel_facts import stated_bytes
from stepscope.analysis.trace.op_work import OpWork, eager_dispatch
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, Groups, Mask, distinct, measure_groups
from stepscope.records import dataclass
from stepscope.report.relation import Counted, Relation
from stepscope.vocabulary.tensor_cores import kernel_uses, op_is_eligible
from stepscope.vocabulary.xla import is_half

K = EventKind
MOST_OPS = 50_000  # kept per host and side: more than any program has, but for one with a name per step


OPS = Relation(
    ("name", "type"),
    ("calls", "total_ps", "self_ps", "flops", "bytes", "tensor_ps", "kernel_ps", "eager_ps"),
    order=("-self_ps", "name", "type"),
    most=MOST_OPS,
)
"""The ops of one side.

`flops` and `bytes` are what the trace states for all occurrences of an op; `tensor_ps` is the time of its kernels on
tensor cores, of `kernel_ps`, unknown if some names do not tell; `eager_ps` the self time of its runs that were
dispatched one by one.
"""


@dataclass(frozen=True)
class RecordedPeaks:
    """The peak rates of a device as recorded in the trace: operations and bytes per second."""

    flops: float
    bytes: float


def count_ops(trace: HostTrace, work: OpWork, calls: I64 | None) -> Counted:
    """The ops of one side.

    Args:
        work: what ran there.
        calls: how often each op ran on devices; None on a host, where each event is a call.
    """
    on_device = calls is not None
    size = len(work.ops)
    count, total, _, _ = measure_groups(work.op, work.time_ps, size)
    own = measure_groups(work.op, work.own_ps, size)[1]
    numbers = (column.tolist() for column in (count if calls is None else calls, total, own))
    costs = _costs(trace, work, size, with_copies=on_device)
    eager = [None] * size if on_device else _eager_time(trace, work, size)
    columns = zip(*numbers, *costs, *_tensor_time(trace, work, size), eager, strict=True)
    return OPS.keep([(*op, *figures) for op, figures in zip(work.ops, columns, strict=True)])


def host_idle(trace: HostTrace, work: OpWork) -> int:
    """Time without an op between the first and the last op of each thread, in ps."""
    rows = work.rows
    if not len(rows):
        return 0
    line, start = trace.events.line[rows], trace.events.start_ps[rows]
    begin = np.flatnonzero(np.append(True, line[1:] != line[:-1]))  # events of a line are neighbours
    first, last = start[begin], np.maximum.reduceat(start + trace.events.duration_ps[rows], begin)
    return int(np.maximum(last - first - np.add.reduceat(work.own_ps, begin), 0).sum())


# -- what an op costs ------------------------------------------------------------------------------------------------


def _costs(
    trace: HostTrace, work: OpWork, size: int, with_copies: bool
) -> tuple[list[float | None], list[float | None]]:
    """The recorded operations and bytes of each op."""
    flops = trace.stat_ints(stat_names.FLOPS, rows=work.rows) if trace.has_stat(stat_names.FLOPS) else None
    moved = stated_bytes(trace, work.rows, with_copies)
    if moved is not None:
        moved = np.where(_is_half(work)[work.op], -1, moved)
    return _sums(work.op, flops, size), _sums(work.op, moved, size)


def _is_half(work: OpWork) -> Mask:
    """Whether an op is the start or end of asynchronous work (`copy-start`): it has the bytes but not the time."""
    return np.array([any(map(is_half, op)) for op in work.ops], np.bool_)


def _sums(op: I32, values: I64 | None, size: int) -> list[float | None]:
    """The sum of each op's values; None if one is missing, since the sum would be too small for the op's time."""
    if values is None:
        return [None] * size
    sums = np.bincount(op, weights=values, minlength=size).tolist()
    unstated = np.bincount(op[values < 0], minlength=size).tolist()
    return [None if lacking else value for value, lacking in zip(sums, unstated, strict=True)]


def peaks_of(trace: HostTrace) -> RecordedPeaks | None:
    """The peaks of the host's devices; None if a device has none or they differ."""
    found = set()
    for device in trace.device_planes():
        stats = trace.stats_of_plane(device)
        tera, giga = stats.get("peak_teraflops_per_second"), stats.get("peak_hbm_bw_gigabytes_per_second")
        found.add(
            RecordedPeaks(tera * 1e12, giga * 1e9) if isinstance(tera, float) and isinstance(giga, float) else None
        )
    peaks = found.pop() if len(found) == 1 else None
    return peaks if peaks and peaks.flops > 0 and peaks.bytes > 0 else None


def _eager_time(trace: HostTrace, work: OpWork, size: int) -> Sequence[int | None]:
    """Self time of the runs of each op that were dispatched one by one."""
    eager = eager_dispatch(trace)
    if eager is None:
        return [None] * size
    known: list[int] = measure_groups(work.op, np.where(eager[work.rows], work.own_ps, 0), size)[1].tolist()
    return known


def _tensor_time(trace: HostTrace, work: OpWork, size: int) -> tuple[list[int | None], list[int]]:
    """Time of each op's kernels on tensor cores, and of all its kernels."""
    tensor: list[int | None] = [0] * size
    whole = [0] * size
    kernel = (trace.events.kind[work.rows] == K.KERNEL).nonzero()[0]
    name = event_name_rows(trace, work.rows[kernel])
    op = work.op[kernel]
    groups = Groups.of(op, name)
    total = measure_groups(groups.number, trace.events.duration_ps[work.rows[kernel]], len(groups))[1]
    names = {row: trace.strings[row] for row in distinct(name[groups.first]).tolist()}
    eligible = [op_is_eligible(*pair) for pair in work.ops] if len(kernel) else []
    for at, ps in zip(groups.first.tolist(), total.tolist(), strict=True):
        here = int(op[at])
        verdict = kernel_uses(names[int(name[at])], eligible[here])
        whole[here] += ps
        so_far = tensor[here]
        tensor[here] = None if verdict is None or so_far is None else so_far + (ps if verdict else 0)
    return tensor, whole
