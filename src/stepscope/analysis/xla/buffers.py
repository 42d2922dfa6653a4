"""The memory of a program as its compiler laid it out: allocations, the buffers in them, and when each is alive.

XLA plans a program's memory before it runs. Parameters, results and constants have memory for the whole run; everything
between shares one block, in which the compiler's heap simulation gave each buffer its place and its time.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.hlo.fields import Fields, fields_of
from stepscope.analysis.hlo.module import Module
from stepscope.model.arrays import I64, Mask, places_of
from stepscope.records import dataclass

_LOGICAL, _ALLOCATION, _TRACE = 1, 3, 4
_BUFFER_ID, _BUFFER_SIZE, _DEFINED_AT, _BUFFER_SPACE = 1, 2, 3, 4
_AT_NAME, _AT_INDEX, _AT_ID = 2, 3, 4
_INDEX, _SIZE, _THREAD_LOCAL, _IS_PARAMETER, _PARAMETER, _LIVE_OUT, _SPACE, _ASSIGNED = 1, 2, 3, 5, 6, 7, 8, 9
_IS_TUPLE, _CONSTANT, _ALIASED = 11, 12, 13
_ASSIGNED_BUFFER, _ASSIGNED_OFFSET, _ASSIGNED_SIZE = 1, 2, 3
_EVENT, _EVENT_ALLOCATION = 1, 3
_KIND, _EVENT_BUFFER, _EVENT_INSTRUCTION, _CANONICAL = 1, 2, 4, 5
ALLOCATE, FREE, SHARE = 0, 1, 2

MAIN_MEMORY = 0


@dataclass(frozen=True)
class BufferAllocations:
    """The allocations of a program, columns of shape (allocations,).

    Attributes:
        index: as the program numbers them; nbytes: their sizes; space: the memory they lie in, 0 is the main one.
        parameter: number of the entry's parameter, -1 for others.
        aliased: the parameter's memory is reused for a result.
    """

    index: I64
    nbytes: I64
    space: I64
    parameter: I64
    live_out: Mask
    constant: Mask
    thread_local: Mask
    is_tuple: Mask
    aliased: Mask

    @property
    def lasting(self) -> Mask:
        """Memory that is there for the whole run."""
        return (self.parameter >= 0) | self.live_out | self.constant | self.thread_local

    def kinds(self) -> list[str]:
        """What each is for, in the words of the report."""
        found = np.full(len(self.index), "temporary", object)
        for mask, word in (
            (self.constant, "constant"), (self.thread_local, "thread-local"), (self.live_out, "output"),
            (self.parameter >= 0, "parameter"),
        ):  # fmt: skip
            found[mask] = word
        return [str(each) for each in found]


@dataclass(frozen=True)
class Buffers:
    """The logical buffers, columns of shape (buffers,).

    Attributes:
        ids, nbytes, space: number, size and memory of each.
        row: the instruction that makes it, -1 if it is not there.
        is_table: bool of shape (buffers,), the pointers of a tuple, which have no elements of their own.
        allocation: place in `BufferAllocations`, -1 if it has none.
        index_offsets, indices: int64 of shape (buffers + 1,) and (parts,), the place of each in its instruction's
            result, for results of several parts.
    """

    ids: I64
    nbytes: I64
    space: I64
    row: I64
    is_table: Mask
    allocation: I64
    index_offsets: I64
    indices: I64

    def index_of(self, at: int) -> list[int]:
        """The place of a buffer in its instruction's result."""
        found: list[int] = self.indices[self.index_offsets[at] : self.index_offsets[at + 1]].tolist()
        return found


@dataclass(frozen=True)
class Heap:
    """The simulated heap of a program's temporaries.

    Attributes:
        buffer: int64 of shape (events,), place in `Buffers` of the buffer whose memory changes hands, -1 if unknown.
        live: int64 of shape (events + 1,), bytes in use before the first event and after each.
        start, stop: int64 of shape (buffers,), events between which each buffer is alive; -1 if the trace lacks it.
        instruction: name of the instruction of an event.
    """

    buffer: I64
    live: I64
    start: I64
    stop: I64
    names: Fields

    def instruction(self, event: int) -> str:
        """The instruction at an event."""
        begin, end = self.names.range(_EVENT_INSTRUCTION)
        return self.names.buf[int(begin[event]) : int(end[event])].tobytes().decode("utf-8", "replace")


@dataclass(frozen=True)
class Memory:
    """The memory of a program in its device's main memory; `heap` is None where no simulation was recorded."""

    allocations: BufferAllocations
    buffers: Buffers
    heap: Heap | None

    @property
    def lasting_bytes(self) -> int:
        """Main memory that is there for the whole run."""
        here = self.allocations.lasting & (self.allocations.space == MAIN_MEMORY)
        return int(self.allocations.nbytes[here].sum())

    @property
    def temporary_bytes(self) -> int:
        """Main memory that is set aside for everything else."""
        here = ~self.allocations.lasting & (self.allocations.space == MAIN_MEMORY)
        return int(self.allocations.nbytes[here].sum())

    @property
    def heap_peak(self) -> int:
        """Temporaries that are alive at once at most; what is set aside for them where no simulation was recorded."""
        return self.temporary_bytes if self.heap is None else int(self.heap.live.max())

    @property
    def peak_bytes(self) -> int:
        """Main memory in use at the peak."""
        return self.lasting_bytes + self.heap_peak

    def alive_at_peak(self) -> I64:
        """Places of the temporaries that are alive at the peak."""
        if self.heap is None:
            return np.zeros(0, np.int64)
        peak = int(np.argmax(self.heap.live)) - 1  # after this event
        found: I64 = np.flatnonzero((self.heap.start >= 0) & (self.heap.start <= peak) & (self.heap.stop > peak))
        return found


def memory_of(module: Module) -> Memory | None:
    """The memory of a program; None if its compiler recorded no buffer assignment."""
    start, stop = module.buffer_assignment
    if start == stop:
        return None
    parts = fields_of(module.buf, np.array([start]), np.array([stop]))
    fields = fields_of(module.buf, *parts.ranges(_ALLOCATION)[1:])
    allocations = _allocations(fields)
    buffers = _buffers(module, fields_of(module.buf, *parts.ranges(_LOGICAL)[1:]), fields)
    return Memory(allocations, buffers, _heap(module, parts, allocations, buffers))


def _allocations(fields: Fields) -> BufferAllocations:
    is_parameter = fields.scalar(_IS_PARAMETER) != 0
    flags = [fields.scalar(number) != 0 for number in (_LIVE_OUT, _CONSTANT, _THREAD_LOCAL, _IS_TUPLE, _ALIASED)]
    number = np.where(is_parameter, fields.scalar(_PARAMETER), -1)
    sizes = np.maximum(fields.scalar(_SIZE), 0)
    return BufferAllocations(fields.scalar(_INDEX), sizes, fields.scalar(_SPACE), number, *flags)


def _buffers(module: Module, fields: Fields, allocations: Fields) -> Buffers:
    ids = fields.scalar(_BUFFER_ID)
    places = fields_of(module.buf, *fields.range(_DEFINED_AT))
    row = places_of(module.ids, places.scalar(_AT_ID, -1))
    start, stop = places.range(_AT_NAME)
    named = np.flatnonzero((row < 0) & (stop > start))
    row[named] = module.find_rows(module.buf, start[named], stop[named])
    offsets, numbers = places.numbers(_AT_INDEX)
    owner, starts, stops = allocations.ranges(_ASSIGNED)
    held = places_of(ids, fields_of(module.buf, starts, stops).scalar(_ASSIGNED_BUFFER))
    allocation = np.full(len(ids), -1, np.int64)
    allocation[held[held >= 0]] = owner[held >= 0]
    sizes = np.maximum(fields.scalar(_BUFFER_SIZE), 0)
    is_table = np.append(allocations.scalar(_IS_TUPLE) != 0, False)[allocation]
    return Buffers(ids, sizes, fields.scalar(_BUFFER_SPACE), row, is_table, allocation, offsets, numbers)


def _heap(module: Module, parts: Fields, allocations: BufferAllocations, buffers: Buffers) -> Heap | None:
    """The simulation of the temporaries in the main memory."""
    _, starts, stops = parts.ranges(_TRACE)
    traces = fields_of(module.buf, starts, stops)
    owner, begin, end = traces.ranges(_EVENT)
    chosen = _trace_of_main_memory(traces, owner, allocations)
    if chosen < 0:
        return None
    here = owner == chosen
    events = fields_of(module.buf, begin[here], end[here])
    if not events.count:
        return None
    return _replay(events, buffers)


def _trace_of_main_memory(traces: Fields, owner: I64, allocations: BufferAllocations) -> int:
    """The trace of the allocation that holds the temporaries; -1 if there is none."""
    wanted = places_of(allocations.index, traces.scalar(_EVENT_ALLOCATION))
    counts = np.bincount(owner, minlength=traces.count)
    best = -1
    for at in range(traces.count):
        place = int(wanted[at])
        if place < 0 or allocations.space[place] != MAIN_MEMORY:
            continue
        rank = (not allocations.lasting[place], counts[at])
        if best < 0 or rank > (not allocations.lasting[int(wanted[best])], counts[best]):
            best = at
    return best


def _replay(events: Fields, buffers: Buffers) -> Heap:
    """Counts who holds each buffer's memory: it is in use from the first holder to the last."""
    kind = events.scalar(_KIND)
    own = places_of(buffers.ids, events.scalar(_EVENT_BUFFER))
    shared = places_of(buffers.ids, events.scalar(_CANONICAL))
    canonical = np.arange(len(buffers.ids))
    for at in np.flatnonzero((kind == SHARE) & (own >= 0) & (shared >= 0)).tolist():
        canonical[own[at]] = canonical[shared[at]]
    known = own >= 0
    holder = np.where(known, canonical[np.maximum(own, 0)] if len(canonical) else -1, -1)
    order = np.argsort(holder, kind="stable")
    change = np.where(kind == FREE, -1, 1)[order]
    groups = holder[order]
    first = np.flatnonzero(np.append(True, np.diff(groups) != 0)) if len(groups) else np.zeros(0, np.int64)
    counted = np.cumsum(change)
    before = np.repeat(counted[first] - change[first], np.diff(np.append(first, len(groups))))
    refs = counted - before
    past = refs - change
    size = np.where(groups >= 0, buffers.nbytes[np.maximum(groups, 0)] if len(buffers.nbytes) else 0, 0)
    delta = np.zeros(len(kind), np.int64)
    delta[order] = np.where((past <= 0) & (refs > 0), size, 0) - np.where((past > 0) & (refs <= 0), size, 0)
    live = np.concatenate([[0], np.cumsum(delta)])
    start, stop = (np.full(len(buffers.ids), -1, np.int64) for _ in range(2))
    begins, ends = np.flatnonzero(delta > 0), np.flatnonzero(delta < 0)
    start[holder[begins[::-1]]] = begins[::-1]
    stop[start >= 0] = len(kind)
    stop[holder[ends]] = ends
    return Heap(holder, live, start, stop, events)
