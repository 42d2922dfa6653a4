"""Examines a logdir: what is in it, what is missing, and how to record that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.registry import all_tools
from stepscope.analysis.trust.trust_tool import TrustReport
from stepscope.api import LoadedProfile, load
from stepscope.doctor.report import Check, DoctorReport, make_report, merge_equal
from stepscope.errors import InputError, Problem, StepscopeError
from stepscope.formats.session import Session, find_sessions
from stepscope.report import Cell

MOST_SESSIONS = 20  # are examined, newest first


def examine_logdir(logdir: str, progress: Callable[[str], None] | None = None) -> DoctorReport:
    """Reports what is in a logdir, what is wrong with it, and what to do; also if it is empty or missing."""
    try:
        sessions = find_sessions(logdir)
    except InputError as error:
        return make_report(_report_nothing(error.problem))
    checks, rows = [_check_place(sessions[0]), *_find_empty_pages(sessions[0], progress)], []
    for session in sessions[:MOST_SESSIONS]:
        found, row = _examine_session(session, progress)
        checks += found
        rows.append(row)
    if len(sessions) > MOST_SESSIONS:
        checks.append(Check("sessions", "note", f"only the newest {MOST_SESSIONS} of {len(sessions)} were examined"))
    return make_report(merge_equal(checks), sessions[0].hosts, rows)


def _report_nothing(problem: Problem) -> list[Check]:
    refused = [Check("access", "problem", problem.lost, "let this user read it")] if problem.lost else []
    return [*refused, Check("profiles", "problem", problem.reason, problem.hint or "")]


def _examine_session(session: Session, progress: Callable[[str], None] | None) -> tuple[list[Check], dict[str, Cell]]:
    checks = [Check(session.run, "note", str(problem), problem.hint or "") for problem in session.problems]
    steps: int | None = None
    source: str | None = None
    try:
        profile = _load_session(session, progress)
        report, trust = profile.report("overview"), profile.report("trust")
    except InputError as error:
        where = error.problem.path or session.path
        checks.append(Check(session.run, "problem", f"{where}: {error.problem.reason}", error.problem.hint or ""))
    else:
        assert isinstance(report, OverviewReport) and isinstance(trust, TrustReport)
        checks += _examine_overview(session.run, report, trust, with_missing=not _is_left_behind(session))
        count = report.step_time_ms["count"]
        steps, source = (count if isinstance(count, int) else None), report.steps_source
    states = {check.state for check in checks}
    sizes = [file.size for file in session.files if file.size is not None]
    row: dict[str, Cell] = {
        "run": session.run,
        "hosts": len(session.files),
        "size_mb": round(sum(sizes) / 1e6, 3),
        "format": ", ".join(sorted({file.format.name for file in session.files})),
        "state": next((state for state in ("problem", "note") if state in states), "ok"),
        "steps": steps,
        "steps_source": source,
    }
    return checks, row


def _load_session(session: Session, progress: Callable[[str], None] | None) -> LoadedProfile:
    def show(work: str) -> None:
        if progress is not None:
            progress(f"{session.run}: {work}")  # there may be many sessions, and reading each takes time

    return load(session.files[0].path if len(session.files) == 1 else session.path, progress=show)


def _check_place(session: Session) -> Check:
    """Checks whether TensorBoard and XProf find the newest session: they look at one depth only, Stepscope at any."""
    folder = PurePath(session.files[0].path).parent
    if "://" not in session.files[0].path:
        folder = Path(folder).absolute()
    if folder.parts[-3:-1] == ("plugins", "profile"):
        return Check("place", "ok", f"the newest session is in {_readable(folder, session)}")
    if not any(file.path.endswith(".xplane.pb") for file in session.files):
        return Check("place", "ok", f"the newest session is in {folder}")
    remedy = (
        f"for TensorBoard, move its files to LOGDIR/plugins/profile/{folder.name or 'RUN'}/; Stepscope needs no move"
    )
    return Check("place", "note", f"{folder} is not where TensorBoard and XProf look", remedy)


def _readable(folder: PurePath, session: Session) -> str:
    """The folder of a session as a person can use it: `PurePath` has taken a slash from an address."""
    return session.path if "://" in session.files[0].path else str(folder)


def _find_empty_pages(session: Session, progress: Callable[[str], None] | None) -> list[Check]:
    """Finds the empty pages of the newest session, and why they are empty."""
    checks: list[Check] = []
    if _is_left_behind(session):  # pages are empty because the capture did not end, which is reported with the session
        return checks
    try:
        profile = _load_session(session, progress)
        profile.prepare(tool.name for tool in all_tools())  # reads each of many hosts once, not once per page
    except InputError:  # this is reported with the session
        return checks
    for tool in all_tools():
        try:
            report = profile.report(tool.name)
        except InputError:  # the first page reads the files, so all others would fail, too
            return checks
        except StepscopeError as error:
            checks.append(Check(f"page {tool.name}", "problem", error.problem.reason, error.problem.hint or ""))
            continue
        if missing := report.why_empty():
            checks.append(Check(f"page {tool.name}", "note", *_split_reason(missing)))
    return checks


def _is_left_behind(session: Session) -> bool:
    """True if there are only the flushed files of captures that did not end."""
    return all(file.format.unfinished_ending for file in session.files)


def _split_reason(missing: str) -> tuple[str, str]:
    """Splits a tool's sentence into why its page is empty and, after the colon, what to do."""
    why, _, remedy = missing.partition(": ")
    return f"empty: {why}", remedy


def _examine_overview(run: str, report: OverviewReport, trust: TrustReport, with_missing: bool) -> list[Check]:
    state = "problem" if report.partial else "note"
    checks = [Check(run, state, warning) for warning in report.warnings if warning != trust.line]
    checks += dict.fromkeys(
        Check(run, "problem" if row["grave"] == "yes" else "note", str(row["found"]), str(row["fix"]))
        for row in trust.rows
    )
    if with_missing:
        checks += [Check(run, "note", f"not recorded: {item.what}", item.remedy) for item in report.missing]
    return checks or [Check(run, "ok", report.verdict.sentence)]
