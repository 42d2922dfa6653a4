"""How well kernels fill their device: utilization, and what PyTorch's traces let one estimate of its multiprocessors.

All figures cover the time from the start of the first step to the end of the last. PyTorch's TensorBoard plugin defined
them so, and the figures can be compared with those of the plugin.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import KERNELS, is_device_work
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import F64, I64
from stepscope.report import Field, Role, Row, round_ms

_MOST_BLOCKS = 1e9  # on a multiprocessor; more is garbage

FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host whose device it is", role=Role.HOST),
    Field("device", "text", "the device", role=Role.PLACE),
    Field("window_ms", "ms", "time from the start of the first step to the end of the last"),
    Field("utilization_percent", "percent", "time with at least one kernel or collective; copies do not count"),
    Field(
        "sm_efficiency_percent",
        "percent",
        "estimated share of multiprocessors with work: blocks per multiprocessor of all running kernels, at most 1, "
        "averaged over the window; needs PyTorch's launch facts",
    ),
    Field(
        "occupancy_percent",
        "percent",
        "estimated achieved occupancy of kernels, averaged over their time; needs PyTorch's launch facts",
    ),
)


def device_rows(trace: HostTrace) -> list[Row]:
    """Every device that runs a kernel during the steps, keyed as in FIELDS; unknown is what the trace lacks."""
    steps = steps_of(trace)
    kernels = np.flatnonzero(is_device_work(trace) & is_any_kind(trace.events.kind, KERNELS))
    if not len(steps.number) or not len(kernels):
        return []
    window = int(steps.start_ps.min()), int(steps.end_ps.max())
    blocks = _numbers(trace, stat_names.BLOCKS_PER_SM, _MOST_BLOCKS)[kernels]
    occupancy = _numbers(trace, stat_names.ESTIMATED_OCCUPANCY, 100.0)[kernels]
    plane = trace.lines.plane[trace.events.line[kernels]]
    found: list[Row] = []
    for device in trace.device_planes():
        here = plane == device
        rows = kernels[here]
        start = np.clip(trace.events.start_ps[rows], *window)
        end = np.clip(trace.events.start_ps[rows] + trace.events.duration_ps[rows], *window)
        if (end > start).any():
            size = window[1] - window[0]
            busy = Spans.union(start, end).total / size
            shares = busy, _filled(start, end, blocks[here], size), _weighted(occupancy[here] / 100, end - start)
            percents = [None if share is None else round(100 * share, 4) for share in shares]
            cells = (trace.host, device_name(trace, device), round_ms(size), *percents)
            found.append(dict(zip((field.name for field in FIELDS), cells, strict=True)))
    return found


def _numbers(trace: HostTrace, names: tuple[str, ...], most: float) -> F64:
    """A stat written as a double or, if whole, as an integer: float64 of shape (events,), NaN if missing or not from 0
    to `most`."""
    if not trace.has_stat(names):
        return np.full(len(trace.events), np.nan)
    whole = trace.stat_ints(names)
    values = np.where(whole >= 0, whole.astype(np.float64), trace.stat_doubles(names))
    return np.where((values >= 0) & (values <= most), values, np.nan)


def _filled(start: I64, end: I64, blocks: F64, window: int) -> float | None:
    """Share of the window, weighted by the share of multiprocessors with work; None if no kernel has its blocks."""
    known = ~np.isnan(blocks)
    if not known.any():
        return None
    start, end, blocks = start[known], end[known], blocks[known]
    moment, change = np.concatenate([start, end]), np.concatenate([blocks, -blocks])
    order = np.argsort(moment, kind="stable")
    moment, level = moment[order], np.cumsum(change[order])
    return float((np.diff(moment) * np.clip(level[:-1], 0.0, 1.0)).sum()) / window


def _weighted(values: F64, weights: I64) -> float | None:
    known = ~np.isnan(values)
    total = float(weights[known].sum())
    return float((values[known] * weights[known]).sum()) / total if total else None
