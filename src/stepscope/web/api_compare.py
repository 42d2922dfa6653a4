"""Compares two sessions for the page, as `stepscope compare` does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from werkzeug import Request

from stepscope.analysis.compare.compare import choose_tools, comparable_tools, compare
from stepscope.analysis.compare.compare_report import CompareReport
from stepscope.analysis.compare.sides import Side, side_of
from stepscope.report import Report
from stepscope.report.export import table_to_arrow
from stepscope.runs import compare_runs, describe_sessions
from stepscope.web.answers import ARROW, Answer, Refused, binary_answer, json_answer
from stepscope.web.api_tools import find_table, report_answer
from stepscope.web.notes.note_store import read_labels
from stepscope.web.site import Site

MOST_COMPARED = 12  # sessions in one table; each is read whole


def comparable_json(site: Site, request: Request) -> Answer:
    """Answers with the names of the tools that can be compared."""
    return json_answer({"tools": [tool.name for tool in comparable_tools()]})


def comparison_json(site: Site, request: Request, session: str) -> Answer:
    """Answers with the comparison of the session `with` (before) and this one (after); `tool` selects the tools."""
    return report_answer(_comparison(site, request, session))


def comparison_arrow(site: Site, request: Request, session: str, section: str) -> Answer:
    """Answers with one of its tables, by the id of its section, as an Arrow IPC stream."""
    return binary_answer(table_to_arrow(find_table(_comparison(site, request, session), section)), ARROW)


def compared_runs(site: Site, request: Request) -> Answer:
    """Answers with a row per `session`, each compared with the first, as `stepscope compare A B C` does."""
    opened = [site.opened(session) for session in request.args.getlist("session")[:MOST_COMPARED]]
    if len(opened) < 2:
        raise Refused(400, "two sessions or more are compared", "add session=ID for each, the base first")
    with ExitStack() as working:
        for each in {id(each): each for each in opened}.values():
            working.enter_context(each.working())
        return report_answer(compare_runs([each.profile for each in opened]))


def listed_runs(site: Site, request: Request) -> Answer:
    """Answers with a row per session that was read, as `stepscope runs` does; `figure=ID` adds a column."""
    figures, labels_of = request.args.getlist("figure"), read_labels(site.words)
    return report_answer(describe_sessions(site.read_profiles(), figures, labels_of))


def _comparison(site: Site, request: Request, session: str) -> CompareReport:
    asked = request.args
    other = asked.get("with")
    if not other:
        choices = [listed.id for listed in site.catalogue.sessions()]
        raise Refused(400, "no session to compare with", "add with=SESSION", choices)
    tools = asked.getlist("tool") or None
    names = choose_tools(tools)
    before = _side(site, other, asked.get("with_host"), asked.get("with_steps"), names)
    return compare(before, _side(site, session, asked.get("host"), asked.get("steps"), names), tools)


def _side(site: Site, session: str, host: str | None, steps: str | None, tools: Sequence[str]) -> Side:
    opened = site.opened(session)

    def ask(names: Sequence[str], within_steps: bool) -> dict[str, Report]:
        chosen = _ALL_STEPS if within_steps else steps or None
        return {name: opened.report(name, host or None, chosen) for name in names}

    return side_of(opened.profile.run, opened.profile.path, ask, tools)


_ALL_STEPS = "all"
"""All steps of a session, without the time before and after them."""
