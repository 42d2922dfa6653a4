"""What a tool answers, and its forms: terminal, HTML, JSON, CSV, Parquet, Arrow.  Imports only errors of ours."""

from stepscope.report.base import Report
from stepscope.report.comparable import Comparable
from stepscope.report.looks import clean, number_text, shortened, size_text
from stepscope.report.sections import (
    Cell,
    Field,
    Figures,
    Prose,
    Rows,
    Section,
    fields_named,
    percent,
    round_6,
    round_ms,
    round_us,
)  # fmt: skip

__all__ = [
    "Cell", "Comparable", "Field", "Figures", "Prose", "Report", "Rows", "Section",
    "clean", "fields_named", "number_text", "percent", "round_6", "round_ms", "round_us", "shortened",
    "size_text",
]  # fmt: skip
