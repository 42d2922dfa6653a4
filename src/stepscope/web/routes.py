"""What a route is, and the one list of modules that have some."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from werkzeug.routing import Map, Rule

from stepscope.web.answers import Answer

ROUTE_MODULES = (
    "stepscope.web.static",
    "stepscope.web.api_sessions",
    "stepscope.web.api_tools",
    "stepscope.web.api_capture",
    "stepscope.web.timeline",
)
"""Each has a tuple `ROUTES`."""


@dataclass(frozen=True)
class Route:
    """An address of the site.

    Attributes:
        path: a Werkzeug rule, from the app's root.
        handler: called with the site, the request, and the rule's variables by name.
        method: `GET` (which answers `HEAD` too), `POST` or `DELETE`.
    """

    path: str
    handler: Callable[..., Answer]
    method: str = "GET"


def url_map() -> Map:
    """All routes; the endpoint of a rule is its `Route`."""
    modules = [importlib.import_module(name) for name in ROUTE_MODULES]
    routes: list[Route] = [route for module in modules for route in module.ROUTES]
    rules = [Rule(route.path, endpoint=route, methods=[route.method]) for route in routes]
    return Map(rules, strict_slashes=False, merge_slashes=False)
