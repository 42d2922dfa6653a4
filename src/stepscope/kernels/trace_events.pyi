import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]

def match_pairs(group: I32, opens: Mask, stack_next: I64, stack_top: I64, partner: I64) -> None: ...
def innermost(line: I64, start: I64, end: I64, holds: Mask, stack: I64, out: I64) -> None: ...
def gather_stats(
    first: int,
    last: int,
    order: I64,
    more: I64,
    offsets: I64,
    name: I32,
    tag: U8,
    value: I64,
    names: I32,
    extra_offsets: I64,
    extra: tuple[I32, U8, I64],
    out_offsets: I64,
    out_name: I32,
    out_tag: U8,
    out_value: I64,
) -> None: ...
