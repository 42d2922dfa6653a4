from collections.abc import Iterable
from typing import Any

from stepscope.kernels.wire.source import Source

Array = Any  # an object with a buffer of the type that the documentation names

OK: int
BAD_VARINT: int
BAD_TAG: int
OVERRUN: int
FIELD_MESSAGE: int
FIELD_NUMBER: int
FIELD_START: int
FIELD_STOP: int
FIELD_PLACE: int
FIELD_WIDTH: int

def scan_fields(source: Source, begins: Array, ends: Array, left: int, bad_at: Array, bad_code: Array) -> Array: ...
def nested_messages(fields: Array, number: int) -> tuple[Array, Array, Array]: ...
def last_fields(fields: Array, number: int, column: int, values: Array) -> None: ...
def zero_table(rows: int, width: int) -> Array: ...
def join_tables(tables: Iterable[Array], width: int) -> Array: ...
