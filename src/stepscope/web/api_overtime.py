"""Watched runs over hours and days, for the page."""

from __future__ import annotations

from collections.abc import Iterator

from werkzeug import Request

from stepscope.formats import series
from stepscope.formats.store import is_remote, plain
from stepscope.overtime.examine import examine_run
from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.api_tools import report_answer
from stepscope.web.site import Site

MOST_CAPTURES = 6
"""Captures whose account is shown; each has to be analysed once."""


def list_runs(site: Site, request: Request) -> Answer:
    """Answers with the names of the runs that are or were watched, the newest first."""
    return json_answer({"runs": [run for run, _ in _watched_runs(site)]})


def run_report(site: Site, request: Request) -> Answer:
    """Answers with the report on `run`, the newest one if none is named."""
    runs = dict(reversed(list(_watched_runs(site))))  # of equal names the first counts
    name = request.args.get("run") or next(reversed(runs), "")
    if name not in runs:
        raise Refused(404, f"there is no time series of {name[:200]!r}", "choose another run", list(runs))
    logdir, run = runs[name]
    return report_answer(examine_run(logdir, run, MOST_CAPTURES))


def _watched_runs(site: Site) -> Iterator[tuple[str, tuple[str, str]]]:
    """The name of each run on the page, its logdir and its name there; logdirs in stores have none."""
    for root in site.options.roots:
        if is_remote(root.path):
            continue
        for run in reversed(series.list_runs(plain(root.path))):
            yield f"{root.name}/{run}" if root.name else run, (root.path, run)
