"""The server side of the capture dialog."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec
from werkzeug import Request

from stepscope.formats import store
from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.auth.roles import Rights
from stepscope.web.capturing import PageCapture, Wish
from stepscope.web.routes import Route
from stepscope.web.site import Site


def start(site: Site, request: Request) -> Answer:
    """Starts a capture."""
    try:
        wish = msgspec.json.decode(request.get_data(), type=Wish)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        hint = "send a JSON object with addresses and optionally " + ", ".join(_OPTIONAL)
        raise Refused(400, f"this is not a capture request: {error}", hint) from None
    if not wish.addresses:
        raise Refused(400, "a capture needs at least one address", "write host:port, such as localhost:6009")
    return json_answer({"id": site.captures.start(wish).id}, 201)


def addresses(site: Site, request: Request) -> Answer:
    """Answers with the profiler servers that can be found without being told: those of this user's jobs here."""
    from stepscope.capture.remote.running_servers import find_running_servers

    return json_answer({"servers": [asdict(server) for server in find_running_servers()]})


def progress(site: Site, request: Request, capture: str) -> Answer:
    """Answers with the progress of a capture, and with its session once it is saved."""
    return json_answer(_capture_json(site, site.captures.find(capture)))


def cancel(site: Site, request: Request, capture: str) -> Answer:
    """Ends a capture early; what the workers have recorded is kept."""
    found = site.captures.find(capture)
    found.cancel.set()
    return json_answer(_capture_json(site, found))


_OPTIONAL = tuple(name for name in Wish.__dataclass_fields__ if name != "addresses")


def _capture_json(site: Site, capture: PageCapture) -> dict[str, Any]:
    return {
        "id": capture.id,
        "state": capture.state,
        "seconds_left": capture.seconds_left,
        "workers": [asdict(worker) for worker in capture.workers.values()],
        "session": find_session(site, capture.folder) if capture.folder else None,
        "error": capture.error,
    }


def find_session(site: Site, folder: str) -> str | None:
    """The id of the session in a folder; None until it is found."""
    wanted = store.absolute(folder)
    for fresh in (False, True):
        if fresh:
            site.catalogue.forget()
        for listed in site.catalogue.sessions():
            if store.absolute(listed.session.path) == wanted:
                return listed.id
    return None


ROUTES = (
    Route("/api/capture", start, "POST", Rights.CAPTURE),
    Route("/api/capture/addresses", addresses, role=Rights.CAPTURE),
    Route("/api/capture/<capture>", progress, role=Rights.CAPTURE),
    Route("/api/capture/<capture>", cancel, "DELETE", Rights.CAPTURE),
)
