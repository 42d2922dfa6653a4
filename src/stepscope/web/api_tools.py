"""What the tools say, for the page and for export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from werkzeug import Request

from stepscope.analysis.registry import TOOLS
from stepscope.report import Field, Figures, Prose, Report, Rows, Section
from stepscope.report.export import EXPORTS, MEDIA_TYPES, table_to_arrow
from stepscope.web.answers import ARROW, Answer, Refused, binary_answer, json_answer
from stepscope.web.routes import Route
from stepscope.web.site import Site

INLINE_ROWS = 20_000
"""Tables with more rows are fetched as Arrow."""

INLINE_NESTED = 2_000
"""Longer lists within the entries of a report's lists are left to the table that holds the same rows."""


def tool_json(site: Site, request: Request, session: str, tool: str) -> Answer:
    """What a tool says."""
    question = _question(request, tool)
    return site.opened(session).answer(*question, page_of)


def page_of(report: Report) -> Answer:
    """A report, whole and in the sections that a page shows."""
    whole = report.to_dict()
    sections = [_section(section, number, whole) for number, section in enumerate(report.sections())]
    body, left_out = _bounded(whole)
    return json_answer({"report": body, "left_out": left_out, "sections": sections, "missing": report.why_empty()})


def tool_export(site: Site, request: Request, session: str, tool: str, form: str) -> Answer:
    """The report's JSON, or its main table, as a file."""
    if form not in EXPORTS:
        raise Refused(404, f"there is no export as {form!r}", "choose another form", EXPORTS)
    report = _report(site, request, session, tool)
    name = f"{site.listed(session).id}-{report.TOOL}.{form}"
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return binary_answer(EXPORTS[form](report), MEDIA_TYPES[form], disposition)


def trace_export(site: Site, request: Request, session: str, form: str) -> Answer:
    """The trace of all hosts, or of one, as a compressed file for other viewers."""
    from stepscope.export import SUFFIXES, compressed, pieces

    opened = site.opened(session)
    host = request.args.get("host") or None
    hosts = opened.listed.session.hosts if host is None else (opened.file(host).host,)
    content = b"".join(compressed(pieces((opened.trace(one) for one in hosts), form, len(hosts))))
    name = f"{opened.listed.id}{SUFFIXES[form]}.gz"
    return binary_answer(content, "application/gzip", {"Content-Disposition": f'attachment; filename="{name}"'})


def table_arrow(site: Site, request: Request, session: str, tool: str, number: int) -> Answer:
    """One of the report's tables, by its place among the sections, as an Arrow IPC stream."""
    return binary_answer(table_to_arrow(table_of(_report(site, request, session, tool), number)), ARROW)


def table_of(report: Report, number: int) -> Rows:
    """A report's table by its place among the sections.  Raises Refused (404) with the places of tables."""
    sections = report.sections()
    section = sections[number] if number < len(sections) else None
    if not isinstance(section, Rows):
        tables = [str(at) for at, other in enumerate(sections) if isinstance(other, Rows)]
        raise Refused(404, f"section {number} is no table", "choose another section", tables)
    return section


def _report(site: Site, request: Request, session: str, tool: str) -> Report:
    return site.opened(session).report(*_question(request, tool))


def _question(request: Request, tool: str) -> tuple[str, str | None, str | None]:
    """Tool, host and steps.  Raises Refused for a tool that there is not."""
    names = [known.name for known in TOOLS]
    if tool not in names:
        raise Refused(404, f"there is no tool {tool!r}", "choose another tool", names)
    return tool, request.args.get("host") or None, request.args.get("steps") or None


def _bounded(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """The report without its longest lists, and how many entries those have; the page gets them as tables."""
    long = {key: len(value) for key, value in body.items() if isinstance(value, list) and len(value) > INLINE_ROWS}
    kept: dict[str, Any] = {}
    for key, value in body.items():
        if key in long:
            continue
        inner = _long_inside(value) if isinstance(value, list) else {}
        kept[key] = [{name: item[name] for name in item if name not in inner} for item in value] if inner else value
        long |= {f"{key}[].{name}": count for name, count in inner.items()}
    return kept, long


def _long_inside(items: list[Any]) -> dict[str, int]:
    """Lists within the entries of a list that are long all together, such as the timelines of many memories."""
    counts: dict[str, int] = {}
    for item in items:
        for name, value in item.items() if isinstance(item, dict) else ():
            if isinstance(value, list):
                counts[name] = counts.get(name, 0) + len(value)
    return {name: count for name, count in counts.items() if count > INLINE_NESTED}


def _section(section: Section, number: int, body: dict[str, Any]) -> dict[str, Any]:
    if isinstance(section, Prose):
        return {"kind": "prose", "title": section.title, "lines": section.lines}
    head = {"title": section.title, "fields": _fields(section.fields)}
    if isinstance(section, Figures):
        return {"kind": "figures", **head, "values": {f.name: section.values[f.name] for f in section.fields}}
    table = {"kind": "table", **head, "row_count": len(section.rows), "empty": section.empty}
    table["key"] = key_of(section, body)
    if len(section.rows) > INLINE_ROWS:
        return table | {"columns": None, "arrow": f"tables/{number}.arrow"}
    return table | {"columns": {f.name: [row[f.name] for row in section.rows] for f in section.fields}, "arrow": None}


def key_of(table: Rows, body: dict[str, Any]) -> str | None:
    """The key of a report's JSON that holds the rows of a table; None if there is no such list, or no row to tell it.
    A table may show names shorter than the report has them."""
    names = {field.name for field in table.fields}
    alike = [
        key
        for key, value in body.items()
        if isinstance(value, list) and value and len(value) == len(table.rows)
        if isinstance(value[0], dict) and names <= value[0].keys()
    ]
    same = [key for key in alike if body[key][0] is table.rows[0]]
    return next(iter(same), alike[0] if len(alike) == 1 else None)


def _fields(fields: Sequence[Field]) -> list[dict[str, str]]:
    return [{"name": field.name, "unit": field.unit, "doc": field.doc, "kind": field.kind} for field in fields]


_TOOL = "/api/sessions/<session>/tools/<tool>"

ROUTES = (
    Route(_TOOL, tool_json),
    Route(f"{_TOOL}.<any(csv, json, parquet, arrow):form>", tool_export),
    Route(f"{_TOOL}/tables/<int:number>.arrow", table_arrow),
    Route("/api/sessions/<session>/trace/<any(perfetto, chrome):form>", trace_export),
)
