"""How full one memory was over time: its peak, what was alive at the peak, and a timeline.

Peak and breakdown count every event; only the timeline is thinned out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.resources.allocations import (
    DATA_TYPES,
    UNKNOWN,
    Allocations,
    Lifetimes,
    device_memory_bytes,
    lifetimes,
    op_names,
)
from stepscope.analysis.resources.memory_growth import (
    Growth,
    Staying,
    compared_steps,
    group_staying,
    growth_of_levels,
    staying_rows,
)
from stepscope.analysis.resources.purposes import Held, hold_at_peak
from stepscope.analysis.steps.find_steps import steps_of, steps_of_events
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.report.relation import Counted, Relation

MOST_POINTS = 1000  # of a timeline
MOST_ROWS = 1000  # of a breakdown, one of them for what has no row of its own
MOST_STAYING = 50
BEFORE = "(allocated before the capture)"
STACK = "stack"


@dataclass(frozen=True)
class Points:
    """Moments of one memory, as columns; None where the profile does not say.

    Attributes:
        time_ps: from the start of the host's session.
        is_allocation: False for a deallocation.
        requested, allocated: bytes requested and allocated, negative for deallocations.
        op, region, data_type, shape: rows of `texts`.
        step: the number of the step in which it happens.
        stack, heap, free, pool: bytes after the event.
        fragmentation: 0 to 1; unknown if the recorded value is outside this range.
        texts: the texts to which the columns refer.
    """

    time_ps: list[int]
    is_allocation: list[bool]
    requested: list[int | None]
    allocated: list[int | None]
    op: list[int | None]
    region: list[int | None]
    data_type: list[int | None]
    shape: list[int | None]
    step: list[int | None]
    stack: list[int | None]
    heap: list[int | None]
    free: list[int | None]
    pool: list[int | None]
    fragmentation: list[float | None]
    texts: list[str]

    def in_use_at(self, row: int) -> int | None:
        """Stack and heap at one moment, in bytes."""
        heap = self.heap[row]
        return None if heap is None else heap + (self.stack[row] or 0)


BREAKDOWN = Relation(
    ("op", "region", "dtype", "shape"),
    ("allocated_bytes", "requested_bytes", "occurrences"),
    order=("-allocated_bytes", "-requested_bytes", "op", "region", "dtype", "shape"),
    most=MOST_ROWS - 1,
)
"""Allocations that are alive at the peak, by what they share."""


AliveRow = tuple[str | None, str | None, str | None, str | None, int, int | None, int]
"""A row of BREAKDOWN."""


@dataclass(frozen=True)
class MemoryOfHost:
    """One memory of one host.

    Attributes:
        id: its name.
        allocations, deallocations: their numbers.
        capacity: bytes, None if unknown.
        peak_heap: the most heap in use since the program started, bytes; None if not recorded.
        peak: the moment of the most memory in use during the capture, one point; none if sizes are unknown.
        timeline: at most MOST_POINTS moments, in order of time.
        breakdown: what was alive at the peak: rows of BREAKDOWN.
        held: what the memory at the peak is for, the most first.
        counts_from_start: True if the profile has no totals; sizes were then summed from the start of the capture.
        has_addresses: False if deallocations had to be matched by size.
        surplus: the bytes by which the allocations alive at the peak exceed the memory in use.
        growth: by how much it grows from step to step; None with too few steps.
        staying: the allocations that make it grow, most bytes first.
    """

    id: str
    allocations: int
    deallocations: int
    capacity: int | None
    peak_heap: int | None
    peak: Points
    timeline: Points
    breakdown: Counted
    held: list[Held]
    counts_from_start: bool
    has_addresses: bool
    surplus: int
    growth: Growth | None
    staying: list[Staying]


@dataclass(frozen=True)
class _Usage:
    """State of a memory after each event, in bytes; UNKNOWN where not known; int64 of shape (n,)."""

    stack: I64
    heap: I64
    free: I64
    pool: I64
    counts_from_start: bool

    @property
    def in_use(self) -> I64:
        return np.where(self.heap >= 0, self.heap + np.maximum(self.stack, 0), UNKNOWN)


@dataclass(frozen=True)
class _Sizes:
    """Bytes requested and allocated by each event; int64 of shape (n,), UNKNOWN where not known, else 0 or more."""

    requested: I64
    allocated: I64


def profile_memory(trace: HostTrace, memory: Allocations) -> MemoryOfHost:
    """The profile of one memory."""
    lives = lifetimes(memory)
    sizes = _find_sizes(memory, lives)
    usage = _find_usage(trace, memory, lives, sizes)
    in_use = usage.in_use
    peak = len(in_use) - 1 - int(np.argmax(in_use[::-1]))  # the last of equal ones
    found = np.array([peak] if in_use[peak] >= 0 else [], np.int64)
    alive = _find_alive(memory, lives, peak) if len(found) else found
    known = int(np.maximum(sizes.allocated[alive], 0).sum())
    heap, stack = int(usage.heap[peak]), int(usage.stack[peak])
    return MemoryOfHost(
        id=memory.memory,
        allocations=int(memory.is_allocation.sum()),
        deallocations=int((~memory.is_allocation).sum()),
        capacity=_find_capacity(trace, memory, usage, peak),
        peak_heap=_find_peak_heap(memory, usage),
        peak=_make_points(trace, memory, lives, sizes, usage, found),
        timeline=_make_points(trace, memory, lives, sizes, usage, thin_out(in_use, MOST_POINTS)),
        breakdown=BREAKDOWN.keep(
            [
                *(_unrecorded_memory(usage, peak, known) if len(found) else ()),
                *_alive_rows(trace, memory, sizes, alive),
            ]
        ),
        held=hold_at_peak(trace, memory, lives, sizes.allocated, alive, stack, heap - known) if len(found) else [],
        counts_from_start=usage.counts_from_start,
        has_addresses=bool(memory.columns["address"].present().all()),
        surplus=max(known - heap, 0) if len(found) else 0,
        growth=growth_of_levels(trace, memory.memory, memory.time_ps, in_use),
        staying=_find_staying(trace, memory, lives, sizes),
    )


def _find_staying(trace: HostTrace, memory: Allocations, lives: Lifetimes, sizes: _Sizes) -> list[Staying]:
    """The allocations that every few steps leave behind."""
    steps = steps_of(trace)
    rows, step = staying_rows(steps, memory.time_ps, lives.end, memory.is_allocation)
    op, region, data_type, shape = _describe_events(trace, memory, rows)
    sites = call_sites(trace, memory.event[rows]).tolist()
    place = [site_text(trace.strings[site]) or None if site >= 0 else None for site in sites]
    described = list(zip(op, place, region, data_type, shape, strict=True))
    compared = len(compared_steps(steps)) - 1
    return group_staying(described, step, np.maximum(sizes.allocated[rows], 0), compared, MOST_STAYING)


def memory_in_use(trace: HostTrace, memory: Allocations) -> I64:
    """The bytes in use after each event of a memory; int64 of shape (n,), UNKNOWN where not known."""
    lives = lifetimes(memory)
    return _find_usage(trace, memory, lives, _find_sizes(memory, lives)).in_use


def thin_out(level: I64, most: int) -> I64:
    """Thins out a timeline to at most `most` rows: the highest of each group of neighbours, the first of equal ones.

    Group sizes differ by at most one; the smaller groups come first.
    """
    n = len(level)
    if n <= most:
        return np.arange(n)
    small = n // most
    n_small = most * (small + 1) - n
    size = np.where(np.arange(most) < n_small, small, small + 1)
    first = np.cumsum(size) - size
    highest = np.repeat(np.maximum.reduceat(level, first), size)
    rows = np.flatnonzero(level == highest)
    _, place = np.unique(np.repeat(np.arange(most), size)[rows], return_index=True)
    return rows[place]


def _find_sizes(memory: Allocations, lives: Lifetimes) -> _Sizes:
    """The sizes of all events; a deallocation without a size gets that of its allocation."""
    given, asked = memory.columns["allocated"], memory.columns["requested"].ints()
    # Some writers give deallocations a negative size.
    allocated = np.where(given.present(), np.abs(given.signed()), UNKNOWN)
    paired = lives.origin >= 0
    silent = paired & (allocated <= 0)
    return _Sizes(
        requested=np.where(paired & (asked <= 0), asked[lives.origin], asked),
        allocated=np.where(silent, allocated[lives.origin], allocated),
    )


def _find_usage(trace: HostTrace, memory: Allocations, lives: Lifetimes, sizes: _Sizes) -> _Usage:
    columns = memory.columns
    heap, free = columns["heap"].ints(), columns["free"].ints()
    from_start = bool((heap < 0).all()) and bool((sizes.allocated >= 0).any())
    if from_start:
        change = np.where(memory.is_allocation, 1, -1) * np.maximum(sizes.allocated, 0)
        # What is freed without having been allocated in the capture was there at its start.
        heap = np.cumsum(change) - int(change[~memory.is_allocation & (lives.origin < 0)].sum())
    size = device_memory_bytes(trace, memory.device) if memory.device is not None else None
    if size is not None and not from_start:
        free = np.where((free < 0) & (heap >= 0), np.maximum(size - heap, 0), free)
    pool = columns["pool"].ints()
    pool = np.where(pool >= heap, pool, UNKNOWN)  # PyTorch writes 0 for the host, which has no such pool
    return _Usage(columns["stack"].ints(), heap, free, pool, from_start)


def _find_capacity(trace: HostTrace, memory: Allocations, usage: _Usage, peak: int) -> int | None:
    """What the allocator manages at the peak, else the size of the device's memory by the file."""
    in_use, free = int(usage.in_use[peak]), int(usage.free[peak])
    if in_use >= 0 and free >= 0:
        return in_use + free
    return device_memory_bytes(trace, memory.device) if memory.device is not None else None


def _find_peak_heap(memory: Allocations, usage: _Usage) -> int | None:
    stated = memory.columns["peak"].ints()
    return max(int(stated.max()), int(usage.heap.max())) if (stated >= 0).any() else None


# -- points ------------------------------------------------------------------------------------------------------


def _make_points(
    trace: HostTrace, memory: Allocations, lives: Lifetimes, sizes: _Sizes, usage: _Usage, rows: I64
) -> Points:
    is_allocation = memory.is_allocation[rows]
    sign = np.where(is_allocation, 1, -1)
    # A deallocation is described by the allocation that it ends.
    source = np.where(~is_allocation & (lives.origin[rows] >= 0), lives.origin[rows], rows)
    texts: dict[str, int] = {}
    described = _describe_events(trace, memory, source)
    op, region, data_type, shape = (
        [None if text is None else texts.setdefault(text, len(texts)) for text in column] for column in described
    )
    fragmentation = memory.columns["fragmentation"].floats()[rows]
    return Points(
        time_ps=memory.time_ps[rows].tolist(),
        is_allocation=is_allocation.tolist(),
        requested=_hide_unknown(sizes.requested[rows], sign),
        allocated=_hide_unknown(sizes.allocated[rows], sign),
        op=op,
        region=region,
        data_type=data_type,
        shape=shape,
        step=_step_numbers(trace, memory.event[rows]),
        stack=_hide_unknown(usage.stack[rows]),
        heap=_hide_unknown(usage.heap[rows]),
        free=_hide_unknown(usage.free[rows]),
        pool=_hide_unknown(usage.pool[rows]),
        fragmentation=[value if 0 <= value <= 1 else None for value in fragmentation.tolist()],
        texts=list(texts),
    )


def _hide_unknown(values: I64, sign: I64 | int = 1) -> list[int | None]:
    signed = (values * sign).tolist()
    return [None if value < 0 else shown for value, shown in zip(values.tolist(), signed, strict=True)]


def _describe_events(trace: HostTrace, memory: Allocations, rows: I64) -> tuple[list[str | None], ...]:
    """Op, region, element type and shape of some events, as texts."""
    columns = memory.columns
    stated = columns["op"][rows].texts()
    # The calls around a deallocation show who frees the memory, not who requested it.
    op = np.where(memory.is_allocation[rows], op_names(trace, memory.event[rows], stated), stated)
    types = columns["data_type"][rows]
    type_names = _read_texts(trace, types.texts())
    for row, number in enumerate(types.ints().tolist()):
        type_names[row] = type_names[row] or DATA_TYPES.get(number % 100)  # numbers above 100 are references to a type
    region, shape = (_read_texts(trace, columns[name][rows].texts()) for name in ("region", "shape"))
    return _read_texts(trace, op), region, type_names, shape


def _read_texts(trace: HostTrace, rows: I64) -> list[str | None]:
    known = distinct(rows[rows >= 0])
    texts = zip(known.tolist(), trace.strings.texts(known), strict=True)
    found = {row: text for row, text in texts if text not in ("", "(null)")}
    return [found.get(row) for row in rows.tolist()]


def _step_numbers(trace: HostTrace, events: I64) -> list[int | None]:
    """The number of the step that each event belongs to."""
    steps = steps_of(trace)
    if steps.source == "none":
        return [None] * len(events)
    rows = steps_of_events(trace, events).tolist()
    return [int(steps.number[row]) if row >= 0 else None for row in rows]


# -- breakdown ---------------------------------------------------------------------------------------------------


def _find_alive(memory: Allocations, lives: Lifetimes, peak: int) -> I64:
    """The allocations made by the time of the peak and freed after it."""
    rows = np.arange(peak + 1)
    return rows[memory.is_allocation[: peak + 1] & (lives.end[: peak + 1] > peak)]


def _unrecorded_memory(usage: _Usage, peak: int, known: int) -> Iterator[AliveRow]:
    """The memory in use at the peak in addition to the recorded allocations."""
    stack, heap = int(usage.stack[peak]), int(usage.heap[peak])
    if stack > 0:
        yield STACK, STACK, None, None, stack, stack, 1
    if heap > known:
        yield BEFORE, None, None, None, heap - known, None, 1


def _alive_rows(trace: HostTrace, memory: Allocations, sizes: _Sizes, alive: I64) -> Iterator[AliveRow]:
    asked = [None if size < 0 else size for size in sizes.requested[alive].tolist()]
    given = np.maximum(sizes.allocated[alive], 0).tolist()
    described = _describe_events(trace, memory, alive)
    return zip(*described, given, asked, [1] * len(alive), strict=True)
