"""The route of the glances at sessions, for the list of sessions."""

from __future__ import annotations

from werkzeug import Request

from stepscope.web.answers import Answer, json_answer
from stepscope.web.routes import Route
from stepscope.web.site import Site

MOST_GLANCES = 100
"""Sessions in one request."""


def get_glances(site: Site, request: Request) -> Answer:
    """Answers with the glances of `sessions=ID,ID`; null for those that were not read yet or are unknown."""
    wanted = [session for session in request.args.get("sessions", "").split(",") if session]
    return json_answer(site.glances(wanted[:MOST_GLANCES]))


ROUTES = (Route("/api/glances", get_glances),)
