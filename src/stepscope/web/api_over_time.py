"""Watched runs over hours and days, for the page, as `stepscope over-time` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from werkzeug import Request

from stepscope.formats import series, store
from stepscope.overtime import MOST_CAPTURES, examine_run
from stepscope.records import dataclass
from stepscope.report import Rows
from stepscope.report.export import table_to_arrow
from stepscope.web.answers import ARROW, Answer, Refused, binary_answer, json_answer
from stepscope.web.api_sessions import shown_path
from stepscope.web.api_tools import find_table, report_answer
from stepscope.web.catalogue import Root, make_id
from stepscope.web.routes import read_integer
from stepscope.web.site import Site


@dataclass(frozen=True)
class WatchedRun:
    """A run with a time series.

    Attributes:
        id: its id in addresses.
        root: the logdir.
        run: its name there.
        hosts: the workers that wrote rows.
    """

    id: str
    root: Root
    run: str
    hosts: tuple[str, ...]


def list_watched(site: Site, request: Request) -> Answer:
    """Answers with the runs that have a time series, the newest first."""
    runs = sorted(_find_watched(site.options.roots), key=lambda each: each.run, reverse=True)
    return json_answer({"runs": [_run_json(site, each) for each in runs]})


def show_watched(site: Site, request: Request, run: str) -> Answer:
    """Answers with the report of a run.  `captures=N` analyses its latest captures too, which takes a while.

    `run` has its name and hosts, and `sessions` the ids of the sessions that its triggers and captures name.
    """
    watched = _find_run(site, run)
    report = examine_run(watched.root.path, watched.run, read_integer(request, "captures", 0, MOST_CAPTURES, 0))
    named = {str(mark[name]) for mark in report.marks for name in ("run", "window") if mark[name]}
    more = {"run": _run_json(site, watched), "sessions": _session_ids(site, watched.root, named)}
    return report_answer(report, more)


def watched_arrow(site: Site, request: Request, run: str, section: str) -> Answer:
    """Answers with one of the tables of a run, by the id of its section, as an Arrow IPC stream."""
    watched = _find_run(site, run)
    table: Rows = find_table(examine_run(watched.root.path, watched.run, 0), section)
    return binary_answer(table_to_arrow(table), ARROW)


def _find_watched(roots: Sequence[Root]) -> Iterator[WatchedRun]:
    for root in roots:
        for run, hosts in series.find_runs(root.path).items():
            yield WatchedRun(make_id(run, root.path), root, run, tuple(hosts))


def _find_run(site: Site, wanted: str) -> WatchedRun:
    known = list(_find_watched(site.options.roots))
    found = next((each for each in known if each.id == wanted), None)
    if found is None:
        hint = "choose another run" if known else "no run was watched; start one with stepscope.watch(LOGDIR)"
        raise Refused(404, f"there is no watched run {wanted!r}", hint, [each.id for each in known])
    return found


def _run_json(site: Site, watched: WatchedRun) -> dict[str, Any]:
    return {
        "id": watched.id,
        "run": f"{watched.root.name}/{watched.run}" if watched.root.name else watched.run,
        "logdir": shown_path(site, watched.root.path),
        "hosts": list(watched.hosts),
    }


def _session_ids(site: Site, root: Root, runs: set[str]) -> Mapping[str, str]:
    """The ids of a logdir's sessions, by the names of their folders."""
    profiles = store.join(store.join(store.plain(root.path), "plugins"), "profile")
    places = {store.plain(listed.session.path): listed.id for listed in site.catalogue.sessions()}
    found = {run: places.get(store.join(profiles, run)) for run in sorted(runs)}
    return {run: session for run, session in found.items() if session}
