import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

def of_waiting(
    node: I32,
    edge: I32,
    length: I64,
    edge_kind: U8,
    of_edge: U8,
    doubted: U8,
    line: I32,
    kind: U8,
    work: int,
    unexplained: I64,
    serves: U8,
    served: int,
    gap: int,
    out: U8,
) -> None: ...
def of_own_time(
    node: I32,
    edge: I32,
    event: I64,
    line: I32,
    kind: U8,
    work: int,
    event_kind: U8,
    of_work: U8,
    of_event: U8,
    unrecorded: U8,
    serves: U8,
    served: int,
    out: U8,
) -> None: ...
def of_stretches(low: I64, high: I64, cause: U8, of_main: U8, start: I64, end: I64, is_main: U8, out: U8) -> None: ...
