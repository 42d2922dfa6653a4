import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]

NO_EVENT: int
WHOLE: int
BEGIN: int
END: int
MARK: int
COUNTER: int
LOOSE_BEGIN: int
UNSAID: int
NOT_AN_EVENT: int
UNTIMED: int
FAR: int
LONG: int
NEGATIVE_LENGTH: int
WITHOUT_LENGTH: int
WITHOUT_THREAD: int
FIRST_US: int
FIRST_PS: int
COUNTS: int

def find_events(
    phase: U8,
    flags: U8,
    us: I64,
    frac_ps: I32,
    of_row: I32,
    is_kept: Mask,
    roles: U8,
    middle_us: float,
    far_us: float,
    rows: I64,
    counts: I64,
) -> int: ...
def convert_events(
    rows: I64,
    phase: U8,
    flags: U8,
    us: I64,
    frac_ps: I32,
    duration_us: I64,
    duration_frac_ps: I32,
    roles: U8,
    zero_us: int,
    zero_ps: int,
    longest_us: int,
    start_ps: I64,
    duration_ps: I64,
    role_of: U8,
    counts: I64,
) -> None: ...
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
