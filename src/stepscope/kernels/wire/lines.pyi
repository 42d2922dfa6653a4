from typing import Any

from stepscope.kernels.wire.source import Source

Array = Any  # an object with a buffer of the type that the documentation names

LINE_ID: int
LINE_NAME: int
START_NS: int
DURATION_PS: int
DISPLAY_ID: int
DISPLAY_NAME: int
EVENTS_SEEN: int
STOP_AT: int
STOP_CODE: int
HEADER_WIDTH: int
CUT_LINE: int
CUT_AT: int
CUT_EVENTS: int
CUT_WIDTH: int
RANGE_LINE: int
RANGE_START: int
RANGE_STOP: int
RANGE_ROW: int
RANGE_ROOM: int
RANGE_WIDTH: int

def scan_lines(
    source: Source, begins: Array, ends: Array, first: int, last: int, part_bytes: int, header: Array
) -> Array: ...
def plan_ranges(begins: Array, ends: Array, header: Array, cuts: Array) -> Array: ...
