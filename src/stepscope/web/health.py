"""Says whether the server lives, and whether it can do its work; for orchestrators, which bring no token."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.web.answers import Answer, json_answer
from stepscope.web.site import Site


def live(site: Site) -> Answer:
    """The process answers."""
    return json_answer({"status": "ok"})


def ready(site: Site) -> Answer:
    """Whether at least one logdir can be read and the server is not ending; it names no path."""
    if site.is_closed:
        return json_answer({"status": "ending"}, 503)
    if site.catalogue.has_reachable_root():
        return json_answer({"status": "ok"})
    return json_answer({"status": "no logdir can be read"}, 503)


HEALTH: dict[str, Callable[[Site], Answer]] = {"/healthz": live, "/readyz": ready}
