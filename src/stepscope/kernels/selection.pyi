import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

def add_up(
    start: I64,
    duration: I64,
    drawn: Mask,
    key: I32,
    line_begin: I64,
    line_end: I64,
    begin: int,
    end: int,
    count: I64,
    total: I64,
    own: I64,
) -> int: ...
