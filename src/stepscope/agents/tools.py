"""What an agent may ask.  Every method is a tool of the server; its docstring is what the agent reads."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, cast

from typing_extensions import TypedDict  # that of `typing` cannot be nested in a schema before Python 3.12

from stepscope.agents.sessions import NamedSession, Opened, Sessions
from stepscope.analysis.registry import all_tools, tool_named
from stepscope.errors import UsageError
from stepscope.report import Field, Figures, Prose, Report, Row, Rows, Section, shorten_name
from stepscope.report.base import arrange_rows, make_finite

if TYPE_CHECKING:
    from stepscope.analysis.overview.advice_tool import AdviceReport
    from stepscope.analysis.overview.overview_tool import OverviewReport
    from stepscope.sql.asking import Asked, Asker


# ---- The types of the answers to an agent ----------------------------------------------------------------------------
# Each is small, and ends with the next useful calls.


class NextCall(TypedDict):
    """A useful next call: the tool, its arguments, and why."""

    tool: str
    arguments: dict[str, Any]
    why: str


class AgentAnswer(TypedDict):
    """What every answer has: a notice that its texts are data, and useful next calls."""

    notice: NotRequired[str]
    next: list[NextCall]


class OfSession(AgentAnswer):
    """An answer about one session."""

    session: str
    warnings: list[str]


class SessionItem(TypedDict):
    """A recorded session; `session` is its id in other calls."""

    session: str
    path: str
    hosts: list[str]
    size_bytes: int


class SessionList(AgentAnswer):
    """Sessions, the newest first; `next_offset` is null on the last page."""

    sessions: list[SessionItem]
    total: int
    next_offset: int | None


class SummaryAnswer(OfSession):
    """Where the step time goes. `lines` is the summary for people; `findings` have stable ids."""

    verdict: str
    verdict_text: str
    step_time_ms: dict[str, float | None]
    steps_source: str
    environment: dict[str, Any]
    lines: list[str]
    findings: list[dict[str, Any]]


class AdviceList(OfSession):
    """What to change first; each item has its evidence, expected gain, place in the program, rows and intervals."""

    verdict_text: str
    advice: list[dict[str, Any]]


class AgentColumn(TypedDict):
    """A column or figure: name, unit and meaning."""

    name: str
    unit: str
    meaning: str


class AgentTable(TypedDict):
    """A table of a report, without its rows; `columns` of the one that was asked for, `total_rows` of a session."""

    table: str
    title: str
    total_rows: int | None
    empty: str | None
    columns: list[AgentColumn]


class Figure(AgentColumn):
    """A figure of a report."""

    value: Any


class Description(OfSession):
    """What a tool has: tables, figures, sentences."""

    tool: str
    summary: str
    tables: list[AgentTable]
    figures: list[Figure]
    sentences: list[str]


class Page(OfSession):
    """Rows of a table: values in the order of `columns`, in the units of `units`; long texts are cut in the middle.

    `total` is null where counting would take too long.
    """

    tool: str
    table: str
    columns: list[str]
    units: list[str]
    rows: list[list[Any]]
    total: int | None
    next_offset: int | None
    note: str | None


class Forecast(OfSession):
    """The median step after some changes, replayed."""

    changes: list[dict[str, Any]]
    figures: dict[str, Any]
    critical: list[dict[str, Any]]
    reasoning: str


class Comparison(AgentAnswer):
    """Two sessions: whether the step time changed by more than the noise, and where."""

    mismatches: list[str]
    before: dict[str, Any]
    after: dict[str, Any]
    verdict: str
    verdict_text: str
    difference_ms: float | None
    uncertainty_ms: float | None
    speedup: float | None
    notes: list[str]
    tables: dict[str, list[dict[str, Any]]]


class GateResult(AgentAnswer):
    """Whether budgets are kept."""

    verdict: str
    verdict_text: str
    rows: list[dict[str, Any]]
    notes: list[str]


_MOST_ROWS = 100
_LONGEST = 160  # characters of a text in a row
_MOST_FINDINGS = 8
_SQL = "sql"
_Item = TypeVar("_Item")


class Answers:
    """The tools, for the sessions that the agent may read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._asker = functools.cache(_make_asker)

    def list_sessions(self, top: int = 20, offset: int = 0) -> SessionList:
        """Lists recorded profiling sessions, the newest first. Start here; then call summary."""
        listed = self._sessions.list_all()
        shown, next_offset = _page(listed, top, offset)
        following = [_call("summary", "where its step time goes", session=shown[0].id)] if shown else []
        if len(shown) > 1:
            following.append(_call("compare", "what changed", before=shown[1].id, after=shown[0].id))
        items = [_session_item(each) for each in shown]
        return {"sessions": cast(Any, items), "total": len(listed), "next_offset": next_offset, "next": following}

    def summary(self, session: str) -> SummaryAnswer:
        """Says where the step time of a session goes: the verdict, the account of the median step, the first advice."""
        report = cast("OverviewReport", self._sessions.opened(session).report("overview"))
        whole = make_finite(report.to_dict())
        findings = [_brief_finding(finding) for finding in whole["findings"]]
        own = {"lines": list(report.summary_lines()), "findings": findings[:_MOST_FINDINGS]}
        copied = ("verdict", "verdict_text", "step_time_ms", "steps_source", "environment", "warnings")
        following = _next_calls_of_summary(session, whole, bool(report.account and report.account.why_not is None))
        return cast(
            SummaryAnswer, {"session": session, **{key: whole[key] for key in copied}, **own, "next": following}
        )

    def advice(self, session: str, top: int = 3) -> AdviceList:
        """Says what to change first, with evidence, expected speed-up, culprit (file and line) and actions."""
        report = cast("AdviceReport", self._sessions.opened(session).report("advice"))
        items = make_finite(report.rows[: max(top, 1)])
        return {
            "session": session,
            "verdict_text": report.verdict.sentence,
            "advice": items,
            "warnings": list(report.warnings),
            "next": _next_calls_of_advice(session, items),
        }

    def describe(self, session: str = "", tool: str = "", table: str = "") -> Description:
        """Describes what a tool shows: its figures and tables, and the columns of one with units and meanings.

        Without a session, what it can show; without a tool, names all tools.

        Args:
            session: a session's id, for values and numbers of rows.
            tool: a tool, or sql for the views that it can ask for.
            table: the table whose columns are described; the main one if empty.
        """
        if not tool:
            return _describe_tools(session)
        report = self._sessions.opened(session).report(tool) if session and tool != _SQL else _declare(tool)
        sections = report.sections()
        chosen = _find_table(report, table).id
        tables = [_describe_table(each, bool(session), chosen) for each in _tables(report).values()]
        full = next((each["table"] for each in tables if each["total_rows"]), None)
        following = [_call("rows", "the rows", session=session, tool=tool, table=full)] if full else []
        return {
            "session": session,
            "tool": report.TOOL,
            "summary": "the views that sql can ask for" if tool == _SQL else tool_named(tool).summary,
            "tables": tables,
            "figures": [
                figure for each in sections if isinstance(each, Figures) for figure in _figures(each, bool(session))
            ],
            "sentences": [line for each in sections if isinstance(each, Prose) and session for line in each.lines],
            "warnings": list(report.warnings) if session else [],
            "next": following,
        }

    def rows(
        self,
        session: str,
        tool: str,
        table: str = "",
        sort: str = "",
        where: Sequence[str] = (),
        columns: Sequence[str] = (),
        top: int = 10,
        offset: int = 0,
        steps: str = "",
        host: str = "",
    ) -> Page:
        """Returns rows of a table of any tool.

        Args:
            session: a session's id.
            tool: a tool, such as op-stats, kernel-stats, steps, idle, memory-profile; `describe` names all.
            table: the table's id; the main one if empty.
            sort: a column; `-column` puts the largest first.
            where: conditions `column=text`; a row stays if the column contains the text.
            columns: the columns to return; those that say something if empty.
            top: how many rows, 100 at most.
            offset: where to start.
            steps: only these steps, such as `3-9`.
            host: only this host.
        """
        report = self._sessions.opened(session).report(tool, host or None, steps or None)
        found = _find_table(report, table)
        kept, unmatched = arrange_rows(found.rows, sort or None, list(where))
        shown, next_offset = _page(kept, top, offset)
        fields = _choose_columns(found, columns, shown)
        asked = {"session": session, "tool": tool, "table": found.id, "sort": sort, "where": list(where), "top": top}
        following = [_call("rows", "the next page", **asked, offset=next_offset)] if next_offset else []
        more = [*following, _call("describe", "the meaning of the columns", session=session, tool=tool)]
        page = _make_page(session, report, found, fields, shown, more)
        return {**page, "total": len(kept), "next_offset": next_offset, "note": unmatched or page["note"]}

    def what_if(
        self,
        session: str,
        remove: Sequence[str] = (),
        scale: Mapping[str, float] | None = None,
        overlap: Sequence[str] = (),
        move: Mapping[str, int] | None = None,
        steps: str = "",
        balance: str = "",
    ) -> Forecast:
        """Predicts the step time after changes, by replaying the recorded steps.

        Args:
            session: a session's id.
            remove: parts whose time is removed: a cause (`input`), a class of advice, an op, `file.py:line`.
            scale: parts with the share of their time that stays: `{"aten::mm": 0.5}`.
            overlap: parts that run beside everything else.
            move: parts that other workers do, with the number of workers.
            steps: only these steps, such as `3-9`.
            balance: instead, equal work of all `ranks`, of the `stages` of a pipeline, or of one `kind=` of work.
        """
        profile = self._sessions.opened(session).profile
        found = profile.whatif(remove, scales=scale, overlap=overlap, move=move, balance=balance, steps=steps or None)
        whole, following = make_finite(found.to_dict()), [_call("advice", "how to make such a change", session=session)]
        copied = {key: whole[key] for key in ("changes", "critical", "reasoning", "warnings")}
        own = {"session": session, "figures": make_finite(found.figures), "next": following}
        return cast(Forecast, own | copied)

    def compare(self, before: str, after: str, tool: str = "", top: int = 5) -> Comparison:
        """Compares two sessions: step time with its noise, and the largest differences by cause, op and kernel.

        Args:
            before, after: ids of sessions.
            tool: compare the report of this tool; the account, ops, kernels and memories if empty.
            top: how many rows of each table.
        """
        from stepscope.analysis.compare.compare import choose_tools
        from stepscope.analysis.compare.compare import compare as compare_sides

        tools = [tool] if tool else None
        names = choose_tools(tools)
        one, other = (self._sessions.opened(each).side(names) for each in (before, after))
        report = compare_sides(one, other, tools).head(min(max(top, 1), _MOST_ROWS))
        whole = make_finite(report.to_dict())
        tables = {each["id"]: [_short_row(row) for row in whole[each["id"]]] for each in whole["tables"]}
        figures = "difference_ms", "uncertainty_ms", "speedup"
        copied = ("mismatches", "before", "after", "verdict", "verdict_text", *figures, "notes")
        following = [_call("advice", "what to change now", session=after)]
        return cast(Comparison, {**{key: whole[key] for key in copied}, "tables": tables, "next": following})

    def sql(
        self, session: str, query: str, attach: Mapping[str, str] | None = None, top: int = 20, offset: int = 0
    ) -> Page:
        """Answers a question in SQL (DuckDB), such as `SELECT name, count(*) FROM events GROUP BY 1`.

        `describe` with tool `sql` lists the views, their columns and units: events, kernels, launches, ops, steps,
        causes, memory, counters, and a table for each tool.

        Args:
            session: a session's id.
            query: one statement that reads.
            attach: further sessions by name: `{"before": ID}` gives `before.kernels`.
            top: how many rows, 100 at most.
            offset: where to start.
        """
        sessions = [self._asked("main", session), *(self._asked(name, each) for name, each in (attach or {}).items())]
        limits = replace(self._asker().limits, rows=offset + min(max(top, 1), _MOST_ROWS) + 1)
        report = self._asker().ask(query, sessions, limits)
        found = report.main_table()
        shown, next_offset = _page(found.rows, top, offset)
        asked = {"session": session, "query": query, "attach": dict(attach or {}), "top": top}
        following = [_call("sql", "the next page", **asked, offset=next_offset)] if next_offset else []
        more = [*following, _call("describe", "views and columns", session=session, tool=_SQL)]
        page = _make_page(session, report, found, found.fields, shown, more)
        total = len(found.rows) if next_offset is None else None
        return {**page, "total": total, "next_offset": next_offset, "warnings": [] if report.more else page["warnings"]}

    def _asked(self, name: str, session: str) -> Asked:
        from stepscope.sql.asking import Asked

        with self._sessions.lock:
            opened = self._sessions.opened(session)
        return Asked(name, str(opened.profile.number), opened.profile, lambda: self._sessions.lock)

    def gate(self, before: str, after: str, budgets: Mapping[str, Any], accept_other: bool = False) -> GateResult:
        """Checks budgets, such as `{"step_ms": "+5 %", "input_percent": 10}`; only what is beyond the noise fails."""
        from stepscope.analysis.gate.budgets import make_budgets
        from stepscope.analysis.gate.figures import JudgedSession
        from stepscope.analysis.gate.gate_report import make_gate_report

        sides = []
        for each in (before, after):
            opened = self._sessions.opened(each)
            sides.append([JudgedSession(opened.side(("op-stats",)), _asker(opened))])
        whole = make_finite(make_gate_report(sides[0], sides[1], make_budgets(budgets), accept_other).to_dict())
        following = [_call("compare", "where the time went", before=before, after=after)]
        copied = ("verdict", "verdict_text", "rows", "notes")
        return cast(GateResult, {**{key: whole[key] for key in copied}, "next": following})


def _make_asker() -> Asker:
    from stepscope.sql.asking import Asker

    asker = Asker()
    atexit.register(asker.close)
    return asker


def _asker(opened: Opened) -> Callable[[str, str | None], Report]:
    return lambda tool, steps: opened.report(tool, None, steps)


# -- parts of answers ----------------------------------------------------------------------------------------------


def _call(tool: str, why: str, /, **arguments: Any) -> NextCall:
    """A next call, without arguments that say nothing."""
    known = {key: value for key, value in arguments.items() if value not in ("", [])}
    return {"tool": tool, "arguments": known, "why": why}


def _page(items: Sequence[_Item], top: int, offset: int) -> tuple[Sequence[_Item], int | None]:
    """Some items, and where the next page starts.  Raises UsageError for numbers that make no sense."""
    if top < 1 or offset < 0:
        raise UsageError(f"top={top}, offset={offset} is not a page", hint="top is 1 or more, offset 0 or more")
    end = offset + min(top, _MOST_ROWS)
    return items[offset:end], end if end < len(items) else None


def _make_page(
    session: str, report: Report, table: Rows, fields: Sequence[Field], rows: Sequence[Row], following: list[NextCall]
) -> Page:
    """A page of a table, whose caller says how many rows there are."""
    return {
        "session": session,
        "tool": report.TOOL,
        "table": table.id,
        "columns": [field.name for field in fields],
        "units": [field.unit for field in fields],
        "rows": [[_short(row[field.name]) for field in fields] for row in rows],
        "total": None,
        "next_offset": None,
        "note": None if table.rows else table.empty,
        "warnings": list(report.warnings),
        "next": following,
    }


def _session_item(listed: NamedSession) -> dict[str, Any]:
    session = listed.session
    size = sum(file.size or 0 for file in session.files)
    return {"session": listed.id, "path": session.path, "hosts": list(session.hosts), "size_bytes": size}


def _brief_finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a finding and its culprit, without what the tool `advice` says of an advice."""
    left_out = ("evidence", "actions") if finding["kind"] == "advice" else ()
    known = {key: value for key, value in finding.items() if value not in (None, []) and key not in left_out}
    if culprit := known.get("culprit"):
        known["culprit"] = {key: culprit[key] for key in ("name", "file", "line", "op", "layer") if culprit.get(key)}
    return known


def _next_calls_of_summary(session: str, whole: Mapping[str, Any], carries: bool) -> list[NextCall]:
    """The next calls; `carries` says whether the steps can be replayed well enough for a forecast."""
    following = [_call("advice", "what to change, with evidence", session=session)]
    account = whole["account"]
    if account and carries:
        cause = account[0]["cause"]
        following.append(
            _call("what_if", f"the step without {cause.replace('_', ' ')}", session=session, remove=[cause])
        )
    if len(whole["hosts"]) > 1:
        following.append(_call("describe", "what its ranks wait for", session=session, tool="distributed"))
    return [*following, _call("timeline", "see two steps", session=session)]


def _next_calls_of_advice(session: str, items: Sequence[Mapping[str, Any]]) -> list[NextCall]:
    following = []
    for item in items[:1]:
        following.append(_call("rows", "the evidence in rows", session=session, tool=item["tool"]))
        for place in item["intervals"][:1]:
            window = {"start_ms": place["start_ms"], "end_ms": place["end_ms"], "host": place["host"]}
            following.append(_call("timeline", "the evidence in the timeline", session=session, **window))
        if item["class"] != "none" and item["predicted_speedup"] is not None:
            following.append(_call("what_if", "the gain of removing it", session=session, remove=[item["class"]]))
    return following


def _describe_tools(session: str) -> Description:
    lines = [f"{tool.name}: {tool.summary}" for tool in all_tools()]
    following = [_call("describe", "the tables of a tool", session=session, tool="op-stats")]
    return {
        "session": session, "tool": "", "summary": "all tools", "tables": [], "figures": [], "sentences": lines,
        "warnings": [], "next": following,
    }  # fmt: skip


def _declare(tool: str) -> Report:
    """A report that describes what a tool, or sql, can show of any session."""
    from stepscope.sql.answer import schema_report
    from stepscope.sql.tool_tables import declared_report

    return schema_report(()) if tool == _SQL else declared_report(tool_named(tool))


def _tables(report: Report) -> dict[str, Rows]:
    """The tables of a report by their ids, the main one first."""
    main = report.main_table()
    others: Sequence[Section] = report.sections()
    return {main.id: main} | {each.id: each for each in others if isinstance(each, Rows) and each.id != main.id}


def _find_table(report: Report, table: str) -> Rows:
    tables = _tables(report)
    if table and table not in tables:
        raise UsageError(f"{report.TOOL} has no table {table!r}", hint=f"tables: {', '.join(tables)}")
    return tables[table] if table else next(iter(tables.values()))


def _describe_table(table: Rows, of_session: bool, chosen: str) -> AgentTable:
    fields = table.fields if table.id == chosen else ()
    return {
        "table": table.id,
        "title": table.title,
        "total_rows": len(table.rows) if of_session else None,
        "empty": table.empty if of_session and not table.rows else None,
        "columns": [{"name": f.name, "unit": f.unit, "meaning": f.doc} for f in fields],
    }


def _figures(section: Figures, of_session: bool) -> list[Figure]:
    return [
        {
            "name": f"{section.id}.{f.name}",
            "value": make_finite(section.values[f.name]) if of_session else None,
            "unit": f.unit,
            "meaning": f.doc,
        }
        for f in section.fields
    ]


def _choose_columns(table: Rows, wanted: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Sequence[Field]:
    """The wanted columns; without any, those that say something of some row.  Raises UsageError."""
    by_name = {field.name: field for field in table.fields}
    for name in wanted:
        if name not in by_name:
            raise UsageError(f"{table.id} has no column {name!r}", hint=f"columns: {', '.join(by_name)}")
    if wanted:
        return [by_name[name] for name in wanted]
    return [field for field in table.fields if not rows or any(row[field.name] is not None for row in rows)]


def _short(value: Any) -> Any:
    return shorten_name(value, _LONGEST) if isinstance(value, str) else make_finite(value)


def _short_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _short(value) for key, value in row.items() if key != "meaning"}
