import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]

def sort(previous: I32, into: I64, source: I32, state: U8, stack: I32, order: I32, bad: U8) -> None: ...
def sort_edges(
    source: I32,
    target: I32,
    lag: I64,
    after_start: U8,
    start: I64,
    end: I64,
    into: I64,
    order: I64,
) -> int: ...
def replay(
    order: I32,
    previous: I32,
    pause: I64,
    own: I64,
    into: I64,
    source: I32,
    lag: I64,
    after_start: U8,
    start: I64,
    end: I64,
) -> None: ...
def walk(
    steps: I64,
    bounds: I32,
    previous: I32,
    into: I64,
    source: I32,
    after_start: U8,
    start: I64,
    end: I64,
) -> memoryview: ...
def spend(
    steps: I64,
    bounds: I32,
    previous: I32,
    into: I64,
    source: I32,
    after_start: U8,
    start: I64,
    end: I64,
    whole: F64,
    edge_cause: U8,
    unexplained: I64,
    is_work: U8,
    gap: int,
    spent: F64,
    share: F64,
) -> None: ...
def pieces(
    bounds: I32,
    previous: I32,
    into: I64,
    source: I32,
    after_start: U8,
    start: I64,
    end: I64,
    line: I32,
    event: I32,
    kind: U8,
    work: int,
    since: I64,
    until: I64,
    first: I64,
    last: I64,
    begun: I64,
    extent: I64,
    parent: I32,
    main: int,
    cuts: I64,
    cuts_of_others: I64,
) -> tuple[memoryview, memoryview, memoryview, memoryview, memoryview]: ...
def stretches(
    first: int,
    last: int,
    since: int,
    around: int,
    start: I64,
    extent: I64,
    parent: I32,
    works: U8,
    shortest: int,
) -> memoryview: ...
def cut(
    first: int,
    last: int,
    around: int,
    start: I64,
    extent: I64,
    parent: I32,
    begin: I64,
    stop: I64,
    cuts: I64,
) -> tuple[memoryview, memoryview, memoryview, memoryview]: ...
def time_by_label(
    first: int,
    last: int,
    start: I64,
    extent: I64,
    parent: I32,
    label: U8,
    begin: I64,
    stop: I64,
    unlabelled: int,
    low: I64,
    high: I64,
    cause: U8,
    causes: int,
) -> tuple[memoryview, memoryview, memoryview]: ...
def sort_times(nodes: I64, cause: U8, ps: I64, offsets: I64, out: I32, out_ps: F64) -> None: ...
def add_times(nodes: I32, ps: F64, total: F64) -> None: ...
def sum_weighted(nodes: I32, ps: F64, weight: F64) -> float: ...
