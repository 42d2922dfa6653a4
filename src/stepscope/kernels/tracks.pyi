import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

def nest(start: I64, end: I64, line: I32, lane: I32, below: I64, order: I64) -> None: ...
def render(
    blob: U8,
    bounds: I64,
    parts: I32,
    time: I64,
    length: I64,
    glue: I32,
    stat_offsets: I64,
    stat_key: I32,
    stat_text: I32,
    stat_value: I64,
) -> bytes: ...
