import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

OK: int
BAD_VARINT: int
BAD_TAG: int
OVERRUN: int
FIELD_MESSAGE: int
FIELD_NUMBER: int
FIELD_START: int
FIELD_STOP: int
FIELD_PLACE: int
FIELD_WIDTH: int

def scan_fields(buf: U8, begins: I64, ends: I64, bad_at: I64, bad_code: I64) -> memoryview: ...
