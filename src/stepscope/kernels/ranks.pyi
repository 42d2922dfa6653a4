import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

def contract(
    order: I32,
    previous: I32,
    pause: I64,
    own: I64,
    into: I64,
    source: I32,
    lag: I64,
    after_start: U8,
    starts: I32,
    ends: I32,
    done: I64,
    way_source: I32,
    way_weight: I64,
    way_count: U8,
    between: I64,
    scratch: I64,
    offered: I32,
) -> int: ...
def meet(
    order: I32,
    first: I64,
    row: I32,
    into: I64,
    source: I32,
    weight: I64,
    length: I64,
    arrival: I64,
    done: I64,
) -> None: ...
