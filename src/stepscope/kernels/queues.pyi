import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

def line_up(
    line: I32,
    plane: I32,
    called: I64,
    zero: int,
    start: I64,
    end: I64,
    own: I64,
    free_ps: I64,
    previous: I64,
) -> None: ...
def last_done(
    by_end: I64,
    done: I64,
    start: I64,
    since: I64,
    line: I32,
    own: I32,
    inexact: int,
    most_back: int,
    out: I64,
) -> None: ...
def drained(
    line: I32,
    start: I64,
    end: I64,
    called: I64,
    total: I64,
    since: I64,
    until: I64,
    out_line: I64,
    done: I64,
    filled: I64,
) -> None: ...
