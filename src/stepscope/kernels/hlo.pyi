import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

def number_texts(buf: U8, starts: I64, stops: I64, numbers: I64, seed: int) -> I64: ...
def find_texts(
    buf: U8,
    starts: I64,
    stops: I64,
    wanted: U8,
    wanted_starts: I64,
    wanted_stops: I64,
    slots: I64,
    rows: I64,
    seed: int,
) -> None: ...
