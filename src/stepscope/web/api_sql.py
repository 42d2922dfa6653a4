"""Questions in SQL about a session: the server side of the console."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, field, replace
from typing import Any

import msgspec
from werkzeug import Request

from stepscope.records import dataclass
from stepscope.sql.all_views import VIEWS
from stepscope.sql.asking import Asked, Asking
from stepscope.sql.macros import MACROS
from stepscope.sql.stats_view import DOC as STATS_DOC
from stepscope.sql.stats_view import NAME as STATS
from stepscope.sql.tool_tables import declared_tables
from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.api_tools import section_json
from stepscope.web.auth.roles import Rights, visitor_of
from stepscope.web.site import Site

_SQL_TYPES = {"float": "DOUBLE", "int": "BIGINT", "str": "VARCHAR", "bool": "BOOLEAN", "ints": "BIGINT[]"}


@dataclass(frozen=True)
class Question:
    """What the page sends.

    Attributes:
        query: one statement that reads.
        rows: the most rows of the answer; the server's limit if None.
        attach: further sessions by the name that the query gives them, as their ids.
        id: by which the question can be stopped.
    """

    query: str
    rows: int | None = None
    attach: dict[str, str] = field(default_factory=dict)
    id: str = ""


def ask(site: Site, request: Request, session: str) -> Answer:
    """Answers a question about a session: a section as those of the tools, and how long it took."""
    question = _read_question(request)
    sessions = [_asked(site, "main", session), *(_asked(site, name, other) for name, other in question.attach.items())]
    started = time.monotonic()
    asker = site.asker()
    rows = min(filter(None, (question.rows, asker.limits.rows)), default=None)
    limits = replace(asker.limits, rows=rows)
    report = asker.ask(question.query, sessions, limits, Asking(visitor_of(request).person, question.id))
    spent_ms = 1e3 * (time.monotonic() - started)
    section = section_json(report.main_table(), report.to_dict())
    facts = {"more": report.more, "warnings": report.warnings, "hosts": report.hosts, "elapsed_ms": round(spent_ms, 1)}
    return json_answer({"section": section, **facts})


def stop(site: Site, request: Request, session: str) -> Answer:
    """Stops questions of the visitor, or that of `?id=`, which may be another's for those who may do everything."""
    visitor, wanted = visitor_of(request), request.args.get("id", "")
    is_anybodys = wanted and visitor.role is Rights.CAPTURE
    return json_answer({"stopped": site.asker().stop(None if is_anybodys else visitor.person, wanted)})


def schema(site: Site, request: Request, session: str) -> Answer:
    """Answers with the tables, their columns and the functions, and starts the process that will answer questions."""
    site.listed(session)
    threading.Thread(target=site.asker().prepare, name="sql", daemon=True).start()
    functions = [{"call": macro.call, "doc": macro.doc, "is_table": macro.is_table} for macro in MACROS]
    limits = asdict(site.asker().limits)
    return json_answer({"tables": [*_views(), *_tool_tables()], "functions": functions, "limits": limits})


def _views() -> list[dict[str, Any]]:
    listed = [
        {
            "name": view.name,
            "tool": None,
            "doc": view.doc,
            "columns": [
                {"name": column.name, "type": column.type_name, "unit": column.unit, "doc": column.doc}
                for column in view.columns
            ],
        }
        for view in VIEWS
    ]
    return [*listed, {"name": STATS, "tool": None, "doc": STATS_DOC, "columns": []}]


def _tool_tables() -> list[dict[str, Any]]:
    return [
        {
            "name": table.names[-1],
            "tool": table.tool,
            "doc": table.title,
            "columns": [
                {"name": each.name, "type": _SQL_TYPES[each.kind], "unit": each.unit, "doc": each.doc}
                for each in table.fields
            ],
        }
        for table in declared_tables()
    ]


def _read_question(request: Request) -> Question:
    try:
        question = msgspec.json.decode(request.get_data(), type=Question)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        hint = "send a JSON object with query and optionally rows and attach"
        raise Refused(400, f"this is not a valid query: {error}", hint) from None
    if question.rows is not None and question.rows < 1:
        raise Refused(400, f"rows has to be above 0, not {question.rows}")
    return question


def _asked(site: Site, name: str, session: str) -> Asked:
    """A session of a question; its id changes when its files do."""
    opened = site.opened(session)
    identity = f"{session} {hash(opened.identities)}"
    return Asked(name, identity, opened.profile, opened.working)
