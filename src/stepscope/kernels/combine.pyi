import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]

def seen(flags: U16, found: U8) -> None: ...
def combine(
    event_type: I32, line: I32, flags: U16, of_type: I32, of_line: I32, of_flags: I32, cell: I32, found: U8
) -> None: ...
def apply(
    cell: I32,
    event_type: I32,
    kind_of_cell: U8,
    traits_of_cell: U8,
    traits_of_type: U8,
    kind: U8,
    traits: U8,
) -> None: ...
