import numpy as np
from numpy.typing import NDArray

NO_OP: int
NON_PROTO: int
START_OF_SUBMESSAGE: int
START_OF_MESSAGE: int
WIRE_VARINT: int
WIRE_FIXED64: int
WIRE_DELIMITED: int
WIRE_START_GROUP: int
WIRE_END_GROUP: int
WIRE_FIXED32: int
WIRE_SUBMESSAGE_END: int
INLINE_VALUE: int
MOST_INLINE: int

def highway_hash(data: NDArray[np.uint8], key: NDArray[np.uint64]) -> int: ...
def join_fields(
    tags: NDArray[np.uint32],
    subtypes: NDArray[np.uint8],
    buffer_of: NDArray[np.int32],
    next_state: NDArray[np.int32],
    is_implicit: NDArray[np.uint8],
    first: int,
    data: NDArray[np.uint8],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    transitions: NDArray[np.uint8],
    out: NDArray[np.uint8],
) -> int: ...
