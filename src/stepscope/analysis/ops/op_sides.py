"""The ops of one side of a host (its threads or its devices): their times, operations and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stepscope.analysis.trace.attribution import event_name_rows
from stepscope.analysis.trace.kernel_facts import stated_bytes
from stepscope.analysis.trace.op_work import OpWork, eager_dispatch
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, Groups, Mask, distinct, measure_groups
from stepscope.records import dataclass
from stepscope.vocabulary.tensor_cores import kernel_uses, op_is_eligible
from stepscope.vocabulary.xla import is_half

K = EventKind
MOST_OPS = 50_000  # kept per host and side: more than any program has, but for one with a name per step


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


@dataclass(frozen=True)
class OpsOfSide:
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

    @property
    def self_ps(self) -> int:
        """Self time of all ops."""
        return sum(self.types.values())


NO_OPS = OpsOfSide([], 0, 0, {}, 0)
"""Adds nothing to other sides."""


@dataclass(frozen=True)
class RecordedPeaks:
    """The peak rates of a device as recorded in the trace: operations and bytes per second."""

    flops: float
    bytes: float


def side_of(trace: HostTrace, work: OpWork, calls: I64 | None, idle_ps: int) -> OpsOfSide:
    """One side.

    Args:
        work: what ran there.
        calls: how often each op ran on devices; None on a host, where each event is a call.
        idle_ps: see `host_idle` and `device_idle`.
    """
    on_device = calls is not None
    size = len(work.ops)
    count, total, _, _ = measure_groups(work.op, work.time_ps, size)
    own = measure_groups(work.op, work.own_ps, size)[1]
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
    types = sum_types(zip((op_type for _, op_type in work.ops), own.tolist(), strict=True))
    left_out_ps = int(own.sum()) - sum(row.self_ps for row in rows)
    return OpsOfSide(rows, size - len(rows), left_out_ps, types, idle_ps)


def sum_types(times: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Time by type."""
    sums: dict[str, int] = {}
    for name, ps in times:
        sums[name] = sums.get(name, 0) + ps
    return sums


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
