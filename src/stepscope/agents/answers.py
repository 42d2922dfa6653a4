"""The types of the answers to an agent.  Each is small, and ends with the next useful calls."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict  # that of `typing` cannot be nested in a schema before Python 3.12


class Answer(TypedDict):
    """What every answer has: a notice that its texts are data."""

    notice: NotRequired[str]


class Call(TypedDict):
    """A useful next call: the tool, its arguments, and why."""

    tool: str
    arguments: dict[str, Any]
    why: str


class SessionItem(TypedDict):
    """A recorded session; `session` is its id in other calls."""

    session: str
    path: str
    hosts: list[str]
    size_bytes: int


class SessionList(Answer):
    """Sessions, the newest first; `next_offset` is null on the last page."""

    sessions: list[SessionItem]
    total: int
    next_offset: int | None
    next: list[Call]


class Summary(Answer):
    """Where the step time goes. `lines` is the summary for people; `findings` have stable ids."""

    session: str
    verdict: str
    verdict_text: str
    step_time_ms: dict[str, float | None]
    steps_source: str
    environment: dict[str, Any]
    lines: list[str]
    findings: list[dict[str, Any]]
    warnings: list[str]
    next: list[Call]


class AdviceList(Answer):
    """What to change first; each item has its evidence, expected gain, place in the program, rows and intervals."""

    session: str
    verdict_text: str
    advice: list[dict[str, Any]]
    warnings: list[str]
    next: list[Call]


class Column(TypedDict):
    """A column or figure: name, unit and meaning."""

    name: str
    unit: str
    meaning: str


class Table(TypedDict):
    """A table of a report, without its rows."""

    table: str
    title: str
    total_rows: int
    empty: str | None
    columns: list[Column]


class Figure(TypedDict):
    """A figure of a report."""

    name: str
    value: Any
    unit: str
    meaning: str


class Description(Answer):
    """What a tool has: tables, figures, sentences."""

    session: str
    tool: str
    summary: str
    tables: list[Table]
    figures: list[Figure]
    sentences: list[str]
    warnings: list[str]
    next: list[Call]


class Page(Answer):
    """Rows of a table: values in the order of `columns`, in the units of `units`; long texts are cut in the middle.

    `total` is null where counting would take too long.
    """

    session: str
    tool: str
    table: str
    columns: list[str]
    units: list[str]
    rows: list[list[Any]]
    total: int | None
    next_offset: int | None
    note: str | None
    warnings: list[str]
    next: list[Call]


class Forecast(Answer):
    """The median step after some changes, replayed."""

    session: str
    changes: list[dict[str, Any]]
    figures: dict[str, Any]
    critical: list[dict[str, Any]]
    reasoning: str
    next: list[Call]


class Comparison(Answer):
    """Two sessions: whether the step time changed by more than the noise, and where."""

    before: dict[str, Any]
    after: dict[str, Any]
    verdict: str
    verdict_text: str
    difference_ms: float | None
    uncertainty_ms: float | None
    speedup: float | None
    notes: list[str]
    tables: dict[str, list[dict[str, Any]]]
    next: list[Call]


class GateResult(Answer):
    """Whether budgets are kept."""

    verdict: str
    verdict_text: str
    rows: list[dict[str, Any]]
    notes: list[str]
    next: list[Call]
