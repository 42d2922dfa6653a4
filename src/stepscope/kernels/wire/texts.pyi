import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

class Interner:
    count: int
    size: int
    def __init__(self, buf: U8, seed: int) -> None: ...
    def add(self, places: I64, ids: I32) -> None: ...
    def add_ranges(self, buf: U8, starts: I64, stops: I64, ids: I64) -> None: ...
    def copy(self, blob: U8, offsets: I64) -> None: ...
