"""What every tool answers with: a report that any face can show without knowing which tool made it.

A report is data.  It describes itself by `sections`, of which there are two sorts: a few named figures, or a table.
Every figure and every column carries its unit and its meaning, so that pages, terminals and docs explain them alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pandas
    import pyarrow

Cell = str | int | float | bool | None | list[int]


@dataclass(frozen=True)
class Field:
    """A column of a table or a named figure.

    Attributes:
        name: the key in JSON, CSV and Arrow.
        unit: `ms`, `us`, `bytes`, `percent` (0-100), `count`, `text`, ...; empty if it has none.
        doc: what it means and how it is computed, one sentence or two.
        kind: how it is stored: `float`, `int`, `str`, `bool` or `ints`.
    """

    name: str
    unit: str
    doc: str
    kind: str = "float"


@dataclass(frozen=True)
class Figures:
    """A few named figures."""

    title: str
    fields: tuple[Field, ...]
    values: dict[str, Cell]


@dataclass(frozen=True)
class Rows:
    """A table."""

    title: str
    fields: tuple[Field, ...]
    rows: tuple[dict[str, Cell], ...]
    empty: str = "nothing to show"


@dataclass(frozen=True)
class Prose:
    """Sentences, most important first."""

    title: str
    lines: tuple[str, ...]


Section = Figures | Rows | Prose


@dataclass(frozen=True, kw_only=True)
class Report(ABC):
    """The base of all reports.

    Attributes:
        hosts: names of the hosts that the report covers.
        warnings: what the reader of the report must know to trust it, one sentence each.
        partial: True if a part of the recording was missing or damaged.
    """

    TOOL: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int] = 1

    hosts: tuple[str, ...]
    warnings: tuple[str, ...]
    partial: bool

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""

    @abstractmethod
    def sections(self) -> Sequence[Section]:
        """What to show, in order."""

    def summary_lines(self) -> Sequence[str]:
        """The report in a few lines for the terminal; by default what its prose says."""
        return [line for section in self.sections() if isinstance(section, Prose) for line in section.lines]

    def head(self, rows: int) -> Report:
        """The same report with at most so many rows in its main list, if it has one."""
        names = {field.name for field in fields(self)}
        listed = next((name for name in ("rows", "top_ops") if name in names), None)
        return self if listed is None else replace(self, **{listed: getattr(self, listed)[:rows]})

    def main_table(self) -> Rows:
        """The table that CSV, Parquet, Arrow and pandas get."""
        return next(section for section in self.sections() if isinstance(section, Rows))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain Python values, as in its JSON form; unknown is None."""
        head = {
            "tool": self.TOOL,
            "schema_version": self.SCHEMA_VERSION,
            "hosts": list(self.hosts),
            "partial": self.partial,
            "warnings": list(self.warnings),
        }
        return head | self.body()

    def to_arrow(self) -> pyarrow.Table:
        """The main table as Arrow, with units and meanings in the fields' metadata."""
        import pyarrow as pa

        types = {"float": pa.float64(), "int": pa.int64(), "str": pa.string(), "bool": pa.bool_()}
        types["ints"] = pa.list_(pa.int64())
        table = self.main_table()
        schema = pa.schema(
            [pa.field(f.name, types[f.kind], metadata={"unit": f.unit, "meaning": f.doc}) for f in table.fields],
            metadata={"tool": self.TOOL, "partial": str(self.partial).lower(), "warnings": "\n".join(self.warnings)},
        )
        columns = [[row[field.name] for row in table.rows] for field in table.fields]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def to_pandas(self) -> pandas.DataFrame:
        """The main table as a DataFrame; needs pandas."""
        return self.to_arrow().to_pandas()

    def __rich__(self) -> Any:
        from stepscope.report.terminal import view

        return view(self)

    def _repr_html_(self) -> str:
        from stepscope.report.html import fragment

        return fragment(self)


def round_ms(ps: float) -> float:
    """Picoseconds as milliseconds, to the microsecond's thousandth."""
    return round(ps / 1e9, 6)


def percent(part: float, whole: float) -> float | None:
    """100 part / whole, None if there is no whole."""
    return round(100.0 * part / whole, 4) if whole > 0 else None


def text_of(value: Cell) -> str:
    """One value for the eye: unknown as an en dash, floats with three significant decimals."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".") if abs(value) < 1e12 else f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return " x ".join(map(str, value)) if isinstance(value, list) else value
