import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

META_ID: int
META_NAME: int
META_DISPLAY: int
META_BAD_AT: int
META_BAD_CODE: int
META_WIDTH: int
STAT_ENTRY: int
STAT_START: int
STAT_STOP: int
STAT_WIDTH: int

def walk_metadata(buf: U8, begins: I64, ends: I64, entries: I64) -> memoryview: ...
