import numpy as np
from numpy.typing import NDArray

from stepscope.kernels.wire.texts import Interner

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]

FLAG_AGGREGATE: int
FLAG_IF_NONZERO: int
NAME_OCCURRENCES: int
RANGE_LINE: int
RANGE_START: int
RANGE_STOP: int
RANGE_ROW: int
RANGE_ROOM: int
RANGE_WIDTH: int
EVENTS: int
BROKEN_AT: int
BROKEN_CODE: int
LOST_EVENTS: int
LOST_STATS: int
UNSORTED: int
UNNAMED: int
BAD_TIMES: int
OUTCOME_WIDTH: int

class Lookups:
    def __init__(self, type_rows: I32, type_ids: I64, stat_rows: I32, stat_ids: I64, flags: U32) -> None: ...

class StatTable:
    size: int
    def __init__(self, seed: int) -> None: ...
    def reserve(self, room: int) -> None: ...
    def intern(self, interner: Interner) -> None: ...
    def append(self, other: StatTable) -> None: ...
    def take(self) -> tuple[memoryview, memoryview, memoryview]: ...
    def take_unnamed(self) -> memoryview: ...
    def decode(self, buf: U8, begins: I64, ends: I64, lookups: Lookups) -> tuple[int, int, int]: ...

class EventTable:
    def __init__(self, start_ps: I64, duration_ps: I64, event_type: I32, flags: U16, stat_end: I64) -> None: ...

def decode_events(
    buf: U8,
    ranges: I64,
    zero_ps: I64,
    limit_ps: int,
    lookups: Lookups,
    events: EventTable,
    stats: StatTable,
    outcome: I64,
) -> None: ...
