"""A figure of any tool by its id, and its values step by step.

    overview.step_time.mean                          a figure:  TOOL.SECTION.FIELD
    idle.devices.idle_percent                        a column of a table that has one row
    overview.step_account[cause=input].ms            the row whose `cause` is `input`
    op-stats.rows[side=device, name="a, b"].total_self_us

The ids are those of the sections and fields in the tool's JSON and on its page in the documentation.  Some figures have
short names: see `SHORT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise

from stepscope.analysis.compare.sides import Side
from stepscope.analysis.compare.step_times import step_times
from stepscope.analysis.registry import TOOLS, tool_named
from stepscope.errors import StepscopeError, UsageError
from stepscope.records import dataclass
from stepscope.report import Field, Figures, Prose, Report, Role, Row, Rows
from stepscope.report.fields import csv_value

STEP_MS = "step_ms"
SHORT = {
    STEP_MS: "mean time from the start of a step to the start of the next, as `compare` has it",
    "input_percent": "input-pipeline.input.input_percent",
    "memory_bytes": "memory-profile.peak.in_use_bytes",
}
"""Short names, and what they stand for."""

_STEP_FIELD = Field(STEP_MS, "ms", "mean time from the start of a step to the start of the next")
_TAKE_OF_SHORT = {"memory_bytes": "largest"}
_ID = re.compile(r"(?P<tool>[\w-]+)\.(?P<section>[\w-]+)(?:\[(?P<where>.*)\])?\.(?P<column>\w+)", re.DOTALL)
_CONDITION = re.compile(r'\s*(?P<key>\w+)\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>[^,"]*?))\s*(?:,|$)')
_NUMBERS = ("float", "int")
_EXACT = frozenset({Role.SIZE, Role.COUNT, Role.FLAG, Role.ORDINAL, Role.STEP})
_MOST_NAMED = 5
_BLOCKS = 4  # groups of steps from which the noise is estimated where a figure has no value for each step

Ask = Callable[[str, str | None], Report]
"""Returns a tool's report on all steps, or on a range of them."""


@dataclass(frozen=True)
class FigureId:
    """A figure's id, taken apart; `where` are the columns of its row with their texts."""

    tool: str
    section: str
    where: tuple[tuple[str, str], ...]
    column: str

    def __str__(self) -> str:
        rows = f"[{', '.join(f'{key}={text}' for key, text in self.where)}]" if self.where else ""
        return f"{self.tool}.{self.section}{rows}.{self.column}"


@dataclass(frozen=True)
class JudgedSession:
    """A session whose figures are read: what `compare` knows of it, and any other report."""

    side: Side
    ask: Ask


@dataclass(frozen=True)
class Reading:
    """A figure of one session.

    Attributes:
        field: its declaration.
        value: its value; None if it is unknown.
        is_absent: whether no row of its table is meant, so that its value counts as 0.
        is_exact: whether it is counted and not timed, so that it has no noise within a session.
        why_unknown: why it has no value.
        known_as: the ids of rows to choose from, if it is absent.
    """

    field: Field
    value: float | None
    is_absent: bool = False
    is_exact: bool = False
    why_unknown: str = ""
    known_as: tuple[str, ...] = ()


def read_figure(session: JudgedSession, figure: str, take: str = "", per_step: bool | None = None) -> Reading:
    """The value of a figure in a session.

    Args:
        session: the session.
        figure: its id or short name.
        take: how several rows become one value; see `Budget`.
        per_step: whether a total is divided by the number of steps; None to decide by what the tool declares.

    Raises:
        UsageError: no figure has that id; the message has the nearest ones.
    """
    if figure == STEP_MS:
        times = step_times(session.side)
        known = sum(times) / len(times) if times else None
        return Reading(_STEP_FIELD, known, why_unknown="there are no steps: mark them with stepscope.step(number)")
    found = parse_figure(figure)
    reading = _read(session.ask(found.tool, None), found, take or _TAKE_OF_SHORT.get(figure, ""))
    if reading.value is None or not (_is_total(found) if per_step is None else per_step):
        return reading
    return _divide(reading, session.side.step_count)


def parse_figure(figure: str) -> FigureId:
    """Takes an id apart.  Raises UsageError with the nearest names."""
    found = _ID.fullmatch(SHORT.get(figure, figure))
    if found is None:
        raise UsageError(
            f"there is no figure {figure}",
            hint=f"{_guess(figure, [*SHORT])}; others are TOOL.TABLE.COLUMN, which stepscope schema TOOL lists",
        )
    if found["tool"] not in [name for tool in TOOLS for name in (tool.name, tool.method)]:
        raise _no_figure(figure, [f"{tool.name}.{found['section']}.{found['column']}" for tool in TOOLS])
    where = tuple(_conditions(figure, found["where"] or ""))
    return FigureId(tool_named(found["tool"]).name, found["section"], where, found["column"])


def step_samples(
    session: JudgedSession, figure: str, take: str = "", per_step: bool | None = None
) -> tuple[float, ...]:
    """Values of the figure over the steps, from which its noise is known; empty where there are none.

    They are those of single steps where a report has them; otherwise the figure is read again in groups of steps.
    """
    if figure == STEP_MS:
        return tuple(step_times(session.side))
    found = parse_figure(figure)
    if read_figure(session, figure, take, per_step).is_absent:
        return (0.0,) * len(session.side.usual_steps)
    return tuple(_samples_in_reports(session, found) or _samples_of_blocks(session, figure, take, per_step))


def figure_names(report: Report) -> list[str]:
    """The ids of all numbers in a report, without rows."""
    names = []
    for section in report.sections():
        if not isinstance(section, Prose):
            numbers = [field.name for field in section.fields if field.kind in _NUMBERS]
            names += [f"{report.TOOL}.{section.id}.{name}" for name in numbers]
    return names


# -- one report ----------------------------------------------------------------------------------------------------


def _read(report: Report, found: FigureId, take: str) -> Reading:
    section = next((one for one in report.sections() if one.id == found.section), None)
    fields = () if section is None or isinstance(section, Prose) else section.fields
    field = next((one for one in fields if one.name == found.column and one.kind in _NUMBERS), None)
    if field is None or section is None or isinstance(section, Prose):
        raise _no_figure(str(found), figure_names(report))
    if isinstance(section, Figures):
        if found.where:
            raise UsageError(
                f"{found.tool}.{found.section} has no rows", hint=f"write {found.tool}.{found.section}.{field.name}"
            )
        return _reading(field, section.values[field.name], report)
    return _read_rows(report, section, field, found, take)


def _reading(field: Field, value: object, report: Report) -> Reading:
    known = float(value) if isinstance(value, int | float) else None
    why = "" if known is not None else report.why_empty() or f"{field.name} is unknown in this capture"
    return Reading(field, known, is_exact=field.role in _EXACT, why_unknown=why)


def _read_rows(report: Report, table: Rows, field: Field, found: FigureId, take: str) -> Reading:
    rows = _matching(table, found)
    if not table.rows:
        return Reading(field, None, why_unknown=table.empty)
    if not rows:
        return Reading(field, 0.0, is_absent=True, is_exact=field.role in _EXACT, known_as=_nearest_rows(table, found))
    values = [float(row[field.name]) for row in rows if isinstance(row[field.name], int | float)]  # type: ignore[arg-type]
    if not values:
        return _reading(field, None, report)
    if len(rows) > 1 and not take:
        take = "mean" if _is_of_steps(table) else ""
    if len(rows) > 1 and not take:
        raise UsageError(
            f"{found} is in {len(rows)} rows",
            hint="choose one with [COLUMN=TEXT], or say take = sum, largest, smallest or mean",
        )
    return _reading(field, _TAKES[take or "sum"](values), report)


_TAKES: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "largest": max,
    "smallest": min,
    "mean": lambda values: sum(values) / len(values),
}


def _matching(table: Rows, found: FigureId) -> list[Row]:
    """The rows that meet all conditions.  Raises UsageError for an unknown column."""
    columns = [field.name for field in table.fields]
    for key, _ in found.where:
        if key not in columns:
            raise UsageError(f"{found.tool}.{found.section} has no column {key!r}", hint=_guess(key, columns))
    return [row for row in table.rows if all(str(csv_value(row[key])) == text for key, text in found.where)]


def _is_of_steps(table: Rows) -> bool:
    return any(field.role is Role.STEP for field in table.fields)


def _is_total(found: FigureId) -> bool:
    """Whether the tool declares the column to add up over the capture."""
    declared = tool_named(found.tool).comparables
    return any(each.is_total and found.column in (each.measure.name, each.count) for each in declared)


def _divide(reading: Reading, steps: float) -> Reading:
    if not steps or reading.value is None:
        return reading
    return replace(reading, value=reading.value / steps)


# -- noise ---------------------------------------------------------------------------------------------------------


def _samples_in_reports(session: JudgedSession, found: FigureId) -> Sequence[float]:
    """The figure in each step, where a report has it."""
    if (found.tool, found.section, found.column) == ("overview", "step_time", "mean"):
        return [float(row["duration_ms"]) for row in session.side.usual_steps]  # type: ignore[arg-type]
    if (found.tool, found.section, found.column) == ("overview", "step_account", "ms") and found.where[:1]:
        cause = dict(found.where).get("cause", "")
        steps = session.side.usual_steps
        return [float(step[f"{cause}_ms"]) for step in steps if f"{cause}_ms" in step]  # type: ignore[arg-type]
    table = next((one for one in session.ask(found.tool, None).sections() if one.id == found.section), None)
    if isinstance(table, Rows) and _is_of_steps(table):
        values = [row[found.column] for row in _matching(table, found)]
        return [float(value) for value in values if isinstance(value, int | float)]
    return []


def _samples_of_blocks(session: JudgedSession, figure: str, take: str, per_step: bool | None) -> Iterator[float]:
    """The figure in each of a few groups of successive steps; nothing if there are too few steps."""
    numbers = [int(row["step"]) for row in session.side.usual_steps]  # type: ignore[arg-type]
    if len(numbers) < 2 or len(set(numbers)) < len(numbers):
        return
    found = parse_figure(figure)
    divides = _is_total(found) if per_step is None else per_step
    for block in _split(numbers, min(_BLOCKS, len(numbers))):
        try:
            reading = _read(session.ask(found.tool, f"{block[0]}-{block[-1]}"), found, take)
        except StepscopeError:  # such a report needs more than these steps
            return
        if reading.value is not None:
            yield reading.value / len(block) if divides else reading.value


def _split(numbers: Sequence[int], parts: int) -> list[Sequence[int]]:
    """Successive groups of nearly equal size."""
    bounds = [len(numbers) * at // parts for at in range(parts + 1)]
    return [numbers[low:high] for low, high in pairwise(bounds)]


# -- names ---------------------------------------------------------------------------------------------------------


def _conditions(figure: str, text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _CONDITION.match(text, at)
        if found is None:
            raise UsageError(
                f"{text[at:]!r} in {figure} is not a condition",
                hint='write [COLUMN=TEXT] or [COLUMN="TEXT, WITH COMMAS"]',
            )
        yield found["key"], found["plain"] if found["quoted"] is None else found["quoted"]
        at = found.end()


def _nearest_rows(table: Rows, found: FigureId) -> tuple[str, ...]:
    """The texts of the last condition's column that are nearest to the wanted one."""
    if not found.where:
        return ()
    key, text = found.where[-1]
    known = list(dict.fromkeys(str(csv_value(row[key])) for row in table.rows))
    return tuple(get_close_matches(text, known, n=_MOST_NAMED, cutoff=0.3) or known[:_MOST_NAMED])


def no_row(figure: str, reading: Reading) -> UsageError:
    """The error for a figure whose row no session has."""
    return UsageError(f"no session has a row for {figure}", hint=f"nearest: {', '.join(reading.known_as)}")


def _no_figure(figure: str, known: Sequence[str]) -> UsageError:
    return UsageError(f"there is no figure {figure}", hint=_guess(figure, known))


def _guess(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=_MOST_NAMED, cutoff=0.5)
    if not near:
        last = word.rpartition(".")[2]
        near = [name for name in known if last and last in name][:_MOST_NAMED]
    return f"nearest: {', '.join(near)}" if near else f"known: {', '.join(known[:20])}"
