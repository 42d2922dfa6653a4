import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]

def parents(
    start: I64,
    duration: I64,
    line_begin: I64,
    line_end: I64,
    kind: U8,
    is_async: Mask,
    region_begin: int,
    region_end: int,
    parent: I32,
    extent: I64,
) -> None: ...
def self_times(duration: I64, parent: I32, counts: Mask, out: I64) -> None: ...
def spread(label: I32, parent: I32, link: I32, state: U8, stack: I32) -> None: ...
def add_to_ancestors(value: I64, parent: I32) -> None: ...
def outermost(parent: I32, counts: Mask, out: I64) -> None: ...
def around(kind: U8, parent: I32, bit_of_kind: U8, out: U8) -> None: ...
def inherit(label: U8, parent: I32) -> None: ...
def nearest(parent: I32, counts: Mask, out: I32) -> None: ...
