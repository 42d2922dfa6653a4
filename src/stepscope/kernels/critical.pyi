from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

class Path:
    def __init__(
        self,
        start: I64,
        end: I64,
        parent: I64,
        cause: I64,
        line: I64,
        line_begin: I64,
        line_end: I64,
        part: U8,
        host_lines: I64,
        done: I64,
        done_end: I64,
        parts: Sequence[int],
        long_delay: int,
    ) -> None: ...
    def walk(self, begin: int, end: int, main: int, out: I64, time: I64, delay: I64) -> None: ...
