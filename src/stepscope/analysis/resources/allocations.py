"""The allocation events of a trace as columns, and which deallocation ends which allocation.

Only allocation events are read, so the cost depends on their number and not on the length of the trace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, PlaneKind, Stats, StatTag, stat_names
from stepscope.model.arrays import F64, I64, U8, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import OpTrait

UNKNOWN = -1

# TensorFlow's numbers for element types.
DATA_TYPES: dict[int, str] = dict(
    enumerate(
        (
            "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8",
            "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource",
            "variant", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz",
            "float8_e5m2fnuz", "int4", "uint4", "int2", "uint2", "float4_e2m1fn",
        ),
        start=1,
    )
)  # fmt: skip
# PyTorch's numbers for types of devices.  On AMD GPUs PyTorch says "cuda" as well.
_DEVICE_TYPES = {
    0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "privateuseone",
}  # fmt: skip
_CPU, _NAMELESS = 0, "memory"
# Keys of memories: string rows of allocators' names are below both of these.
_FROM_INDEX, _FROM_DEVICE = np.int64(1) << 40, np.int64(1) << 41
_KIND_STEP = 1 << 16
_MOST_ORDINAL, _MOST_KIND = _KIND_STEP - 2, 1 << 30

_ABSENT_TEXTS = ("", "(null)")
_OPS = (EventKind.OP, EventKind.BACKWARD)
_FUNCTIONS = (EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN, EventKind.ANNOTATION, EventKind.INPUT_CALLBACK)

_WANTED: dict[str, tuple[str, ...]] = {
    "allocator": stat_names.ALLOCATOR,
    "index": stat_names.MEMORY_INDEX,
    "device_type": stat_names.MEMORY_DEVICE_TYPE,
    "device_id": stat_names.MEMORY_DEVICE_ID,
    "stack": stat_names.STACK_BYTES,
    "heap": stat_names.HEAP_BYTES,
    "free": stat_names.FREE_BYTES,
    "pool": stat_names.POOL_BYTES,
    "fragmentation": stat_names.FRAGMENTATION,
    "peak": stat_names.PEAK_HEAP_BYTES,
    "requested": stat_names.REQUESTED_BYTES,
    "allocated": stat_names.ALLOCATED_BYTES,
    "address": stat_names.ADDRESS,
    "op": stat_names.ALLOCATING_OP,
    "region": stat_names.REGION_TYPE,
    "data_type": stat_names.DATA_TYPE,
    "shape": stat_names.TENSOR_SHAPE,
}


@dataclass(frozen=True)
class RawStat:
    """One stat of some events: the raw 64-bit values and tags that say how to read them; tag 0 where there is none."""

    value: I64
    tag: U8

    def ints(self) -> I64:
        """The values as integers that are never negative, such as sizes; UNKNOWN where there is none."""
        return np.maximum(self.signed(UNKNOWN), UNKNOWN)

    def signed(self, missing: int = 0) -> I64:
        """The values as integers of either sign; `missing` where there is none."""
        whole = (self.tag == StatTag.INT) | (self.tag == StatTag.UINT)
        out = np.where(whole, self.value, missing)
        broken = self.tag == StatTag.DOUBLE
        if broken.any():
            floats = np.nan_to_num(self.value[broken].view(np.float64), nan=missing, posinf=missing, neginf=missing)
            out[broken] = np.rint(np.clip(floats, -(2.0**62), 2.0**62)).astype(np.int64)
        return out

    def floats(self) -> F64:
        """The values as floats; NaN where there is none.  Writers may store a whole number as an integer."""
        out = np.full(len(self.value), np.nan)
        doubles, whole = self.tag == StatTag.DOUBLE, (self.tag == StatTag.INT) | (self.tag == StatTag.UINT)
        out[doubles] = self.value[doubles].view(np.float64)
        out[whole] = self.value[whole]
        return out

    def texts(self) -> I64:
        """The values as rows of the string table; UNKNOWN where there is no text."""
        return np.where(self.tag == StatTag.STRING, self.value, UNKNOWN)

    def present(self) -> Mask:
        """Which events have a value."""
        found: Mask = self.tag != StatTag.NONE
        return found

    def __getitem__(self, rows: I64) -> RawStat:
        return RawStat(self.value[rows], self.tag[rows])


@dataclass(frozen=True)
class Allocations:
    """The allocation events of one memory, in order of time.

    Attributes:
        memory: the memory's name.
        event: int64 of shape (n,), the events' rows in the trace.
        time_ps: int64 of shape (n,).
        is_allocation: bool of shape (n,).
        columns: the stats, by the names in `_WANTED`.
        device: ordinal of the device to which the memory belongs; None if unknown.
    """

    memory: str
    event: I64
    time_ps: I64
    is_allocation: Mask
    columns: dict[str, RawStat]
    device: int | None

    def __len__(self) -> int:
        return len(self.event)


def allocations_of(trace: HostTrace) -> list[Allocations]:
    """The allocation events of each memory of a host, in the order of the memories' names."""
    kind = trace.events.kind
    event = np.flatnonzero((kind == EventKind.ALLOCATION) | (kind == EventKind.DEALLOCATION))
    if not len(event):
        return []
    columns = dict(zip(_WANTED, stat_columns(trace, event, list(_WANTED.values())), strict=True))
    key = _memory_keys(columns)
    found = [_select_memory(trace, event, columns, key, int(each)) for each in distinct(key)]
    return sorted(found, key=lambda memory: memory.memory)


def _memory_keys(columns: dict[str, RawStat]) -> I64:
    """A number that identifies the memory of each event: from its allocator's name, else from its device."""
    kind, index = columns["device_type"].ints(), columns["index"].ints()
    ordinal = np.clip(columns["device_id"].signed(-1), -1, _MOST_ORDINAL)
    device = np.minimum(kind, _MOST_KIND) * _KIND_STEP + ordinal + 1 + _FROM_DEVICE
    # A number below 0, such as an index of -1 for no device, names no memory.
    key = np.where(kind >= 0, device, UNKNOWN)
    key = np.where(index >= 0, np.minimum(index, _FROM_DEVICE - _FROM_INDEX - 1) + _FROM_INDEX, key)
    named = columns["allocator"].texts()
    return np.where(named >= 0, named, key)


def _select_memory(trace: HostTrace, event: I64, columns: dict[str, RawStat], key: I64, wanted: int) -> Allocations:
    rows = np.flatnonzero(key == wanted)
    rows = rows[np.argsort(trace.events.start_ps[event[rows]], kind="stable")]
    own = event[rows]
    name, device = _memory_name(trace, wanted)
    return Allocations(
        memory=name,
        event=own,
        time_ps=trace.events.start_ps[own],
        is_allocation=trace.events.kind[own] == EventKind.ALLOCATION,
        columns={stat: column[rows] for stat, column in columns.items()},
        device=device,
    )


def _memory_name(trace: HostTrace, key: int) -> tuple[str, int | None]:
    """A memory's name and the ordinal of its device; None if it has no device or the ordinal is unknown."""
    if key == UNKNOWN:
        return _NAMELESS, None
    if key < _FROM_INDEX:
        return trace.strings[key], None
    if key < _FROM_DEVICE:
        return str(key - int(_FROM_INDEX)), None
    kind, ordinal = divmod(key - int(_FROM_DEVICE), _KIND_STEP)
    name = _DEVICE_TYPES.get(kind, f"device type {kind}")
    return (name, None) if kind == _CPU or ordinal == 0 else (f"{name}:{ordinal - 1}", ordinal - 1)


def device_memory_bytes(trace: HostTrace, ordinal: int) -> int | None:
    """The size of a GPU's memory; None if the trace does not say."""
    for plane in trace.device_planes():
        if trace.planes.kind[plane] == PlaneKind.GPU and trace.planes.ordinal[plane] == ordinal:
            facts = trace.stats_of_plane(plane)
            sizes = [facts[name] for name in stat_names.DEVICE_MEMORY_BYTES if name in facts]
            return next((size for size in sizes if isinstance(size, int) and size > 0), None)
    return None


# -- stats -------------------------------------------------------------------------------------------------------


def stat_columns(trace: HostTrace, events: I64, wanted: Sequence[tuple[str, ...]]) -> list[RawStat]:
    """The values of some stats of some events, from one pass over these events' stats.

    A stat may have several spellings; the first that has a value wins.  An event's own stat wins over its type's.
    """
    slots: dict[int, int] = {}
    for spelling in (name for names in wanted for name in names):
        row = trace.strings.find(spelling)
        if row > 0:
            slots.setdefault(row, len(slots))
    slot_of_name = np.full(len(trace.strings), -1, np.int16)
    slot_of_name[list(slots)] = list(slots.values())
    found = _gather_stats(trace.all_event_stats, events, slot_of_name, len(slots))
    _fill_from_types(trace, events, slot_of_name, found)
    return [_first_known(found, [slots.get(trace.strings.find(name), -1) for name in names]) for names in wanted]


def _gather_stats(stats: Stats, owners: I64, slot_of_name: NDArray[np.int16], n_slots: int) -> RawStat:
    """The stats as a table: value and tag of shape (slots, owners)."""
    value, tag = np.zeros((n_slots, len(owners)), np.int64), np.zeros((n_slots, len(owners)), np.uint8)
    kernels.stats.gather(stats.offsets, owners, stats.name, stats.tag, stats.value, slot_of_name, value, tag)
    return RawStat(value, tag)


def _fill_from_types(trace: HostTrace, events: I64, slot_of_name: NDArray[np.int16], found: RawStat) -> None:
    present = np.zeros(len(trace.event_types), np.bool_)
    present[trace.events.type[events]] = True
    types = np.flatnonzero(present)
    of_type = _gather_stats(trace.type_stats, types, slot_of_name, len(found.value))
    if not of_type.tag.any():
        return
    place = np.searchsorted(types, trace.events.type[events])
    lacking = found.tag == StatTag.NONE
    found.value[lacking] = of_type.value[:, place][lacking]
    found.tag[lacking] = of_type.tag[:, place][lacking]


def _first_known(table: RawStat, slots: Sequence[int]) -> RawStat:
    """For each owner, the value of the first of some rows of a table that has one."""
    known = [slot for slot in slots if slot >= 0]
    if not known:
        return RawStat(np.zeros(table.value.shape[1], np.int64), np.zeros(table.value.shape[1], np.uint8))
    out = RawStat(table.value[known[0]], table.tag[known[0]])
    if len(known) > 1:
        out = RawStat(out.value.copy(), out.tag.copy())
    for slot in known[1:]:
        lacking = out.tag == StatTag.NONE
        out.value[lacking], out.tag[lacking] = table.value[slot][lacking], table.tag[slot][lacking]
    return out


# -- lifetimes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lifetimes:
    """Which deallocation ends which allocation.

    Attributes:
        end: int64 of shape (n,), for an allocation the event of the memory that ends it; n if none does.
        origin: int64 of shape (n,), for a deallocation the allocation that it ends; UNKNOWN if it was not recorded.
    """

    end: I64
    origin: I64


def lifetimes(memory: Allocations) -> Lifetimes:
    """Pairs allocations and deallocations of one memory.

    They are matched by address.  An address that is allocated again was freed in between, even if that was not
    recorded.  Where no addresses are recorded, a deallocation ends the latest allocation of its size that is still
    alive.
    """
    address = memory.columns["address"]
    known = address.present()
    key = address.signed()
    if not known.all():
        nested = _key_by_size(np.abs(memory.columns["allocated"].signed()), memory.is_allocation)
        _, key = np.unique(np.where(known, key, nested), return_inverse=True)
        key = key * 2 + known
    order = np.argsort(key, kind="stable")
    sorted_key, is_allocation = key[order], memory.is_allocation[order]
    follows = np.flatnonzero(sorted_key[1:] == sorted_key[:-1])
    end, origin = np.full(len(key), len(key)), np.full(len(key), UNKNOWN)
    starts = follows[is_allocation[follows]]
    end[order[starts]] = order[starts + 1]
    stops = starts[~is_allocation[starts + 1]]
    origin[order[stops + 1]] = order[stops]
    return Lifetimes(end, origin)


def _key_by_size(size: I64, is_allocation: Mask) -> I64:
    """A key that is equal for an allocation and the deallocation that ends it.

    It consists of the size and the number of allocations of that size that are alive: last in, first out.
    """
    order = np.argsort(size, kind="stable")
    change = np.where(is_allocation[order], 1, -1)
    first = np.flatnonzero(np.diff(size[order], prepend=-1))
    running = np.cumsum(change)
    run = np.repeat(np.arange(len(first)), np.diff(first, append=len(size)))
    depth = running - (running[first] - change[first])[run]
    level = np.where(change > 0, depth, depth + 1)
    key = np.empty(len(size), np.int64)
    key[order] = run * (2 * len(size) + 3) + level + len(size) + 1
    return key


# -- ops ---------------------------------------------------------------------------------------------------------


def op_names(trace: HostTrace, events: I64, stated: I64) -> I64:
    """The op that requested the memory of each event, as rows of the string table; UNKNOWN if it cannot be found.

    It is the op that the allocator recorded, else the innermost op around the event or around its cause, else the
    innermost function or annotation there, else the outermost call of the runtime around the event on its thread.
    """
    named = stated.copy()
    absent = [trace.strings.find(text) for text in _ABSENT_TEXTS]
    named[np.isin(named, [row for row in absent if row >= 0])] = UNKNOWN
    rows = np.flatnonzero(named < 0)
    links, kind = forest(trace), trace.events.kind
    inner = _find_around(trace, events[rows], _OPS)
    without = np.flatnonzero(inner < 0)
    inner[without] = _find_around(trace, events[rows[without]], _FUNCTIONS)
    outer, above = inner.copy(), np.where(inner < 0, links.parent[events[rows]], UNKNOWN)
    while (going := above >= 0).any():
        outer = np.where(going & (kind[above] == EventKind.OTHER), above, outer)
        above = np.where(going, links.parent[above], UNKNOWN)
    named[rows] = np.where(outer >= 0, trace.event_types.name[trace.events.type[outer]], UNKNOWN)
    return named


def find_op_around(trace: HostTrace, events: I64) -> I64:
    """The innermost op around each event or around its cause; UNKNOWN if there is none."""
    return _find_around(trace, events, _OPS)


def _only_allocates(trace: HostTrace, events: I64) -> Mask:
    """Which events are ops that do nothing but allocate: bool of shape (events,)."""
    return has_trait(trace, trace.events.type[events], OpTrait.ONLY_ALLOCATES)


def _find_around(trace: HostTrace, events: I64, kinds: Sequence[EventKind]) -> I64:
    """The nearest event of one of `kinds` around each event; UNKNOWN if there is none.

    At the top of a thread the search continues with the cause.  Ops that only allocate count only if no event above
    them does.
    """
    links, kind = forest(trace), trace.events.kind
    wanted = np.zeros(256, np.bool_)
    wanted[list(kinds)] = True
    found, second = np.full(len(events), UNKNOWN), np.full(len(events), UNKNOWN)
    at, rows = links.parent[events].astype(np.int64), np.arange(len(events))
    while len(rows):
        kept = at >= 0
        at, rows = at[kept], rows[kept]
        hit = wanted[kind[at]]
        weak = hit.copy()
        weak[hit] = _only_allocates(trace, at[hit])
        second[rows[weak]] = at[weak]
        hit &= ~weak
        found[rows[hit]] = at[hit]
        at, rows = at[~hit], rows[~hit]
        above = links.parent[at]
        # A cause starts before its effect.  Following one that does not could go round in a circle.
        cause = np.where(trace.events.start_ps[links.cause[at]] < trace.events.start_ps[at], links.cause[at], UNKNOWN)
        at = np.where(above >= 0, above, cause).astype(np.int64)
    return np.where(found >= 0, found, second)
