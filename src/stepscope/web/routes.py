"""Routes: what one is, the list of modules that have some, and how they read numbers from a query."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from werkzeug import Request
from werkzeug.routing import Map, Rule

from stepscope.records import dataclass
from stepscope.web.answers import Answer, Refused
from stepscope.web.auth.roles import Rights

ROUTE_MODULES = (
    "stepscope.web.static",
    "stepscope.web.api_sessions",
    "stepscope.web.api_tools",
    "stepscope.web.api_capture",
    "stepscope.web.api_notes",
    "stepscope.web.late_routes",
)
"""Each has a tuple `ROUTES`."""


@dataclass(frozen=True)
class Route:
    """An address of the site.

    Attributes:
        path: a Werkzeug rule, relative to the app's root.
        handler: called with the site, the request, and the rule's variables by name; or its `module:function`.
        method: `GET` (which answers `HEAD` too), `POST` or `DELETE`.
        role: what a visitor has to be allowed.
    """

    path: str
    handler: Callable[..., Answer] | str
    method: str = "GET"
    role: Rights = Rights.SEE

    def load(self) -> Callable[..., Answer]:
        """The handler, imported if necessary."""
        if not isinstance(self.handler, str):
            return self.handler
        module, _, function = self.handler.partition(":")
        handler: Callable[..., Answer] = getattr(importlib.import_module(module), function)
        return handler


def url_map() -> Map:
    """All routes; the endpoint of a rule is its `Route`."""
    modules = [importlib.import_module(name) for name in ROUTE_MODULES]
    routes: list[Route] = [route for module in modules for route in module.ROUTES]
    rules = [Rule(route.path, endpoint=route, methods=[route.method]) for route in routes]
    return Map(rules, strict_slashes=False, merge_slashes=False)


def read_integer(request: Request, name: str, least: int, most: int, default: int | None = None) -> int:
    """Reads a query parameter.  Raises Refused (400) if it is not a whole number from `least` to `most`."""
    text = request.args.get(name, "")
    if not text and default is not None:
        return default
    try:
        number = int(text)
    except ValueError:
        raise Refused(400, f"{name} has to be a whole number, not {text!r}") from None
    if not least <= number <= most:
        raise Refused(400, f"{name} has to be between {least} and {most}, not {number}")
    return number
