"""The report of a comparison of two sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from stepscope.analysis.compare.differences import DifferenceTable
from stepscope.analysis.compare.predicted import predicted_lines, predicted_table
from stepscope.analysis.compare.verdict import DIFFERENCE_FIELDS, StepTimeDifference
from stepscope.analysis.registry import tool_named
from stepscope.records import dataclass
from stepscope.report import Cell, Figures, Prose, Report, Rows, Section, amount, number_text


@dataclass(frozen=True, kw_only=True)
class CompareReport(Report):
    """Two sessions side by side.

    Attributes:
        mismatches: why the two are not of the same job, one sentence each: their times are not like for like then.
        verdict_text: the difference of the step times in one sentence.
        changes: the causes that changed most, with what they are spent in.
        difference: the same in figures.
        sides: the two sessions: `side` is `before` or `after`, `run` its name, `mean_ms` and `std_ms` (n - 1) describe
            the time from step to step, `steps` is the number that count, `input_bound_percent` is that of the overview,
            `first_advice` the title of its first advice.
        foretold: what the advice on the session before predicted, and what came; see `predicted.FIELDS`.  Empty where
            the two are not of the same job.
        notes: what else makes the two hard to compare, one sentence each.
        tables: the requested differences, in order.
        main: the id of the table that is filtered, sorted and cut.
        rows: its rows, largest difference first.
    """

    TOOL: ClassVar[str] = "compare"

    mismatches: tuple[str, ...]
    verdict_text: str
    changes: tuple[str, ...]
    difference: StepTimeDifference
    sides: tuple[dict[str, Cell], ...]
    foretold: tuple[dict[str, Cell], ...]
    notes: tuple[str, ...]
    tables: tuple[DifferenceTable, ...]
    main: str
    rows: tuple[dict[str, Cell], ...]

    def table(self, table_id: str) -> DifferenceTable:
        """A table by its id.  Raises KeyError if it was not requested."""
        return {table.id: table for table in self._tables()}[table_id]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object: each table under its own key, and their descriptions in `tables`."""
        tables = self._tables()
        return {
            "verdict": self.difference.verdict,
            "verdict_text": self.verdict_text,
            "mismatches": list(self.mismatches),
            "changes": list(self.changes),
            **{str(side["side"]): {key: side[key] for key in side if key != "side"} for side in self.sides},
            **self.difference.figures,
            "foretold": list(self.foretold),
            "notes": list(self.notes),
            "tables": [table.index() for table in tables],
            **{table.id: list(table.rows) for table in tables},
        }

    def sections(self) -> Sequence[Section]:
        """The verdict first, then the tables, each after its sentences."""
        return [
            Prose("mismatches", "Not like for like", self.mismatches),
            Prose("verdict", "Verdict", (self.verdict_text,)),
            Prose("changes", "What changed", self.changes),
            Prose("prediction", "What the advice before predicted", tuple(predicted_lines(self.foretold))),
            Prose("notes", "Notes", self.notes),
            Prose("sides", "Steps", tuple(map(_side_line, self.sides))),
            Figures("difference", "Difference", DIFFERENCE_FIELDS, self.difference.figures),
            *(section for table in self._tables() for section in _table_sections(table)),
            predicted_table(self.foretold),
        ]

    def visible_sections(self) -> Sequence[Section]:
        """The sections to show, without the optional tables that have no rows."""
        hidden = {table.id for table in self._tables() if table.is_optional and not table.rows}
        hidden |= {"foretold"}  # the sentences say it
        return [section for section in super().visible_sections() if section.id not in hidden]

    def main_table(self) -> Rows:
        """The ops, or the first table of the requested tool."""
        return _table_rows(self.table(self.main))

    def head(self, rows: int) -> CompareReport:
        """The same report with at most `rows` rows in each table whose rows are sorted by their difference."""
        tables = tuple(table.head(rows) for table in self.tables)
        return replace(self, rows=self.table(self.main).head(rows).rows, tables=tables)

    def _tables(self) -> list[DifferenceTable]:
        """The tables, the main one as it was filtered and sorted."""
        return [replace(table, rows=self.rows) if table.id == self.main else table for table in self.tables]


def _table_sections(table: DifferenceTable) -> list[Section]:
    return [Prose(f"{table.id}_sentences", tool_named(table.tool).title, table.sentences), _table_rows(table)]


def _table_rows(table: DifferenceTable) -> Rows:
    return Rows(table.id, table.title, table.fields, table.rows, table.empty)


def _side_line(side: Mapping[str, Cell]) -> str:
    """One session in words; the label has the same width for both."""
    steps = "1 step" if side["steps"] == 1 else f"{side['steps']} steps"
    spread = f" \N{PLUS-MINUS SIGN} {number_text(amount(side['std_ms']))}" if side["std_ms"] is not None else ""
    time = f"{number_text(amount(side['mean_ms']))}{spread} ms, {steps}" if side["steps"] else "no steps"
    waits = side["input_bound_percent"]
    parts = [time, *([] if waits is None else [f"{waits:.1f} % input and copying data in"])]
    advice = f"; first advice: {side['first_advice']}" if side["first_advice"] else ""
    return f"{side['side']:6}  {side['run']}: {', '.join(parts)}{advice}"
