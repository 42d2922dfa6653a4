"""A view as something that DuckDB can scan.  A column is made when a query reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset

BATCH_ROWS = 1 << 18
"""Rows that one thread of the engine takes at a time.  Each batch brings its lists of texts, so few large ones are
quicker than many small ones."""


class LateDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A dataset whose columns are made when a scan asks for them.

    Args:
        schema: all columns.
        read: makes batches with some columns.
    """

    def __init__(self, schema: pa.Schema, read: Callable[[list[str]], Iterator[pa.RecordBatch]]) -> None:
        self._columns, self._read = schema, read

    @classmethod
    def make(cls, schema: pa.Schema, read: Callable[[list[str]], Iterator[pa.RecordBatch]]) -> LateDataset:
        """A dataset; the library's class cannot be called."""
        made: LateDataset = cls.__new__(cls)
        made.__init__(schema, read)  # type: ignore[misc]
        return made

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return self._columns

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> Any:  # noqa: A002
        """A scan of some columns of the rows that a filter lets through."""
        shown = list(self._columns.names if columns is None else columns)
        read = [name for name in self._columns.names if name in shown or _mentions(filter, name)]
        schema = pa.schema([self._columns.field(name) for name in read])
        return pyarrow.dataset.Scanner.from_batches(
            self._read(read), schema=schema, columns=shown, filter=filter, batch_size=BATCH_ROWS
        )


def _mentions(expression: Any, name: str) -> bool:
    """Whether a filter may need a column; one too many is only read in vain."""
    return expression is not None and name in str(expression)
