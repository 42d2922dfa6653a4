"""Where the time of each step goes: every instant of a step counts for exactly one category.

Several things may happen at one instant: a kernel runs, the host waits for input, another thread computes.  The instant
counts for the most important of them, the one of the highest `Rank`, so the parts add up to the step.  An instant in
which nothing recorded happens counts as "other".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stepscope import kernels
from stepscope.analysis.steps.find_steps import HostSteps
from stepscope.analysis.trace.blocking import blocking_calls, cut_waits
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, Kind, Trait
from stepscope.model.arrays import I64, U8, look_up
from stepscope.records import dataclass
from stepscope.report import Cell
from stepscope.report.columns import rows_in_ms

K = EventKind

CATEGORIES: tuple[str, ...] = (
    "compilation",
    "output",
    "input",
    "kernel_launch",
    "host_compute",
    "device_collectives",
    "device_to_device",
    "device_compute",
    "other",
)
LABELS = {"device_collectives": "Collectives"}
"""Short headings for categories with long names."""

MEANING: dict[str, str] = {
    "compilation": "the host traces or compiles a program and no device works",
    "output": "data is copied from a device to the host and the device computes nothing else",
    "input": "the step waits for its next batch, or data is copied to a device, and no device computes",
    "kernel_launch": "the host is busy launching device work and no device works",
    "host_compute": "ops or other framework work on the host while no device works; on a CPU-only run, the computation",
    "device_collectives": "a device, or a host without one, takes part in a collective operation and computes nothing",
    "device_to_device": "data is copied between or within devices and no device computes",
    "device_compute": "at least one device computes",
    "other": "nothing recorded is running: Python code between calls, waiting, gaps between kernels",
}


class Rank(Kind):
    """What wins where events overlap: the larger rank."""

    NONE = 0
    HOST_COLLECTIVE = 1
    HOST_COMPUTE = 2
    COMPILE = 3
    COPY_TO_DEVICE = 4
    LAUNCH = 5
    COLLECTIVE = 6
    WAIT_INPUT = 7
    DEVICE_TO_DEVICE = 8
    DEVICE_TO_HOST = 9
    COMPUTE = 10
    COMPUTE_16BIT = 11


CATEGORY_OF_RANK: dict[Rank, str] = {
    Rank.NONE: "other",
    Rank.HOST_COLLECTIVE: "device_collectives",
    Rank.HOST_COMPUTE: "host_compute",
    Rank.COMPILE: "compilation",
    Rank.COPY_TO_DEVICE: "input",
    Rank.LAUNCH: "kernel_launch",
    Rank.COLLECTIVE: "device_collectives",
    Rank.WAIT_INPUT: "input",
    Rank.DEVICE_TO_DEVICE: "device_to_device",
    Rank.DEVICE_TO_HOST: "output",
    Rank.COMPUTE: "device_compute",
    Rank.COMPUTE_16BIT: "device_compute",
}

_RANK_OF_HOST_KIND: dict[EventKind, Rank] = {
    K.OTHER: Rank.HOST_COMPUTE,
    K.OP: Rank.HOST_COMPUTE,
    K.BACKWARD: Rank.HOST_COMPUTE,
    K.ANNOTATION: Rank.HOST_COMPUTE,
    K.TRACED_FUNCTION: Rank.HOST_COMPUTE,
    K.ITERATOR: Rank.HOST_COMPUTE,
    K.INPUT_HANDOVER: Rank.HOST_COMPUTE,
    K.INPUT_CALLBACK: Rank.HOST_COMPUTE,
    K.REGION_BEGIN: Rank.HOST_COMPUTE,
    K.CHECKPOINT: Rank.HOST_COMPUTE,
    K.COPY_HOST_TO_HOST: Rank.HOST_COMPUTE,
    K.COMPILE: Rank.COMPILE,
    K.COPY_HOST_TO_DEVICE_CALL: Rank.COPY_TO_DEVICE,
    K.COLLECTIVE_CALL: Rank.COLLECTIVE,
    K.INPUT_WAIT: Rank.WAIT_INPUT,
    K.RUNTIME_CALL: Rank.LAUNCH,
    K.EXECUTOR: Rank.LAUNCH,
}
# Without a device a graph executor computes, and computation overlaps collectives as it does on a device.
_RANK_WITHOUT_DEVICE: dict[EventKind, Rank] = {K.EXECUTOR: Rank.HOST_COMPUTE, K.COLLECTIVE_CALL: Rank.HOST_COLLECTIVE}
_RANK_OF_DEVICE_KIND: dict[EventKind, Rank] = {
    K.KERNEL: Rank.COMPUTE,
    K.DEVICE_OP: Rank.COMPUTE,
    K.GRAPH_LAUNCH: Rank.COMPUTE,
    K.MEMSET: Rank.COMPUTE,
    K.COLLECTIVE: Rank.COLLECTIVE,
    K.COPY_HOST_TO_DEVICE: Rank.COPY_TO_DEVICE,
    K.INFEED: Rank.WAIT_INPUT,
    K.COPY_DEVICE_TO_HOST: Rank.DEVICE_TO_HOST,
    K.OUTFEED: Rank.DEVICE_TO_HOST,
    K.COPY_DEVICE_TO_DEVICE: Rank.DEVICE_TO_DEVICE,
    K.COPY_PEER: Rank.DEVICE_TO_DEVICE,
    K.COPY_OTHER: Rank.DEVICE_TO_DEVICE,
}


@dataclass(frozen=True)
class Breakdown:
    """Time by rank.

    Attributes:
        per_step_ps: int64 of shape (steps, ranks); column NONE is unexplained time, so rows add up to the step.
        compute_16bit_ps, compute_32bit_ps: device compute over all steps at 16 bits or fewer and at 32; whole events
            count, even if they outlast the step.
    """

    per_step_ps: I64
    compute_16bit_ps: int
    compute_32bit_ps: int

    def categories_ps(self) -> dict[str, I64]:
        """Time of each category: int64 of shape (steps,)."""
        return sum_by_category(self.per_step_ps)


def category_cells(parts_ps: Sequence[Sequence[int]]) -> list[dict[str, Cell]]:
    """The parts of each of some steps, in the order of CATEGORIES, as cells in ms."""
    return [dict(zip(CATEGORIES, row, strict=True)) for row in rows_in_ms(parts_ps)]


def sum_by_category(by_rank: I64) -> dict[str, I64]:
    """Sums the ranks, the last axis, by category, in the order of CATEGORIES."""
    sums = {category: np.zeros(by_rank.shape[:-1], np.int64) for category in CATEGORIES}
    for rank, category in CATEGORY_OF_RANK.items():
        sums[category] = sums[category] + by_rank[..., rank]
    return sums


def rank_events(trace: HostTrace) -> U8:
    """The rank of every event, NONE for events that do not explain time: uint8 of shape (events,)."""
    device = is_device_work(trace)
    by_kind = np.zeros((2, 256), np.uint8)
    of_host = _RANK_OF_HOST_KIND | ({} if trace.device_planes() else _RANK_WITHOUT_DEVICE)
    for row, ranks in enumerate((of_host, _RANK_OF_DEVICE_KIND)):
        by_kind[row, list(ranks)] = list(ranks.values())
    rank = look_up(by_kind[0], trace.events.kind)
    np.copyto(rank, look_up(by_kind[1], trace.events.kind), where=device)
    threads = is_thread_event(trace)
    rank[~(threads | device)] = Rank.NONE
    if trace.device_planes():
        rank[blocking_calls(trace)] = Rank.NONE  # a thread that waits for a device launches nothing
    narrow = (trace.events.traits & np.uint8(Trait.COMPUTES_16BIT)) != 0
    rank[(rank == Rank.COMPUTE) & narrow] = Rank.COMPUTE_16BIT
    return rank


def breakdown(trace: HostTrace, steps: HostSteps) -> Breakdown:
    """Breaks down the steps of a host.

    Work counts for the step during which it happens, whichever step started it.  A program that runs ahead of its
    device does the work of one step during the next.  Its first step then holds work of steps before the capture.
    """
    links, rank = forest(trace), rank_events(trace)
    known = (rank > Rank.NONE) & (links.extent_ps > 0)
    ours = steps.label >= 0
    near = ours | is_device_work(trace) | ((trace.events.line == steps.line) & (steps.line >= 0))
    own = np.asarray(kernels.nesting.outer_rows(rank * (known & near), links.parent))
    row, start, end = active_parts(trace, own)
    totals = time_by_rank(rank[row], start, end, steps.start_ps, steps.until_ps)
    compute = own[(rank[own] >= Rank.COMPUTE) & ours[own]]
    narrow = Spans.of_rows(trace.events.start_ps, links.extent_ps, compute[rank[compute] == Rank.COMPUTE_16BIT])
    whole = Spans.of_rows(trace.events.start_ps, links.extent_ps, compute)
    return Breakdown(totals, narrow.total, whole.total - narrow.total)


def active_parts(trace: HostTrace, rows: I64) -> tuple[I64, I64, I64]:
    """When events are active: row, start and end of each part.

    The time in which a host event's thread waits for a device does not count.
    """
    start = trace.events.start_ps[rows]
    end = start + forest(trace).extent_ps[rows]
    if not trace.device_planes() or not len(blocking_calls(trace)):
        return rows, start, end
    at, start, end = cut_waits(trace, rows, start, end)
    return rows[at], start, end


def time_by_rank(rank: U8, start: I64, end: I64, begin: I64, stop: I64) -> I64:
    """Time of each span `begin:stop` by rank, unexplained time as NONE: int64 of shape (spans, ranks).

    Args:
        rank, start, end: the events.
        begin, stop: the spans, in order of time.
    """
    totals = np.zeros((len(begin), len(Rank)), np.int64)
    for each, spans in _spans_by_rank(rank, start, end):
        totals[:, each] = spans.overlap_ps(begin, stop) - totals[:, each + 1 :].sum(axis=1)
    totals[:, Rank.NONE] = stop - begin - totals[:, 1:].sum(axis=1)
    return totals


def _spans_by_rank(rank: U8, start: I64, end: I64) -> Iterator[tuple[int, Spans]]:
    """When an event of each rank or a higher one is active, the highest rank first, those without events left out."""
    spans = Spans(start[:0], start[:0])
    for each in np.flatnonzero(np.bincount(rank))[::-1].tolist():
        here = rank == each
        spans = spans | Spans.union(start[here], end[here])
        yield each, spans
