"""The routes of the workbench below the timeline: longest events, durations, call trees."""

from __future__ import annotations

from dataclasses import asdict

from werkzeug import Request

from stepscope.analysis.timeline import details, workbench
from stepscope.analysis.timeline.projection import times_of
from stepscope.model import HostTrace
from stepscope.web.answers import Answer, json_answer
from stepscope.web.routes import read_integer
from stepscope.web.timeline import TraceSite, requested_lines, requested_trace, requested_window, shows_own_code

MOST_SLICES = 500


def get_slices(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with the longest events of a selection or a search, and how long all of them last."""
    trace = requested_trace(site, request, session)
    found = _requested_events(trace, request)
    top = read_integer(request, "top", 1, MOST_SLICES, 200)
    histogram = workbench.duration_histogram(trace, found.rows)
    own = shows_own_code(request)
    longest = workbench.longest_events(trace, found.rows, top).tolist()
    return json_answer({
        "total": len(found.rows),
        "sum_ps": int(times_of(trace, found.rows)[1].sum()),
        "slices": [asdict(details.spot_of(trace, event, own)) for event in longest],
        "edges_ps": histogram.edges_ps.tolist(),
        "counts": histogram.counts.tolist(),
    })  # fmt: skip


def get_call_tree(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with the call tree of a selection: nodes as columns, parents first."""
    trace = requested_trace(site, request, session)
    opened = site.opened(session)
    hidden = [name for name in request.args.getlist("hide") if name]
    inverted = request.args.get("inverted") == "1"
    with opened.working():
        found = _requested_events(trace, request)
        tree = workbench.build_call_tree(trace, found, inverted, shows_own_code(request), hidden)
    return json_answer({
        "parent": tree.parent.tolist(),
        "name": [trace.strings[at] for at in tree.name.tolist()],
        "events": tree.events.tolist(),
        "total_ps": tree.total_ps.tolist(),
        "self_ps": tree.self_ps.tolist(),
        "left_out": tree.left_out,
    })  # fmt: skip


def _requested_events(trace: HostTrace, request: Request) -> workbench.Selected:
    begin, end = requested_window(trace, request)
    text, regex = request.args.get("text", ""), request.args.get("regex") == "1"
    return workbench.select_events(trace, begin, end, requested_lines(trace, request), text, regex)
