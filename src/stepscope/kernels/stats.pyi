import numpy as np
from numpy.typing import NDArray

I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

def put(offsets: I64, name: I32, tag: U8, value: I64, wanted: int, tags: int, out: I64) -> None: ...
def find(
    offsets: I64, name: I32, tag: U8, value: I64, wanted: int, tags: int, least: int
) -> tuple[memoryview, memoryview]: ...
def put_some(offsets: I64, owners: I64, name: I32, tag: U8, value: I64, wanted: int, tags: int, out: I64) -> None: ...
def gather(
    offsets: I64,
    owners: I64,
    name: I32,
    tag: U8,
    value: I64,
    slot_of_name: I16,
    out_value: I64,
    out_tag: U8,
) -> None: ...
