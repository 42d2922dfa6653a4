from typing import Any

Array = Any  # an object with a buffer of the type that the documentation names

META_ID: int
META_NAME: int
META_DISPLAY: int
META_BAD_AT: int
META_BAD_CODE: int
META_WIDTH: int
STAT_ENTRY: int
STAT_START: int
STAT_STOP: int
STAT_WIDTH: int
CHOSEN_ROW: int
CHOSEN_OWNER: int
CHOSEN_WIDTH: int

def walk_metadata(buf: Array, begins: Array, ends: Array, entries: Array) -> Array: ...
def last_entries(owners: Array, entries: Array) -> Array: ...
def take_entries(entries: Array, chosen: Array) -> Array: ...
def take_stats(stats: Array, chosen: Array) -> Array: ...
