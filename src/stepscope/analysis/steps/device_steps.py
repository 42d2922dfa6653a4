"""The steps of each device of a host: how long they take there, and where that time goes.

A step on a device starts when it starts on the host, or with the device's first work for it if that is earlier.  It
does not start before the device has finished the previous step, or the work launched before the first step.  It ends
with the device's last work for it.  The breakdown is that of a host with this device alone: what the device does, and
what the host does while the device is idle.
"""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.steps.breakdown import (
    Rank,
    active_parts,
    rank_events,
    sum_by_category,
    time_by_rank,
)
from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.steps.host_steps import backlog_end
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.model import HostTrace, PlaneKind
from stepscope.model.arrays import I64, U8
from stepscope.records import dataclass
from stepscope.vocabulary.lines import device_of_plane

_Intervals = tuple[U8, I64, I64]  # rank, start and end of each


@dataclass(frozen=True)
class DeviceSteps:
    """The steps of one device, as columns in order of time.

    Attributes:
        device: its name, such as `GPU:0`.
        step: rows of the host's steps; steps without work on the device are left out.
        start_ps, duration_ps: start of each step, from the start of the host's session, and its duration.
        parts_ps: time of each step by category, in the order of CATEGORIES.
    """

    device: str
    step: list[int]
    start_ps: list[int]
    duration_ps: list[int]
    parts_ps: list[list[int]]


def working_devices(trace: HostTrace) -> list[int]:
    """Planes of the devices that do any work in the trace, in order."""
    worked = np.zeros(len(trace.planes), np.bool_)
    worked[trace.lines.plane[trace.events.line[is_device_work(trace)]]] = True
    return [row for row in trace.device_planes() if worked[row] and trace.planes.kind[row] != PlaneKind.SPARSE_CORE]


def device_name(trace: HostTrace, plane: int) -> str:
    """The name of a device, such as `GPU:0`, as its plane is called."""
    kind, ordinal = PlaneKind(int(trace.planes.kind[plane])), int(trace.planes.ordinal[plane])
    return device_of_plane(trace.plane_name(plane)) or f"{kind.name}:{ordinal}"


def device_steps(trace: HostTrace) -> list[DeviceSteps]:
    """The steps of each device that works for any step; empty for a host with fewer than two devices."""
    planes = working_devices(trace)
    if len(planes) < 2:
        return []
    steps, rank, device = steps_of(trace), rank_events(trace), is_device_work(trace)
    known = (rank > Rank.NONE) & (forest(trace).extent_ps > 0) & (steps.label >= 0)
    outer = kernels.nesting.outer_rows(rank * (known & ~device), forest(trace).parent)
    of_host = _merge_equal_ranks(trace, rank, np.asarray(outer))
    working = np.flatnonzero(known & device)
    plane = trace.lines.plane[trace.events.line[working]]
    found = [_device_steps(trace, steps, rank, each, working[plane == each], of_host) for each in planes]
    return [device for device in found if device.step]


def _merge_equal_ranks(trace: HostTrace, rank: U8, rows: I64) -> _Intervals:
    """Merges overlapping events of equal rank."""
    rows, start, end = active_parts(trace, rows)
    order = np.argsort(start, kind="stable")  # lines come sorted, so this merges runs
    rows, start, end = rows[order], start[order], end[order]
    n = len(rows)
    group = np.zeros(n, np.int32)
    out = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(n, np.int64)
    slot = np.full((1, len(Rank)), -1)
    count = kernels.intervals.merge_runs(group, rank[rows], start, end, slot, np.empty(n, np.int32), *out)
    return out[0][:count], out[1][:count], out[2][:count]


def _device_steps(
    trace: HostTrace, steps: HostSteps, rank: U8, plane: int, rows: I64, of_host: _Intervals
) -> DeviceSteps:
    present, begin, stop = _step_bounds(trace, steps, plane, rows)
    own_rank, own_start, own_end = _merge_equal_ranks(trace, rank, rows)
    host_rank, host_start, host_end = of_host
    by_rank = time_by_rank(
        np.concatenate([host_rank, own_rank]), np.concatenate([host_start, own_start]),
        np.concatenate([host_end, own_end]), begin, stop,
    )  # fmt: skip
    parts = np.stack(list(sum_by_category(by_rank).values()), axis=1)
    return DeviceSteps(
        device_name(trace, plane), present.tolist(), begin.tolist(), (stop - begin).tolist(), parts.tolist()
    )


def _step_bounds(trace: HostTrace, steps: HostSteps, plane: int, rows: I64) -> tuple[I64, I64, I64]:
    """Rows of the steps that have work on the device, with their starts and ends there."""
    label, start = steps.label[rows], trace.events.start_ps[rows]
    first = np.full(len(steps.number), np.iinfo(np.int64).max)
    done = np.full(len(steps.number), np.iinfo(np.int64).min)
    np.minimum.at(first, label, start)
    np.maximum.at(done, label, start + trace.events.duration_ps[rows])
    present = np.flatnonzero(done >= first)
    begin, stop = np.minimum(first, steps.start_ps)[present], np.maximum.accumulate(done[present])
    there = steps.backlog[trace.lines.plane[trace.events.line[steps.backlog]] == plane]
    free = backlog_end(trace, there, rows[label == 0])
    return present, np.maximum(begin, np.append(free, stop[:-1])[: len(begin)]), stop
