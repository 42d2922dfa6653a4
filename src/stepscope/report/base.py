"""The result of every tool: a report that any output can show without knowing the tool.

A report is data.  It describes itself by its sections; see `stepscope.report.sections`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from stepscope.errors import UsageError
from stepscope.records import dataclass
from stepscope.report import tables
from stepscope.report.fields import Field, csv_value
from stepscope.report.sections import FirstScreen, Prose, Rows, Section, split_for_screens

if TYPE_CHECKING:
    import pandas
    import pyarrow


@dataclass(frozen=True, kw_only=True)
class Report:
    """The base of all reports; a report declares its attributes by the functions of `stepscope.report.tables`.

    Attributes:
        hosts: names of the hosts that the report covers.
        warnings: what a reader must know to trust the report, one sentence each.
        partial: whether a part of the recording was missing or damaged.
        recorder: who recorded it, a key of the tables of remedies.
        unmatched: the conditions that no row of the main list meets; empty if rows are left or no condition was given.
    """

    TOOL: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int] = 1
    MAIN_LIST: ClassVar[str] = "rows"  # the attribute with the rows that are filtered, sorted and cut

    hosts: tuple[str, ...]
    warnings: tuple[str, ...]
    partial: bool
    recorder: str = ""
    unmatched: str = ""

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return tables.list_values(self, _SHARED)

    def sections(self) -> Sequence[Section]:
        """All sections of this tool's reports, in order, even without data: their ids never change.

        Tables are whole, with all columns and with the names of the trace.
        """
        return tables.list_sections(self)

    def visible_sections(self) -> Sequence[Section]:
        """The sections to show: wide tables in parts, and no section without known values.

        A table without rows says why; if a condition emptied it, it says that instead of how to record its data.
        """
        parts = [part for section in self.sections() for part in split_for_screens(section)]
        main = next((section for section in parts if isinstance(section, Rows)), None)
        sections = [section for section in parts if section.has_content or (section is main and section.rows)]
        if not self.unmatched:
            return sections or parts
        return [
            replace(section, empty=self.unmatched) if isinstance(section, Rows) and not section.rows else section
            for section in sections
        ]

    def first_screen(self) -> FirstScreen | None:
        """The answer of the report; None if its tables are what was asked for."""
        return None

    def summary_lines(self) -> Sequence[str]:
        """The report in a few lines for the terminal; by default its prose."""
        return [line for section in self.sections() if isinstance(section, Prose) for line in section.lines]

    def head(self, rows: int) -> Report:
        """The report with at most `rows` rows in its main list, if it has one."""
        listed = self._main_list_name()
        return self if listed is None else replace(self, **{listed: getattr(self, listed)[: max(rows, 0)]})

    def arranged(self, sort: str | None = None, where: str | Sequence[str] = ()) -> Report:
        """The report with its main list filtered and sorted.

        Args:
            sort: a column; `-column` puts the largest first.  Unknown values come last.
            where: conditions `column=text`; a row stays if the column's CSV text contains the text; case, and whether
                words are joined by `_`, `-` or a blank, make no difference.

        Raises:
            UsageError: there is no such column, its values have no order, or a condition has no `=`.
        """
        listed = self._main_list_name()
        if not listed or not (sort or where):
            return self
        rows, unmatched = arrange_rows(getattr(self, listed), sort, [where] if isinstance(where, str) else where)
        changes: dict[str, Any] = {listed: tuple(rows)}
        warnings = (unmatched, *self.warnings) if unmatched else self.warnings
        return replace(self, warnings=warnings, unmatched=unmatched, **changes)

    def _main_list_name(self) -> str | None:
        """The name of the main list, if the report has one."""
        return self.MAIN_LIST if any(field.name == self.MAIN_LIST for field in fields(self)) else None

    def main_table(self) -> Rows:
        """The table for CSV, Parquet, Arrow and pandas: that of the main list, else the first."""
        tables = [section for section in self.sections() if isinstance(section, Rows)]
        return next((table for table in tables if table.id == self.MAIN_LIST), tables[0])

    def section(self, id: str) -> Section:  # noqa: A002 - as the sections call it
        """The section with an id.  Raises KeyError if there is none."""
        return {section.id: section for section in self.sections()}[id]

    def why_empty(self) -> str | None:
        """Why there is no data, in one sentence that names what would record it; None if there is data."""
        table = self.main_table()
        return None if table.rows else table.empty

    def why_hidden(self) -> str | None:
        """Why a page offers no view of it, as `why_empty`; a tool may have rows that other views show better."""
        return self.why_empty()

    def lacks(self) -> tuple[str, ...]:
        """The columns by which a page would group the rows, if no row has a value there."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain Python values, as in JSON; unknown is None."""
        head = {
            "tool": self.TOOL,
            "schema_version": self.SCHEMA_VERSION,
            "hosts": list(self.hosts),
            "partial": self.partial,
            "warnings": list(self.warnings),
        }
        return head | self.body()

    def to_json(self) -> bytes:
        """The report as one JSON object, indented, with a newline at the end."""
        import msgspec

        return msgspec.json.format(encode_json(self.to_dict()), indent=2) + b"\n"

    def to_arrow(self) -> pyarrow.Table:
        """The main table as Arrow, with units and meanings in the fields' metadata."""
        metadata = {"tool": self.TOOL, "partial": str(self.partial).lower(), "warnings": "\n".join(self.warnings)}
        return make_arrow_table(self.main_table(), metadata)

    def to_pandas(self) -> pandas.DataFrame:
        """The main table as a DataFrame.  Raises UsageError if pandas is not installed."""
        if importlib.util.find_spec("pandas") is None:
            raise UsageError(
                "pandas is not installed", hint='pip install "stepscope[pandas]", or use to_arrow() or to_dict()'
            )
        return self.to_arrow().to_pandas()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A dataclass adds a `__repr__` to each class that has none, which would print every row.
        cls.__repr__ = Report.__str__  # type: ignore[method-assign, assignment]

    def __str__(self) -> str:
        """The report as shown in a terminal, with the first rows of its tables."""
        return str(self._make_form("terminal", "render_text"))

    def __rich__(self) -> Any:
        return self._make_form("terminal", "render_report")

    def _repr_html_(self) -> str:
        return str(self._make_form("html", "render_notebook"))

    def _make_form(self, module: str, function: str) -> Any:
        """A form of this report, made by a module that is imported on first use: the terminal's library is not loaded
        for a report that becomes JSON."""
        return getattr(importlib.import_module(f"stepscope.report.{module}"), function)(self)


_SHARED = frozenset(field.name for field in fields(Report))


def arrange_rows(
    rows: Sequence[dict[str, Any]], sort: str | None, where: Sequence[str]
) -> tuple[list[dict[str, Any]], str]:
    """Rows that meet all conditions, sorted; and if none does, a sentence that says so.

    Args and errors: as of `Report.arranged`.
    """
    columns: Sequence[str] = next((list(row) for row in rows), ())
    kept = list(rows)
    for condition in where:
        column, mark, text = condition.partition("=")
        if not mark:
            raise UsageError(f"{condition!r} is not a condition", hint="write --where COLUMN=TEXT")
        _require_column(columns, column)
        kept = [row for row in kept if _fold(text) in _fold(str(csv_value(row[column])))]
    unmatched = f"no row has {' and '.join(where)}" if where and not kept else ""
    if sort:
        _require_column(columns, sort.removeprefix("-"))
        kept = _sort_rows(kept, sort.removeprefix("-"), sort.startswith("-"))
    return kept, unmatched


def _fold(text: str) -> str:
    """A text as a reader may type it: a term kept as `input_bound` is shown as `input-bound`."""
    return text.lower().replace("-", " ").replace("_", " ")


def encode_json(value: Any) -> bytes:
    """The value as JSON, as `make_finite` makes it.

    The encoder itself writes null for floats that are not finite, so that no copy of a large report is made; one is
    where a text holds bytes of a path that are not text.
    """
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=_as_plain)
    except UnicodeEncodeError:
        return msgspec.json.encode(make_finite(value))


def _as_plain(value: Any) -> Any:
    """A value whose type derives from one that JSON has, as one of that type.  Raises TypeError for others."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    raise TypeError(f"JSON holds no {type(value).__name__}")


def make_finite(value: Any) -> Any:
    """A copy of the value that JSON can hold: None for floats that are not finite, and a question mark for bytes of a
    path that are not text."""
    if isinstance(value, dict):
        return {key: make_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [make_finite(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    if isinstance(value, str):
        return str(value) if value.isascii() else value.encode("utf-8", "replace").decode()
    return value


def make_arrow_table(table: Rows, metadata: dict[str, str] | None = None) -> pyarrow.Table:
    """A table as Arrow, with its id in the metadata, and units, roles and meanings in that of the fields."""
    import pyarrow as pa

    types = {"float": pa.float64(), "int": pa.int64(), "str": pa.string(), "bool": pa.bool_()}
    types["ints"] = pa.list_(pa.int64())
    schema = pa.schema(
        [pa.field(f.name, types[f.kind], metadata=_field_metadata(f)) for f in table.fields],
        metadata={"id": table.id, **(metadata or {})},
    )
    columns = [[row[field.name] for row in table.rows] for field in table.fields]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _field_metadata(field: Field) -> dict[str, str]:
    return {"unit": field.unit, "role": field.role.value, "label": field.label, "meaning": field.doc}


def _require_column(columns: Sequence[str], column: str) -> None:
    """Raises UsageError for an unknown column; an empty list accepts any."""
    if columns and column not in columns:
        from difflib import get_close_matches

        meant = get_close_matches(column, columns, n=1)
        guess = f"did you mean {meant[0]}? " if meant else ""
        raise UsageError(f"there is no column {column!r}", hint=f"{guess}columns: {', '.join(columns)}")


def _sort_rows(rows: Sequence[dict[str, Any]], column: str, descending: bool) -> list[dict[str, Any]]:
    """Sorts rows by a column, unknown values last.  Raises UsageError if its values have no order."""
    known = [row for row in rows if row[column] is not None]
    unknown = [row for row in rows if row[column] is None]
    try:
        return sorted(known, key=lambda row: row[column], reverse=descending) + unknown
    except TypeError as error:
        raise UsageError(f"column {column!r} cannot be sorted", hint="sort by a number or a text") from error
