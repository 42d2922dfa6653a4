import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

NAME: int
NAME_STOP: int
OPCODE: int
OPCODE_STOP: int
SHAPE: int
SHAPE_STOP: int
METADATA: int
METADATA_STOP: int
OP_TYPE: int
OP_TYPE_STOP: int
OP_NAME: int
OP_NAME_STOP: int
FUSION_KIND: int
FUSION_KIND_STOP: int
ID: int
PARAMETER: int
TUPLE_INDEX: int
OPERANDS_STOP: int
CALLED_STOP: int
DAMAGED: int
WIDTH: int

def scan_instructions(buf: U8, begins: I64, ends: I64, table: I64) -> tuple[I64, I64]: ...
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
