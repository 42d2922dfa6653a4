"""When the devices of a host work, and the part of a step in which none of them does."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.critical_path import Pieces
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.steps.device_steps import working_devices
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace, PlaneKind
from stepscope.model.arrays import I64


def busy_by_device(trace: HostTrace) -> dict[int, Spans]:
    """When each device that does any work does so, by its plane; made once per trace."""
    return trace.derived("busy devices", _busy_by_device)


def _busy_by_device(trace: HostTrace) -> dict[int, Spans]:
    return {each: spans_of(trace, work_of_device(trace, each)) for each in working_devices(trace)}


def work_of_device(trace: HostTrace, plane: int) -> I64:
    """The work of a device: rows of events."""
    lines = np.flatnonzero(trace.lines.plane == plane).tolist()
    bounds = [(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])) for line in lines]
    works = is_device_work(trace)
    rows = [first + np.flatnonzero(works[first:last]) for first, last in sorted(bounds)]
    return np.concatenate(rows) if rows else np.empty(0, np.int64)


def idle_ps(graph: Graph, pieces: Pieces) -> I64 | None:
    """The part of each piece of a step in which no device works: int64 of shape (pieces,); None without devices."""
    work = graph.kind == NodeKind.WORK
    if not work.any():
        return None
    first, last = (int(pieces.start_ps.min()), int(pieces.end_ps.max())) if len(pieces) else (0, 0)
    here = np.flatnonzero(work & (graph.start_ps < last) & (graph.end_ps > first))
    busy = Spans.union(graph.start_ps[here], graph.end_ps[here])
    return pieces.end_ps - pieces.start_ps - busy.overlap_ps(pieces.start_ps, pieces.end_ps)


def devices_text(trace: HostTrace) -> str | None:
    """The devices of a host in words: `the GPU`, `both GPUs`, `all 8 TPUs`; None where none works."""
    kinds = [PlaneKind(int(trace.planes.kind[plane])).name for plane in working_devices(trace)]
    if not kinds:
        return None
    name = kinds[0] if len(set(kinds)) == 1 else "device"
    return f"the {name}" if len(kinds) == 1 else f"{'both' if len(kinds) == 2 else f'all {len(kinds)}'} {name}s"
