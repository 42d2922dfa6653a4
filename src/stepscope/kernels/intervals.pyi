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
def union(start: I64, end: I64) -> memoryview | None: ...
def common(start: I64, end: I64, other_start: I64, other_end: I64, out_start: I64, out_end: I64) -> int: ...
def overlap(start: I64, end: I64, before: I64, begin: I64, stop: I64, out: I64) -> None: ...
def highest_rank_time(group: I32, rank: U8, time: I64, is_end: Mask, open_count: I64, totals: I64) -> None: ...
