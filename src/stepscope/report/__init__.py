"""Reports of tools, and their forms: terminal, HTML, JSON, CSV, Parquet, Arrow.

`relation` counts events for tables, and is the only module here that knows arrays.
"""

from stepscope.report.base import Report
from stepscope.report.comparable import Comparable
from stepscope.report.fields import Cell, Field, Role, amount, fields_named
from stepscope.report.looks import clean, duration_text, number_text, shorten_name, size_text, value_with_unit
from stepscope.report.sections import (
    Figures,
    FirstScreen,
    Part,
    Prose,
    Row,
    Rows,
    Section,
    percent,
    round_6,
    round_ms,
    round_us,
)
from stepscope.report.tables import (
    Lines,
    Table,
    add_up,
    as_figures,
    as_prose,
    as_table,
    make_row,
    make_rows,
    not_in_json,
)

__all__ = [
    "Cell", "Comparable", "Field", "Figures", "FirstScreen", "Lines", "Part", "Prose", "Report", "Role", "Row",
    "Rows", "Section", "Table", "add_up", "amount", "as_figures", "as_prose", "as_table", "clean",
    "duration_text", "fields_named", "make_row", "make_rows", "not_in_json", "number_text", "percent", "round_6",
    "round_ms", "round_us", "shorten_name", "size_text", "value_with_unit",
]  # fmt: skip
