import numpy as np
from numpy.typing import NDArray

NAME_AT: int
NAME_LEN: int
OPCODE_AT: int
OPCODE_LEN: int
TYPE_AT: int
TYPE_LEN: int
OP_AT: int
OP_LEN: int
WIDTH: int

def instructions(buf: NDArray[np.uint8], table: NDArray[np.int64]) -> int: ...
