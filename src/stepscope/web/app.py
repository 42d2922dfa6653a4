"""WSGI in, WSGI out: routes, guards, errors, headers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import RequestRedirect

from stepscope.errors import StepscopeError
from stepscope.web.answers import Answer, Refused, error_answer, json_answer, refusal
from stepscope.web.auth.roles import OWNER, set_visitor, visitor_of
from stepscope.web.routes import Route, url_map
from stepscope.web.site import Site

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from stepscope.web.auth.gate import Gate

LogRequest = Callable[[Request, int, int, float], None]

POST_HEADER = "X-Stepscope"
"""The header that a request with effects must have: no other site can make a browser send it."""

MOST_BODY_BYTES = 1 << 20
"""The largest request body; the capture dialog's has a few hundred bytes."""

WORTH_PACKING = 1024
_PACKED_TYPES = ("text/", "application/json", "application/vnd.apache.arrow", "application/octet-stream", "image/svg")

SECURITY_HEADERS = {
    # Whatever a trace's names contain, the browser runs and fetches only this site's files.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_log = logging.getLogger(__name__)


def _say_live(site: Site) -> Answer:
    """The process answers."""
    return json_answer({"status": "ok"})


def _say_ready(site: Site) -> Answer:
    """Whether at least one logdir can be read and the server is not ending; it names no path."""
    if site.is_closed:
        return json_answer({"status": "ending"}, 503)
    if site.catalogue.has_reachable_root():
        return json_answer({"status": "ok"})
    return json_answer({"status": "no logdir can be read"}, 503)


HEALTH: dict[str, Callable[[Site], Answer]] = {"/healthz": _say_live, "/readyz": _say_ready}
"""Whether the server lives, and whether it can do its work; for orchestrators, which bring no token."""


class App:
    """The site as a WSGI application; works under any prefix (`SCRIPT_NAME`)."""

    def __init__(self, site: Site, gate: Gate | None = None, log: LogRequest | None = None) -> None:
        """Mounts a site.

        Args:
            site: what is shown.
            gate: lets visitors in; None for everybody.
            log: called with each request, its answer's status and size, and when it came.
        """
        self.site = site
        self._map = url_map()
        self._gate = gate
        self._log = log

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request; raises nothing."""
        began = time.monotonic()
        request = Request(self._gate.outside(environ) if self._gate else environ)
        request.max_content_length = MOST_BODY_BYTES
        answer = self._answer(request)
        if self._log is not None and request.path not in HEALTH:
            self._log(request, answer.status, len(answer.body), began)
        if answer.status >= 400 and _leaves_site(request.path):
            _log.warning("refused a path outside the site: %r", request.path)
        return _response(request, answer)(request.environ, start_response)

    def _answer(self, request: Request) -> Answer:
        try:
            if request.path in HEALTH:  # asked by address, by programs that have no token
                return HEALTH[request.path](self.site)
            self._guard_name(request)
            if self._gate is not None:
                visitor = self._gate.admit(request)
                if isinstance(visitor, Answer):
                    return visitor
                set_visitor(request, visitor)
            self._guard_effects(request)
            route, values = self._map.bind_to_environ(request.environ).match()
            _guard_role(request, route)
            answer: Answer = route.load()(self.site, request, **values)
            return answer
        except (Refused, StepscopeError) as error:
            return refusal(error)
        except RequestRedirect:
            return _not_found_answer(request)
        except HTTPException as error:
            return _http_error(request, error)
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            # What went wrong may name files of the server, which is nobody's business but the owner's.
            is_owner = visitor_of(request) is OWNER
            what = f"{type(error).__name__}: {error}" if is_owner else "the server failed to answer"
            return error_answer(500, what, "this is a bug in Stepscope; the server's log shows where")

    def _guard_name(self, request: Request) -> None:
        """Refuses requests under a name that is not this server's."""
        header = request.environ.get("HTTP_HOST", "")
        names = self.site.options.host_names
        if names is not None and not names.accepts(header):
            _log.warning("refused a request for host %r", header)
            raise Refused(403, f"this server does not answer to the name {header!r}", self.site.options.host_hint)

    def _guard_effects(self, request: Request) -> None:
        """Refuses requests with effects that another site made a browser send."""
        if request.method not in ("GET", "HEAD") and not request.headers.get(POST_HEADER):
            raise Refused(403, f"the header {POST_HEADER} is missing", f"send {POST_HEADER}: 1")


def _guard_role(request: Request, route: Route) -> None:
    """Refuses what the visitor may not do."""
    visitor = visitor_of(request)
    if visitor.role < route.role:
        raise Refused(403, f"your token does not allow you to {route.role.name.lower()}", "ask for another token")


def _http_error(request: Request, error: HTTPException) -> Answer:
    if isinstance(error, NotFound):
        return _not_found_answer(request)
    if isinstance(error, MethodNotAllowed):
        return error_answer(405, f"{request.method} is not allowed here", "", list(error.valid_methods or ()))
    return error_answer(error.code or 400, error.name, error.description or "")


def _leaves_site(path: str) -> bool:
    """Whether a path tries to reach files of this machine."""
    return ".." in path or "\\" in path or path.startswith("//")


def _not_found_answer(request: Request) -> Answer:
    return error_answer(404, f"there is nothing at {request.path}", "API addresses start with api/")


def _response(request: Request, answer: Answer) -> Response:
    is_packed, headers = _is_worth_packing(request, answer), {**SECURITY_HEADERS, **answer.headers}
    if answer.status == 200:
        headers["Cache-Control"] = "public, max-age=31536000, immutable" if answer.is_final else "no-cache"
        headers["ETag"] = f'"{answer.packed_etag if is_packed else answer.etag}"'
    else:
        headers["Cache-Control"] = "no-store"
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    headers["Vary"] = "Accept-Encoding"
    body = answer.packed if is_packed else answer.body
    response = Response(body, answer.status, headers, mimetype=answer.content_type)
    if answer.status == 200:
        response.make_conditional(request.environ)
    return response


def _is_worth_packing(request: Request, answer: Answer) -> bool:
    is_kind = answer.content_type.startswith(_PACKED_TYPES)
    return is_kind and len(answer.body) >= WORTH_PACKING and "gzip" in request.headers.get("Accept-Encoding", "")
