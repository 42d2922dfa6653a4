from typing import Any

from stepscope.kernels.wire.texts import Interner

Array = Any  # an object with a buffer of the type that the documentation names

FLAG_AGGREGATE: int
FLAG_IF_NONZERO: int
FLAG_LEAVE_OUT: int
NAME_OCCURRENCES: int
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
    def __init__(
        self,
        types: Array,
        first_type: int,
        stop_type: int,
        texts: Array,
        first_text: int,
        stop_text: int,
        text_rows: Array,
        flags: Array,
        room: int,
    ) -> None: ...

class StatTable:
    size: int
    def __init__(self, seed: int) -> None: ...
    def reserve(self, room: int) -> None: ...
    def intern(self, interner: Interner) -> None: ...
    def append(self, other: StatTable) -> None: ...
    def take(self) -> tuple[Array, Array, Array]: ...
    def take_unnamed(self) -> Array: ...
    def decode(self, buf: Array, begins: Array, ends: Array, lookups: Lookups) -> tuple[int, int, int]: ...

class EventTable:
    start_ps: Array
    duration_ps: Array
    type: Array
    flags: Array
    stat_offsets: Array
    def __init__(self, events: int) -> None: ...
    def shift(self, first: int, stop: int, by: int) -> None: ...

def decode_events(
    buf: Array,
    first: int,
    ranges: Array,
    zero_ps: Array,
    limit_ps: int,
    lookups: Lookups,
    events: EventTable,
    stats: StatTable,
    outcome: Array,
) -> None: ...
