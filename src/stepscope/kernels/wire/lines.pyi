import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

LINE_ID: int
LINE_NAME: int
START_NS: int
DURATION_PS: int
DISPLAY_ID: int
DISPLAY_NAME: int
EVENTS_SEEN: int
STOP_AT: int
STOP_CODE: int
HEADER_WIDTH: int
CUT_LINE: int
CUT_AT: int
CUT_EVENTS: int
CUT_WIDTH: int

def scan_lines(buf: U8, begins: I64, ends: I64, first: int, last: int, part_bytes: int, header: I64) -> memoryview: ...
