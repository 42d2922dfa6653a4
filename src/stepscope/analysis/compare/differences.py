"""The rows of two reports side by side: matched by their keys, per step where they are totals, with the noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stepscope.analysis.compare.welch import CONFIDENCE, half_width, sample_of
from stepscope.records import dataclass
from stepscope.report import Cell, Comparable, Field, Role, Row, amount, round_6

NEGLIGIBLE_SHARE = 0.002
"""A difference of at most this share of all that was measured before is negligible."""

_DISPLAY_UNITS: dict[str, tuple[str, float]] = {"us": ("ms", 1e-3)}
_STATUS = Field(
    "status",
    "text",
    "`both`, `added` if only the session after has it, `removed` if only the session before has it",
    role=Role.TERM,
)
_VERDICT = Field(
    "verdict",
    "text",
    "`better` or `worse`; `within_noise` if the difference is no larger than its uncertainty; `negligible` if it is at "
    f"most {100 * NEGLIGIBLE_SHARE:g} % of the total before; `unknown` if a total changed while the step time stayed "
    "within its noise",
    role=Role.TERM,
)
_UNCERTAINTY = (
    "half of the 95 % interval of the difference (Welch); a smaller or equal difference is within the noise; unknown "
    "if one side has fewer than two steps"
)


@dataclass(frozen=True)
class DifferenceTable:
    """A table of differences.

    Attributes:
        tool: the tool whose rows are compared.
        id, title: the table's id, which is its key in JSON, and its heading.
        fields, rows: the table.
        empty: what to say without rows.
        sentences: what to say before the numbers.
        steps: the numbers of steps by which totals were divided, before and after; None if it has no totals per step.
        is_ordered: True if the order of the rows has a meaning; then none is left out.
        is_optional: True if it is shown only if it has rows.
    """

    tool: str
    id: str
    title: str
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    empty: str
    sentences: tuple[str, ...] = ()
    steps: tuple[float, float] | None = None
    is_ordered: bool = False
    is_optional: bool = False

    def head(self, rows: int) -> DifferenceTable:
        """The same with at most `rows` rows, unless the order of its rows has a meaning."""
        return self if self.is_ordered else replace(self, rows=self.rows[:rows])

    def index(self) -> dict[str, Any]:
        """Its description, without its rows."""
        return {
            "id": self.id,
            "tool": self.tool,
            "title": self.title,
            "sentences": list(self.sentences),
            "before_steps": None if self.steps is None else self.steps[0],
            "after_steps": None if self.steps is None else self.steps[1],
        }


@dataclass(frozen=True)
class _Amount:
    """The rows of one side that share their keys: measure in the display unit, count, samples, and the first row."""

    value: float
    count: float | None
    samples: tuple[float, ...]
    row: Mapping[str, Any]


def find_differences(
    tool: str,
    comparable: Comparable,
    before: Any,
    after: Any,
    steps: tuple[float, float] | None,
    within_noise: bool = False,
) -> DifferenceTable:
    """Compares one table of two reports.

    Args:
        tool: the tool that made them.
        comparable: what to compare.
        before, after: its reports.
        steps: the number of steps of both sides; None if one side has none.
        within_noise: True if the step times do not differ by more than their noise.
    """
    per_step = steps if comparable.is_total else None
    sides = [
        _combine_by_key(comparable, comparable.rows(report), count)
        for report, count in zip((before, after), per_step or (1, 1), strict=True)
    ]
    rows = _find_differing_rows(comparable, *sides, is_doubtful=within_noise and comparable.is_total)
    if not comparable.is_ordered:
        names, size = [key.name for key in comparable.keys], _column_name("difference", comparable)
        rows.sort(key=lambda row: (-abs(amount(row[size])), *(str(row[name]) for name in names)))
    said = comparable.sentences(before, after) if comparable.sentences else ()
    return make_table(tool, comparable, rows, (*said, *_name_empty_side(rows, *sides)), per_step)


def make_table(
    tool: str,
    comparable: Comparable,
    rows: Sequence[Row],
    sentences: tuple[str, ...] = (),
    steps: tuple[float, float] | None = None,
) -> DifferenceTable:
    """A table as declared, with rows that have been compared already."""
    return DifferenceTable(
        tool=tool,
        id=comparable.id,
        title=comparable.title,
        fields=fields_of(comparable, is_per_step=steps is not None),
        rows=tuple(rows),
        empty=comparable.empty,
        sentences=sentences,
        steps=steps,
        is_ordered=comparable.is_ordered,
    )


def fields_of(comparable: Comparable, is_per_step: bool) -> tuple[Field, ...]:
    """The columns of a table of differences."""
    per_step = " per step" if is_per_step else ""
    calls = [
        Field(f"{side}_calls", "count", f"how often{per_step}, {side}", label=f"Calls {side}")
        for side in ("before", "after")
    ]
    return (
        *comparable.keys,
        *([] if comparable.is_ordered else [_STATUS]),
        *change_fields(comparable, is_per_step),
        *(calls if comparable.count else []),
        *([] if comparable.is_neutral else [_VERDICT]),
        *comparable.carried,
    )


def change_fields(comparable: Comparable, is_per_step: bool = False) -> tuple[Field, ...]:
    """The columns with values, their difference, and its uncertainty where there are samples."""
    measure, (unit, _) = comparable.measure, _display_unit(comparable)
    doc = f"{measure.doc}{', per step' if is_per_step else ''}"
    kind = measure.kind if unit == measure.unit else "float"
    uncertainty = Field(_column_name("uncertainty", comparable), unit, _UNCERTAINTY)
    return (
        Field(
            _column_name("before", comparable), unit, f"{doc}, before; unknown where that side has no such row", kind
        ),
        Field(_column_name("after", comparable), unit, f"{doc}, after; unknown where that side has no such row", kind),
        Field(
            _column_name("difference", comparable),
            unit,
            "after minus before; a missing row counts as 0",
            kind,
            role=Role.CHANGE,
        ),
        *([uncertainty] if comparable.samples else []),
        Field(
            "change_percent",
            "percent",
            "the difference as a share of the value before; unknown if that was 0, or grew from less than "
            f"{100 * NEGLIGIBLE_SHARE:g} % of the total",
            role=Role.CHANGE,
        ),
    )


def change_cells(before: float | None, after: float | None, *, unit: str) -> Row:
    """Both values, their difference and its share.  Bytes are whole, other values have six decimals."""
    if unit != "bytes":
        before, after = (None if value is None else round_6(value) for value in (before, after))
    change = (after or 0) - (before or 0)
    first, second, third = _change_names(unit)
    share = None if after is None else percent_of(change, before or 0.0)
    return {
        first: before,
        second: after,
        third: change if unit == "bytes" else round_6(change),
        "change_percent": share,
    }


@functools.cache
def _change_names(unit: str) -> tuple[str, str, str]:
    """The columns of both values and of their difference."""
    end = f"_{unit}" if unit else ""
    return f"before{end}", f"after{end}", f"difference{end}"


def percent_of(change: float, whole: float) -> float | None:
    """A change as a share of the value before, to four decimals; None if that was 0."""
    return round(100 * change / whole, 4) if whole > 0 else None


# -- rows ----------------------------------------------------------------------------------------------------------


def _display_unit(comparable: Comparable) -> tuple[str, float]:
    """The unit in which values are shown, and the factor that converts to it."""
    return _DISPLAY_UNITS.get(comparable.measure.unit, (comparable.measure.unit, 1))


def _column_name(name: str, comparable: Comparable) -> str:
    unit, _ = _display_unit(comparable)
    return f"{name}_{unit}" if unit else name


def _combine_by_key(
    comparable: Comparable, rows: Iterable[Mapping[str, Any]], steps: float
) -> dict[tuple[Cell, ...], _Amount]:
    """The rows of one side by their keys, in the order of the report."""
    groups: dict[tuple[Cell, ...], list[Mapping[str, Any]]] = {}
    measure, names = comparable.measure.name, [key.name for key in comparable.keys]
    for row in rows:
        if row[measure] is not None:
            groups.setdefault(tuple([row[name] for name in names]), []).append(row)
    return {key: _combine_rows(comparable, group, steps) for key, group in groups.items()}


def _combine_rows(comparable: Comparable, rows: Sequence[Mapping[str, Any]], steps: float) -> _Amount:
    """Rows with equal keys as one amount per step."""
    _, scale = _display_unit(comparable)
    value = _combine_measures(comparable, rows) * scale
    count = sum(amount(row[comparable.count]) for row in rows) / steps if comparable.count else None
    samples = tuple(scale * each for row in rows for each in row[comparable.samples]) if comparable.samples else ()
    return _Amount(value if steps == 1 else value / steps, count, samples, rows[0])


def _combine_measures(comparable: Comparable, rows: Sequence[Mapping[str, Any]]) -> float:
    values: list[float] = [row[comparable.measure.name] for row in rows]
    if len(values) == 1 and comparable.joined != "mean":
        return values[0]
    if comparable.joined == "largest":
        return max(values)
    if comparable.joined == "mean":
        weights = [amount(row[comparable.weight]) for row in rows]
        return math.fsum(map(math.prod, zip(values, weights, strict=True))) / (math.fsum(weights) or 1.0)
    return sum(values)


def _find_differing_rows(
    comparable: Comparable,
    before: Mapping[tuple[Cell, ...], _Amount],
    after: Mapping[tuple[Cell, ...], _Amount],
    *,
    is_doubtful: bool,
) -> list[Row]:
    """One row for each key that one side or both have, unless both measured nothing.

    Args:
        is_doubtful: whether the step times do not differ by more than their noise and the rows are totals.
    """
    names = [key.name for key in comparable.keys]
    change, noise = _column_name("difference", comparable), _column_name("uncertainty", comparable)
    pairs = [(key, before.get(key), after.get(key)) for key in {**before, **after}]
    pairs = [(key, one, other) for key, one, other in pairs if (one and one.value) or (other and other.value)]
    least = NEGLIGIBLE_SHARE * math.fsum(one.value for _, one, _ in pairs if one)
    rows = []
    for key, one, other in pairs:
        row = {**dict(zip(names, key, strict=True)), **_difference_cells(comparable, one, other)}
        if not comparable.is_neutral:
            width = None if _is_new_or_gone(one, other) else row.get(noise)
            row["verdict"] = _verdict(amount(row[change]), width, least, is_doubtful)
        if one and one.value <= least and amount(row[change]) > one.value:
            row["change_percent"] = None  # a multiple of nothing
        rows.append(row)
    return rows


def _is_new_or_gone(before: _Amount | None, after: _Amount | None) -> bool:
    """Whether all steps of one side have some of it and none of the other has: the spread of what is there says nothing
    about that.  By ranks, such an order of steps comes by chance with at most 1 - `CONFIDENCE`."""
    if not (before and after):
        return False
    sides = [any(before.samples), any(after.samples)]
    whole = all(before.samples), all(after.samples)
    orders = math.comb(len(before.samples) + len(after.samples), len(after.samples))
    return sides.count(True) == 1 and any(whole) and 2 / orders <= 1 - CONFIDENCE


def _difference_cells(comparable: Comparable, before: _Amount | None, after: _Amount | None) -> Row:
    unit, _ = _display_unit(comparable)
    cells: Row = {}
    if not comparable.is_ordered:
        cells["status"] = "added" if before is None else "removed" if after is None else "both"
    cells |= change_cells(before.value if before else None, after.value if after else None, unit=unit)
    if comparable.samples:
        cells[_column_name("uncertainty", comparable)] = _uncertainty(before, after)
    if comparable.count:
        for name, side in (("before_calls", before), ("after_calls", after)):
            cells[name] = None if side is None or side.count is None else round_6(side.count)
    latest = after or before
    return cells | {field.name: latest.row[field.name] for field in comparable.carried if latest}


def _uncertainty(before: _Amount | None, after: _Amount | None) -> float | None:
    """Half of the interval of the difference of the means; None if a side has fewer than two samples."""
    width = half_width(sample_of(before.samples), sample_of(after.samples)) if before and after else None
    return None if width is None else round_6(width)


def _verdict(change: float, noise: Cell, least: float, is_doubtful: bool) -> str:
    if noise is not None and abs(change) <= amount(noise):
        return "within_noise"
    if abs(change) <= least:
        return "negligible"
    if is_doubtful:
        return "unknown"
    return "worse" if change > 0 else "better"


def _name_empty_side(rows: Sequence[object], before: Mapping[Any, object], after: Mapping[Any, object]) -> list[str]:
    """Says which side has none of the rows."""
    lacking = [name for name, side in (("before", before), ("after", after)) if rows and not side]
    return [f"the session {name} has nothing here" for name in lacking]
