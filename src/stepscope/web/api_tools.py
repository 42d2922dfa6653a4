"""The reports of the tools, for the page and for export."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from werkzeug import Request

from stepscope.analysis.registry import all_tools
from stepscope.report import Figures, Prose, Report, Rows, Section
from stepscope.report.export import EXPORTS, MEDIA_TYPES, table_to_arrow
from stepscope.web.answers import ARROW, Answer, Refused, binary_answer, json_answer
from stepscope.web.routes import Route
from stepscope.web.site import Site

INLINE_ROWS = 20_000
"""Tables with more rows are fetched as Arrow."""

INLINE_NESTED = 2_000
"""Longer lists inside the entries of a report's lists are left out: a table holds the same rows."""


def tool_json(site: Site, request: Request, session: str, tool: str) -> Answer:
    """Answers with the report of a tool."""
    question = _read_question(request, tool)
    return site.opened(session).answer(*question, report_answer)


def report_answer(report: Report, more: Mapping[str, Any] = MappingProxyType({})) -> Answer:
    """Answers with a report: its JSON, its sections as the page shows them, and more."""
    whole = report.to_dict()
    sections = [section_json(section, whole) for section in report.sections()]
    body, left_out = _drop_long_lists(whole)
    shown = {"report": body, "left_out": left_out, "sections": sections, "missing": report.why_empty()}
    return json_answer({**shown, **more})


def tool_export(site: Site, request: Request, session: str, tool: str, form: str) -> Answer:
    """Answers with the report's JSON, or its main table, as a file."""
    if form not in EXPORTS:
        raise Refused(404, f"there is no export format {form!r}", "choose another form", EXPORTS)
    report = _report(site, request, session, tool)
    name = f"{site.listed(session).id}-{report.TOOL}.{form}"
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return binary_answer(EXPORTS[form](report), MEDIA_TYPES[form], disposition)


def trace_export(site: Site, request: Request, session: str, form: str) -> Answer:
    """Answers with the trace of one or all hosts as a compressed file for other viewers."""
    from stepscope.export import compress_pieces
    from stepscope.export.registry import export_named

    export = export_named(form)
    opened = site.opened(session)
    host = request.args.get("host") or None
    hosts = opened.session.hosts if host is None else (opened.file(host).host,)
    # Several hosts stand on one axis of time, so their clocks are set right.
    right = opened.profile.correct_clock if len(hosts) > 1 else lambda trace: trace
    content = b"".join(compress_pieces(export.pieces((right(opened.trace(one)) for one in hosts), len(hosts))))
    name = f"{opened.listed.id}{export.suffix}.gz"
    return binary_answer(content, "application/gzip", {"Content-Disposition": f'attachment; filename="{name}"'})


def table_arrow(site: Site, request: Request, session: str, tool: str, section: str) -> Answer:
    """Answers with one of the report's tables, by the id of its section, as an Arrow IPC stream."""
    return binary_answer(table_to_arrow(find_table(_report(site, request, session, tool), section)), ARROW)


def find_table(report: Report, section: str) -> Rows:
    """A report's table by its id.  Raises Refused (404) with the ids of all tables."""
    tables = {table.id: table for table in report.sections() if isinstance(table, Rows)}
    if section not in tables:
        raise Refused(404, f"there is no table {section!r}", "choose another table", tables)
    return tables[section]


def _report(site: Site, request: Request, session: str, tool: str) -> Report:
    return site.opened(session).report(*_read_question(request, tool))


def _read_question(request: Request, tool: str) -> tuple[str, str | None, str | None]:
    """Tool, host and steps.  Raises Refused (404) for an unknown tool."""
    names = [known.name for known in all_tools()]
    if tool not in names:
        raise Refused(404, f"there is no tool {tool!r}", "choose another tool", names)
    return tool, request.args.get("host") or None, request.args.get("steps") or None


def _drop_long_lists(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """The report without its longest lists, and the lengths of those lists; the page fetches them as tables."""
    long = {key: len(value) for key, value in body.items() if isinstance(value, list) and len(value) > INLINE_ROWS}
    kept: dict[str, Any] = {}
    for key, value in body.items():
        if key in long:
            continue
        inner = _long_inner_lists(value) if isinstance(value, list) else {}
        kept[key] = [{name: item[name] for name in item if name not in inner} for item in value] if inner else value
        long |= {f"{key}[].{name}": count for name, count in inner.items()}
    return kept, long


def _long_inner_lists(items: list[Any]) -> dict[str, int]:
    """Lists inside the entries of a list that are long in total, such as the timelines of many memories."""
    counts: dict[str, int] = {}
    for item in items:
        for name, value in item.items() if isinstance(item, dict) else ():
            if isinstance(value, list):
                counts[name] = counts.get(name, 0) + len(value)
    return {name: count for name, count in counts.items() if count > INLINE_NESTED}


def section_json(section: Section, body: dict[str, Any]) -> dict[str, Any]:
    """A section as the page reads it; `body` is the JSON of its report."""
    head = {"id": section.id, "title": section.title}
    if isinstance(section, Prose):
        return {"kind": "prose", **head, "lines": section.lines}
    said = ("name", "label", "unit", "doc", "kind", "role")
    fields = [{name: getattr(field, name) for name in said} for field in section.fields]
    if isinstance(section, Figures):
        values = {field.name: section.values[field.name] for field in section.fields}
        return {"kind": "figures", **head, "fields": fields, "values": values}
    return {"kind": "table", **head, "fields": fields, **_table_json(section, body)}


def _table_json(table: Rows, body: dict[str, Any]) -> dict[str, Any]:
    """The number of rows, where they are, and which columns to show first."""
    is_long = len(table.rows) > INLINE_ROWS
    return {
        "row_count": len(table.rows),
        "empty": table.empty,
        "key": table.id if isinstance(body.get(table.id), list) else None,
        "usual": table.parts[0].columns if len(table.parts) == 1 else None,
        "columns": None if is_long else {f.name: [row[f.name] for row in table.rows] for f in table.fields},
        "arrow": f"tables/{table.id}.arrow" if is_long else None,
    }


_TOOL = "/api/sessions/<session>/tools/<tool>"

ROUTES = (
    Route(_TOOL, tool_json),
    Route(f"{_TOOL}.<any(csv, json, parquet, arrow):form>", tool_export),
    Route(f"{_TOOL}/tables/<section>.arrow", table_arrow),
    Route("/api/sessions/<session>/trace/<form>", trace_export),
)
