import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]

def merge_runs(
    group: I32,
    rank: U8,
    start: I64,
    end: I64,
    slot: I64,
    out_group: I32,
    out_rank: U8,
    out_start: I64,
    out_end: I64,
) -> int: ...
def count_crossings(start: I64, duration: I64, line: I32, chosen: Mask, least: int) -> tuple[int, int]: ...
def union(start: I64, end: I64) -> tuple[memoryview, memoryview]: ...
def union_of(start: I64, duration: I64, rows: I64) -> tuple[memoryview, memoryview]: ...
def either(start: I64, end: I64, other_start: I64, other_end: I64) -> tuple[memoryview, memoryview]: ...
def intersect(start: I64, end: I64, low: I64, high: I64) -> memoryview: ...
def count_below(values: I64, limits: I64, with_limit: bool, out: I64) -> None: ...
def find_by_line(values: I64, first: I64, line: I32, limits: I64, before: bool, near: I64, out: I64) -> None: ...
def give_way(
    start: I64,
    end: I64,
    cause: U8,
    bounds: I64,
    manner: U8,
    yields: U8,
    order: U8,
    work: I64,
    does: U8,
    begun: I64,
    done: I64,
) -> tuple[memoryview, memoryview, memoryview, memoryview, memoryview]: ...
def common(start: I64, end: I64, other_start: I64, other_end: I64, out_start: I64, out_end: I64) -> int: ...
def overlap(start: I64, end: I64, before: I64, begin: I64, stop: I64, out: I64) -> None: ...
