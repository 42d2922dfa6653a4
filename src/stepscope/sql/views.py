"""What can be asked: the views of a session, each declared once.  The docs and the console show these declarations.

A view has columns in every trace, whatever the framework; what was not recorded is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute

from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Role
from stepscope.sql.arrow import SMALL_TEXT, TEXT, same_text

ROW_BITS = 32
"""Row numbers are unique in a session: that of the third host's row 7 is 2 * 2^32 + 7."""

Compute = Callable[[HostTrace, Any], pa.Array]


@dataclass(frozen=True)
class ViewColumn:
    """A column of a view.

    Attributes:
        name: as in a query.
        dtype: its Arrow type; a text is a number into a list of texts.
        unit: `ps`, `bytes`, `percent`, `row` (the number of a row of `events`), ...; empty if it has none.
        doc: what it means, in a phrase.
        compute: makes the column from a host's trace and what the view prepared for it.
        role: what it means to a reader.
    """

    name: str
    dtype: pa.DataType
    unit: str
    doc: str
    compute: Compute
    role: Role

    @property
    def type_name(self) -> str:
        """The type as SQL names it."""
        return _SQL_NAMES[self.dtype]


_SQL_NAMES = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    TEXT: "VARCHAR",
    SMALL_TEXT: "VARCHAR",
}

_ROLES = {"ps": Role.DURATION, "bytes": Role.SIZE, "percent": Role.SHARE, "count": Role.COUNT}


def text(name: str, doc: str, compute: Compute, role: Role = Role.LABEL, dtype: pa.DataType = TEXT) -> ViewColumn:
    """Declares a column of texts."""
    return ViewColumn(name, dtype, "", doc, compute, role)


def number(name: str, unit: str, doc: str, compute: Compute, role: Role | None = None) -> ViewColumn:
    """Declares a column of whole numbers."""
    return ViewColumn(name, pa.int64(), unit, doc, compute, role or _ROLES.get(unit, Role.ORDINAL))


def real(name: str, unit: str, doc: str, compute: Compute) -> ViewColumn:
    """Declares a column of floating-point numbers."""
    return ViewColumn(name, pa.float64(), unit, doc, compute, _ROLES.get(unit, Role.MEASURE))


def flag(name: str, doc: str, compute: Compute) -> ViewColumn:
    """Declares a column of truth values."""
    return ViewColumn(name, pa.bool_(), "", doc, compute, Role.FLAG)


def instant(name: str, doc: str, compute: Compute) -> ViewColumn:
    """Declares a column of times: ps from the start of the session."""
    return number(name, "ps", doc, compute, Role.INSTANT)


@dataclass(frozen=True)
class View:
    """A view.

    Attributes:
        name: as in a query.
        doc: what a row is, in one or two sentences.
        columns: in order; the first is cheap, since a query that only counts rows reads it.
        prepare: finds what the columns are made from in a host's trace, such as the rows of its events.
        length: the number of rows, from the trace and what was prepared.
    """

    name: str
    doc: str
    columns: tuple[ViewColumn, ...]
    prepare: Callable[[HostTrace], Any]
    length: Callable[[HostTrace, Any], int]

    def schema(self) -> pa.Schema:
        """The columns as Arrow knows them."""
        return pa.schema([(column.name, column.dtype) for column in self.columns])

    def read(self, trace: HostTrace, names: list[str], place: int = 0) -> pa.RecordBatch:
        """Some columns of one host.

        Args:
            place: the host's place in the session, by which its row numbers differ from those of other hosts.
        """
        prepared, by_name = self.prepare(trace), {column.name: column for column in self.columns}
        arrays = [by_name[name].compute(trace, prepared) for name in names]
        if place:
            arrays = [
                pyarrow.compute.add(array, place << ROW_BITS) if by_name[name].unit == "row" else array
                for name, array in zip(names, arrays, strict=True)
            ]
        return pa.RecordBatch.from_arrays(arrays, names=names)


def host_column(length: Callable[[HostTrace, Any], int]) -> ViewColumn:
    """The column that names the host of each row."""
    return text(
        "host",
        "the host that recorded it",
        lambda trace, prepared: same_text(trace.host, length(trace, prepared)),
        Role.HOST,
        SMALL_TEXT,
    )
