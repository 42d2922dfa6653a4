"""The steps of each device of a host: how long the step takes there, and where that time goes.

A step on a device begins when it begins on the host, or with the device's first work for it if that is earlier, but
not before the device is done with the step before, or with what was launched before the first; it ends with the
device's last work for it.  Its breakdown is that of a host with this device alone: what the device does, and what the
host does while the device does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.breakdown import CATEGORIES, CATEGORY_OF_RANK, Rank, active_parts, rank_events
from stepscope.analysis.grouping import forest, is_device_work
from stepscope.analysis.stepping import HostSteps, backlog_end, steps_of
from stepscope.model import HostTrace, PlaneKind

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class DeviceSteps:
    """The steps of one device, as columns in order of time.

    Attributes:
        device: its name, such as `GPU:0`.
        step: rows of the host's steps; steps for which the device does nothing are left out.
        start_ps, duration_ps: when they begin, from the start of the host's session, and how long they take.
        parts_ps: for each step the time by category, in the order of CATEGORIES.
    """

    device: str
    step: list[int]
    start_ps: list[int]
    duration_ps: list[int]
    parts_ps: list[list[int]]


@dataclass(frozen=True)
class _Intervals:
    """Stretches of time, each with what it is worth."""

    rank: NDArray[np.uint8]
    start: I64
    end: I64


def working_devices(trace: HostTrace) -> list[int]:
    """Planes of the devices that do something during the trace, in order."""
    worked = np.zeros(len(trace.planes), np.bool_)
    worked[trace.lines.plane[trace.events.line[is_device_work(trace)]]] = True
    return [row for row in trace.device_planes() if worked[row] and trace.planes.kind[row] != PlaneKind.SPARSE_CORE]


def device_name(trace: HostTrace, plane: int) -> str:
    """The name of a device, such as `GPU:0`."""
    return f"{PlaneKind(int(trace.planes.kind[plane])).name}:{int(trace.planes.ordinal[plane])}"


def device_steps(trace: HostTrace) -> list[DeviceSteps]:
    """The steps of each device that works for any; empty for a host with one device or none."""
    planes = working_devices(trace)
    if len(planes) < 2:
        return []
    steps, rank, device = steps_of(trace), rank_events(trace), is_device_work(trace)
    known = (rank > Rank.NONE) & (forest(trace).extent_ps > 0) & (steps.label >= 0)
    of_host = _united(trace, rank, np.flatnonzero(_uncovered(trace, rank, known & ~device)))
    working = np.flatnonzero(known & device)
    plane = trace.lines.plane[trace.events.line[working]]
    found = [_of_device(trace, steps, rank, each, working[plane == each], of_host) for each in planes]
    return [device for device in found if device.step]


def _uncovered(trace: HostTrace, rank: NDArray[np.uint8], member: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Members but for those inside one that is worth as much or more: they decide no instant."""
    parent = forest(trace).parent
    rows = np.flatnonzero(member)
    above = parent[rows]
    covered = (above >= 0) & member[above] & (rank[above] >= rank[rows])
    member = member.copy()
    member[rows[covered]] = False
    return member


def _united(trace: HostTrace, rank: NDArray[np.uint8], rows: I64) -> _Intervals:
    """Overlapping events of equal rank as one interval."""
    rows, start, end = active_parts(trace, rows)
    order = np.argsort(start, kind="stable")  # lines come sorted, so this merges runs
    rows, start, end = rows[order], start[order], end[order]
    n = len(rows)
    group = np.zeros(n, np.int32)
    out = _Intervals(np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(n, np.int64))
    slot = np.full((1, len(Rank)), -1)
    count = kernels.intervals.merge_runs(
        group, rank[rows], start, end, slot, np.empty(n, np.int32), out.rank, out.start, out.end
    )
    return _Intervals(out.rank[:count], out.start[:count], out.end[:count])


def _of_device(
    trace: HostTrace, steps: HostSteps, rank: NDArray[np.uint8], plane: int, rows: I64, of_host: _Intervals
) -> DeviceSteps:
    present, begin, stop = _spans(trace, steps, plane, rows)
    own = _united(trace, rank, rows)
    both = _Intervals(
        np.concatenate([of_host.rank, own.rank]),
        np.concatenate([of_host.start, own.start]),
        np.concatenate([of_host.end, own.end]),
    )
    by_rank = _time_by_rank(both, begin, stop)
    parts = np.zeros((len(present), len(CATEGORIES)), np.int64)
    for at, category in CATEGORY_OF_RANK.items():
        parts[:, CATEGORIES.index(category)] += by_rank[:, at]
    return DeviceSteps(
        device_name(trace, plane), present.tolist(), begin.tolist(), (stop - begin).tolist(), parts.tolist()
    )


def _spans(trace: HostTrace, steps: HostSteps, plane: int, rows: I64) -> tuple[I64, I64, I64]:
    """The steps for which some device work is done, when they begin on the device, and when they end."""
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


def _time_by_rank(intervals: _Intervals, begin: I64, stop: I64) -> I64:
    """Time of each span by the highest rank, what is in no interval as NONE: int64 of shape (spans, ranks).  Spans do
    not overlap each other."""
    first = np.searchsorted(stop, intervals.start, side="right")
    last = np.searchsorted(begin, intervals.end, side="left")
    count = np.maximum(last - first, 0)
    row = np.repeat(np.arange(len(count)), count)
    span = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
    start, end = np.maximum(intervals.start[row], begin[span]), np.minimum(intervals.end[row], stop[span])
    time, is_end = np.concatenate([start, end]), np.repeat([False, True], len(row))
    span, rank = np.concatenate([span, span]).astype(np.int32), np.concatenate([intervals.rank[row]] * 2)
    order = np.lexsort((~is_end, time, span))
    totals = np.zeros((len(begin), len(Rank)), np.int64)
    open_count = np.zeros(len(Rank), np.int64)
    kernels.intervals.highest_rank_time(span[order], rank[order], time[order], is_end[order], open_count, totals)
    totals[:, Rank.NONE] = stop - begin - totals[:, 1:].sum(axis=1)
    return totals
