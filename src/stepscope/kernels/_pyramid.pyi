import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

SPARSE: int
LEVELS: int

class Rows:
    def __init__(self, start: I64, duration: I64, order: I32, begin: I64) -> None: ...

class Levels:
    def __init__(self, first: I64, exponent: I64, begin: I64) -> None: ...

class Slices:
    def __init__(self, start: I64, end: I64, busy: F64, events: I32, longest: I32) -> None: ...

class Places:
    def __init__(self, source: I64, first: I64, stop: I64, before: I64) -> None: ...

def lanes(
    start: I64,
    duration: I64,
    drawn: Mask,
    line_begin: I64,
    line_end: I64,
    first: int,
    free_at: I64,
    lane: I32,
    n_lanes: I64,
) -> int: ...
def sort_into_rows(
    lane: I32,
    line_begin: I64,
    line_end: I64,
    first_row: I64,
    row_begin: I64,
    place: I64,
    order: I32,
) -> None: ...
def plan_levels(rows: Rows, joins: I64, first: I64, exponent: I64, size: I64) -> int: ...
def build_levels(rows: Rows, levels: Levels, slices: Slices) -> None: ...
def locate(
    begin: int, end: int, wanted: I64, asked: I64, rows: Rows, levels: Levels, slices: Slices, places: Places
) -> None: ...
def window(asked: I64, places: Places, rows: Rows, slices: Slices, out_begin: I64, out: Slices) -> None: ...
def unite(
    start: I64,
    duration: I64,
    drawn: Mask,
    line_begin: I64,
    line_end: I64,
    first: I64,
    u_start: I64,
    u_busy: I64,
) -> None: ...
def cover(first: I64, u_start: I64, u_busy: I64, lines: I64, begin: int, level: int, load: F64) -> None: ...
