"""What a tool answers, and its forms: terminal, HTML, JSON, CSV, Parquet, Arrow.  Imports only errors of ours."""

from stepscope.report.base import Report
from stepscope.report.sections import (
    Cell,
    Field,
    Figures,
    Prose,
    Rows,
    Section,
    percent,
    round_6,
    round_ms,
    round_us,
    text_of,
)  # fmt: skip

__all__ = [
    "Cell", "Field", "Figures", "Prose", "Report", "Rows", "Section",
    "percent", "round_6", "round_ms", "round_us", "text_of",
]  # fmt: skip
