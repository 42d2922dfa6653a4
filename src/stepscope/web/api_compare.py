"""Two sessions side by side, as `stepscope compare` lays them."""

from __future__ import annotations

from werkzeug import Request

from stepscope.analysis.compare.comparable import Side, side_of
from stepscope.analysis.compare.compare import CompareReport, compare
from stepscope.report.export import table_to_arrow
from stepscope.web.answers import ARROW, Answer, Refused, binary_answer
from stepscope.web.api_tools import page_of, table_of
from stepscope.web.routes import Route
from stepscope.web.site import Site


def comparison_json(site: Site, request: Request, session: str) -> Answer:
    """How the session differs from the one that `with` names: that is before, this after."""
    return page_of(_comparison(site, request, session))


def comparison_arrow(site: Site, request: Request, session: str, section: str) -> Answer:
    """One of its tables, by the id of its section, as an Arrow IPC stream."""
    return binary_answer(table_to_arrow(table_of(_comparison(site, request, session), section)), ARROW)


def _comparison(site: Site, request: Request, session: str) -> CompareReport:
    asked = request.args
    other = asked.get("with")
    if not other:
        choices = [listed.id for listed in site.catalogue.sessions()]
        raise Refused(400, "this needs a session to compare with", "add with=SESSION", choices)
    before = _side(site, other, asked.get("with_host"), asked.get("with_steps"))
    return compare(before, _side(site, session, asked.get("host"), asked.get("steps")))


def _side(site: Site, session: str, host: str | None, steps: str | None) -> Side:
    opened = site.opened(session)
    return side_of(
        opened.profile.run, opened.profile.path, lambda tool: opened.report(tool, host or None, steps or None)
    )


_COMPARE = "/api/sessions/<session>/compare"

ROUTES = (
    Route(_COMPARE, comparison_json),
    Route(f"{_COMPARE}/tables/<section>.arrow", comparison_arrow),
)
