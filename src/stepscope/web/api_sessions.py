"""The site's settings, its sessions, and the state of a session."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from werkzeug import Request

from stepscope import __version__
from stepscope.analysis.registry import all_tools
from stepscope.errors import StepscopeError
from stepscope.formats import store
from stepscope.formats.session import HostFile
from stepscope.vocabulary.categories import CATEGORY_RULES
from stepscope.web.answers import Answer, Refused, error_json, json_answer
from stepscope.web.catalogue import Listed
from stepscope.web.opened import FIRST_TOOL, HostProgress, OpenSession
from stepscope.web.routes import Route, read_integer
from stepscope.web.site import MOST_SUMMARIES, Site

if TYPE_CHECKING:
    from stepscope.analysis.overview.overview_tool import OverviewReport
    from stepscope.analysis.trust.trust_tool import TrustReport

MOST_WAIT_MS = 1000


def config(site: Site, request: Request) -> Answer:
    """Answers with the settings that the page needs first."""
    tools = [{"name": tool.name, "title": tool.title, "summary": tool.summary} for tool in all_tools()]
    return json_answer(
        {
            "version": __version__,
            "logdir": ", ".join(shown_path(site, root.path) for root in site.options.roots),
            "embedded": site.options.embedded,
            "capture": site.captures.is_available,
            "report": site.options.report is not None,
            "tools": tools,
            "category_rules": [rule._asdict() for rule in CATEGORY_RULES],
        }
    )


def sessions(site: Site, request: Request) -> Answer:
    """Answers with the sessions, the newest first, and the paths that could not be read."""
    listing = site.catalogue.scan()
    return json_answer(
        {
            "sessions": [_listed(site, one) for one in listing.sessions],
            "skipped": [
                {
                    "path": problem.path and shown_path(site, problem.path),
                    "reason": problem.reason,
                    "hint": problem.hint,
                }
                for problem in listing.problems
            ],
            "searched": [shown_path(site, root.path) for root in site.options.roots],
        }
    )


def session(site: Site, request: Request, session: str) -> Answer:
    """Answers with a session; the first request starts loading it.  `wait=MS` waits that long for it to be ready."""
    opened = site.opened(session)
    wait_ms = read_integer(request, "wait", 0, MOST_WAIT_MS, 0)
    if wait_ms and opened.state == "loading":
        site.wait(opened, wait_ms / 1e3)
    return json_answer(
        {
            **_listed(site, opened.listed),
            "state": opened.state,
            "error": None if opened.error is None else error_json(opened.error),
            "progress": _progress(opened),
            "hosts": _hosts(site, opened),
            "facts": _facts(opened),
            "tools": [
                {"name": name, "has_data": state.has_data, "missing": state.missing, "lacks": state.lacks}
                for name, state in opened.tools.items()
            ],
            **_doubts(opened),
        }
    )


def summaries(site: Site, request: Request) -> Answer:
    """Answers with the summaries of `sessions=ID,ID`; null for those that are unknown or not read."""
    wanted = [session for session in request.args.get("sessions", "").split(",") if session]
    return json_answer(site.summaries(wanted[:MOST_SUMMARIES]))


def shown_path(site: Site, path: str) -> str:
    """A path as people see it: on a shared server without the folders above the logdir."""
    if not site.options.is_shared:
        return path
    for root in site.options.roots:
        if path == root.path or path.startswith(f"{root.path.rstrip('/')}/"):
            return (root.name or store.basename(root.path)) + path[len(root.path.rstrip("/")) :]
    return store.basename(path)


def _listed(site: Site, listed: Listed) -> dict[str, Any]:
    return {
        "id": listed.id,
        "run": listed.session.run,
        "path": shown_path(site, listed.session.path),
        "modified": listed.modified,
        "bytes": listed.nbytes,
        "hosts": list(listed.session.hosts),
        "formats": sorted({file.format.name for file in listed.session.files}),
    }


def _progress(opened: OpenSession) -> dict[str, Any]:
    files = opened.session.files
    done = sum(_done_bytes(opened, file) for file in files)
    total = sum(file.size or 0 for file in files)
    spent = time.monotonic() - opened.started
    left = spent * (total - done) / done if opened.state == "loading" and done > 0 else None
    return {
        "stage": opened.stage,
        "done_bytes": done,
        "total_bytes": total,
        "events": opened.profile.events_read,
        "seconds_left": None if left is None else round(left, 1),
    }


def _done_bytes(opened: OpenSession, file: HostFile) -> int:
    """How many bytes of a file are done; decoded bytes count even if they are not analysed yet."""
    found = opened.hosts.get(file.host)  # None for a moment where the processes of a file are told apart
    is_done = found is not None and found.state in ("ready", "failed")
    return (file.size or 0) if is_done else opened.profile.bytes_read(file.host)


def _hosts(site: Site, opened: OpenSession) -> list[dict[str, Any]]:
    hosts = []
    for file in opened.session.files:
        host = opened.hosts.get(file.host) or HostProgress()
        error = None if host.error is None else error_json(host.error)
        hosts.append(
            {"name": file.host, "file": shown_path(site, file.path), "bytes": file.size, "format": file.format.name}
            | {"state": host.state, "error": error, "partial": host.partial}
        )
    return hosts


def _doubts(opened: OpenSession) -> dict[str, Any]:
    """What all pages say of the recording, and the warnings of the start page that hold it."""
    if opened.state != "ready":
        return {"doubts": [], "warnings": []}
    warnings = opened.report(FIRST_TOOL).warnings
    try:
        trust = cast("TrustReport", opened.report("trust"))
    except StepscopeError:  # a recording of memory alone is checked for nothing
        return {"doubts": [{"found": text} for text in warnings], "warnings": list(warnings)}
    return {"doubts": trust.all_doubts(warnings), "warnings": list(warnings)}


def _facts(opened: OpenSession) -> dict[str, Any] | None:
    if opened.state != "ready":
        return None
    report = cast("OverviewReport", opened.report(FIRST_TOOL))
    facts = dict(report.environment) | {"cause": report.verdict.cause, "cause_percent": report.verdict.share_percent}
    times = {"step_count": report.step_time_ms["count"], "step_time_ms": report.median_step_ms}
    facts |= times | {"collectives_ms": report.breakdown_ms["device_collectives"], "steps_source": report.steps_source}
    account = report.account
    facts |= {"verdict": report.verdict.sentence, "pace_host": account.host if account else None}
    facts |= {"is_predictable": account is not None and account.why_not is None}
    return facts | {"duration_ms": facts.pop("capture_ms")}


def report_file(site: Site, request: Request, session: str) -> Answer:
    """Answers with a session's report, as a file to send."""
    if site.options.report is None:
        raise Refused(404, "this server makes no reports", "run stepscope report")
    opened = site.opened(session)
    with opened.working():
        page = site.options.report(opened.profile, shown_path(site, opened.profile.path))
    named = {"Content-Disposition": 'attachment; filename="report.html"'}
    return Answer(page.encode("utf-8", "replace"), "text/html", headers=named)


ROUTES = (
    Route("/api/config", config),
    Route("/api/sessions", sessions),
    Route("/api/sessions/<session>", session),
    Route("/api/sessions/<session>/report", report_file),
    Route("/api/glances", summaries),
)
