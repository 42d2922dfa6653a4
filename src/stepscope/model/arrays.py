"""Column types, and the array operations that all of the code shares: runs of rows, numbered pairs of values."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.records import dataclass

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)
R = TypeVar("R")

_HOLDERS = (tuple, list, dict)

_BLOCK = 1 << 16  # rows at a time where a column of all would cost memory; what is made of a block stays in caches


def settle_arrays(found: R) -> R:
    """Puts the large arrays of a result that is finished into files, in a process that keeps within a set memory."""
    if kernels.memory.is_limited():
        left: list[Any] = [found]
        seen = set()
        while left:
            each = left.pop()
            if isinstance(each, np.ndarray):
                kernels.memory.settle(each.__array_interface__["data"][0])
            elif id(each) not in seen and (type(each) in _HOLDERS or type(each).__module__.startswith("stepscope.")):
                seen.add(id(each))
                left += [] if isinstance(each, type) else gc.get_referents(each)
    return found


def offsets_of(counts: NDArray[np.integer] | Mask | Sequence[int]) -> I64:
    """The start of each run of rows, and the end of the last one: int64 of shape (runs + 1,)."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def blocks_of(rows: int) -> Iterator[slice]:
    """All of so many rows, some ten thousand at a time."""
    return (slice(first, min(first + _BLOCK, rows)) for first in range(0, rows, _BLOCK))


def look_up(table: NDArray[T], index: NDArray[np.integer]) -> NDArray[T]:
    """The entry of each index, as `table[index]`; that would make an index of eight bytes for each event first.

    Args:
        table: of any type, shape (256,) for an index of bytes, else of shape (rows,).
        index: shape (n,), none below 0; bytes and int32 cost least.
    """
    out, of_rows = np.empty(len(index), table.dtype), cast(Any, index)
    if table.dtype.itemsize == 1 and table.flags.c_contiguous and index.flags.c_contiguous:
        into: NDArray[Any] = out.view(np.uint8)
        if index.dtype == np.uint8 and len(table) >= 256:
            kernels.columns.look_up(table, of_rows, into)
            return out
        if index.dtype == np.int32:
            kernels.columns.look_up_rows(table, of_rows, into)
            return out
    for rows in blocks_of(len(index)):
        out[rows] = table[index[rows]]
    return out


def used_rows(index: NDArray[np.integer], rows: int) -> I64:
    """The rows of a table of so many that an index uses, ascending; an index of int32 costs least."""
    marks, of_rows = np.zeros(rows, np.uint8), cast(Any, index)
    if index.dtype == np.int32 and index.flags.c_contiguous:
        kernels.columns.mark(of_rows, marks)
    else:
        for part in blocks_of(len(index)):
            marks[index[part]] = 1
    return np.flatnonzero(marks.view(np.bool_))  # of bytes it takes three times as long


def number_rows(index: NDArray[np.integer], rows: int) -> tuple[I64, I64]:
    """The rows of a table of so many that an index uses, ascending, and which of these each entry is: int64 of shape
    (used,) and (n,).

    As `np.unique` with `return_inverse`, which sorts: 14 ms for 230,000 types of events, 1 here.
    """
    used = used_rows(index, rows)
    place = np.zeros(rows, np.int64)
    place[used] = np.arange(len(used))
    return used, place[index]


def distinct(values: NDArray[T]) -> NDArray[T]:
    """Different values in ascending order, as `np.unique`.

    That one hashes times, which takes a hundred times as long as sorting, and imports `numpy.ma`, which takes 10 ms.
    """
    ordered = np.sort(values, kind="stable")
    different: NDArray[T] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return different


def union(one: NDArray[T], other: NDArray[T]) -> NDArray[T]:
    """Values that are in either, in ascending order, as `np.union1d`; which imports `numpy.ma` as well."""
    return distinct(np.concatenate((one, other)))


def median(values: NDArray[Any] | Sequence[float]) -> float:
    """The median of at least one value, none of them NaN, as `np.median`; which imports `numpy.ma` as well."""
    column = np.asarray(values)
    half = len(column) // 2
    places = [half] if len(column) % 2 else [half - 1, half]
    parted = np.partition(column, places)
    return float(parted[places[0]]) if len(places) == 1 else (float(parted[half - 1]) + float(parted[half])) / 2


def percentiles(values: NDArray[Any], percents: Sequence[float]) -> F64:
    """Percentiles along the first axis, none of its values NaN, as `np.percentile`: float64 of shape (percents, ...).

    Between two values the one that is nearer is the start of the way, as there: results are the same to the last bit.
    """
    ordered = np.sort(values, axis=0)
    found = []
    for percent in percents:
        place = (len(ordered) - 1) * (percent / 100)
        low = ordered[int(place)]
        high = ordered[min(int(place) + 1, len(ordered) - 1)]
        share = place - int(place)
        way = high - low
        found.append(high - way * (1 - share) if share >= 0.5 else low + way * share)
    return np.array(found, np.float64)


def count_below(values: NDArray[np.integer], limits: NDArray[np.integer], with_limit: bool = False) -> I64:
    """How many ascending values are below each limit, or at it as well: int64 of the shape of `limits`.

    As `np.searchsorted`, which takes five times as long where the limits ascend for the most part, as times do.
    """
    ascending, asked = (np.ascontiguousarray(each, np.int64) for each in (values, limits))
    found = np.empty(len(asked), np.int64)
    kernels.intervals.count_below(ascending, asked, with_limit, found)
    return found


def places_of(values: NDArray[np.integer], wanted: NDArray[np.integer]) -> I64:
    """The first place of each wanted value among some: int64 of the shape of `wanted`, -1 for none."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    at = count_below(ascending, wanted)
    found = np.append(order, -1)[at]
    found[np.append(ascending, 0)[at] != wanted] = -1
    return found


def run_rows(begins: I64, counts: I64) -> I64:
    """All rows of several runs, run after run: int64 of shape (sum of counts,)."""
    offsets = offsets_of(counts)
    return np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], counts)


def last_below(ascending: I64, first: I64, last: I64, limit: I64) -> I64:
    """The last place in each run `first:last` whose value is below the run's limit: int64 of shape (runs,).

    Values ascend within each run.  A run without such a value gets -1.
    """
    low, high = first - 1, last.copy()
    while (narrow := high - low > 1).any():
        middle = np.where(narrow, (low + high) // 2, np.maximum(low, 0))
        below = ascending[middle] < limit
        low, high = np.where(narrow & below, middle, low), np.where(narrow & ~below, middle, high)
    return np.where(low >= first, low, -1)


def count_before(group: I64) -> I64:
    """How many entries before each are of its group: int64 of shape (n,)."""
    order, place = np.argsort(group, kind="stable"), np.empty(len(group), np.int64)
    begins = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))[: len(group)]
    place[order] = np.arange(len(group)) - np.repeat(begins, np.diff(np.append(begins, len(group))))
    return place


def number_pairs(a: NDArray[np.integer], b: NDArray[np.integer]) -> tuple[I32, I64]:
    """Numbers distinct pairs from 0 in order of appearance: int32 of shape (n,), and the first place of each number."""
    one, other = (np.ascontiguousarray(each, each.dtype if each.dtype == np.int32 else np.int64) for each in (a, b))
    numbers = np.empty(len(a), np.int32)
    widths = one.itemsize, other.itemsize
    found = kernels.ops.number_pairs(one.view(np.uint8), other.view(np.uint8), *widths, numbers)
    return numbers, np.asarray(found, np.int64).reshape(-1)


@dataclass(frozen=True)
class Groups:
    """Rows with equal keys, and sums over them: what every table that groups work by something is made of.

    Attributes:
        number: int32 of shape (n,), the group of each row, from 0 in order of appearance.
        first: int64 of shape (groups,), the first row of each group.
    """

    number: I32
    first: I64

    @staticmethod
    def of(key: NDArray[np.integer], *more: NDArray[np.integer]) -> Groups:
        """The groups of rows whose keys are equal in all columns, each of shape (n,)."""
        found = Groups(*number_pairs(key, more[0] if more else np.zeros(len(key), np.int32)))
        for column in more[1:]:
            found = Groups(*number_pairs(found.number, column))
        return found

    def __len__(self) -> int:
        return len(self.first)

    def count(self, among: I64 | Mask | slice = slice(None)) -> I64:
        """How many rows each has, or how many of some rows: int64 of shape (groups,)."""
        return np.bincount(self.number[among], minlength=len(self))

    def sum(self, values: I64) -> I64:
        """The sum of each group's values: int64 of shape (groups,)."""
        return sum_groups(self.number, values, len(self))


def levels_of(parent: I32 | I64) -> Iterator[I64]:
    """The places of each depth of a forest, the roots first.

    Args:
        parent: of shape (n,), the place of what is around each, -1 for a root.
    """
    up = parent.copy()
    depth = (up >= 0).astype(np.int32)
    inner = np.flatnonzero(depth)
    for _ in range(len(parent).bit_length()):  # each looks twice as far up as in the round before; a circle ends too
        above = up[inner]
        depth[inner] += depth[above]
        up[inner] = up[above]
        inner = inner[up[inner] >= 0]
    deepest = int(depth.max(initial=-1))
    # Sorting two bytes takes one pass, four take many.
    order = np.argsort(depth.astype(np.uint16) if deepest < 1 << 16 else depth, kind="stable")
    bounds = offsets_of(np.bincount(depth, minlength=deepest + 1)).tolist()
    yield from (order[low:high] for low, high in pairwise(bounds))


def number_paths(parent: I32 | I64, name: I64, outer: I64) -> tuple[I64, I64, I64]:
    """Numbers what has the same name and the same names around it, the outer ones first.

    Args:
        parent: of shape (n,), the place of what is around each, -1 for a root.
        name: int64 of shape (n,).
        outer: int64 of shape (n,), the number of what is around a root; numbers go on after the highest, from 0 if all
            are -1.

    Returns:
        The number of each, of shape (n,); the number around each number, and its first place, of shape (numbers,).
    """
    number = np.full(len(parent), -1, np.int64)
    around, firsts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    count = int(outer.max(initial=-1)) + 1
    for level in levels_of(parent):
        over = np.where(parent[level] >= 0, number[parent[level]], outer[level])
        found, first = number_pairs(over, name[level])
        number[level] = count + found
        around.append(over[first])
        firsts.append(level[first])
        count += len(first)
    return number, np.concatenate(around), np.concatenate(firsts)


def sum_groups(group: NDArray[np.integer], values: I64, groups: int) -> I64:
    """The sum of the values of each group: int64 of shape (groups,).

    Args:
        group: of each value its group, shape (n,), none below 0.
    """
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, values)
    return sums


def measure_groups(group: I32, values: I64, groups: int) -> tuple[I64, I64, I64, I64]:
    """Number, sum, least and largest of each group's values: int64 of shape (groups,) each."""
    count, total, low, high = (np.zeros(groups, np.int64) for _ in range(4))
    kernels.ops.add_up(group, values, count, total, low, high)
    return count, total, low, high
