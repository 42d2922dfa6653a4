"""What `stepscope doctor` answers with: findings, each with what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stepscope.records import dataclass
from stepscope.report import Cell, Field, Prose, Report, Role, Rows, Section

CHECK_FIELDS: tuple[Field, ...] = (
    Field("check", "text", "what was looked at", role=Role.LABEL),
    Field("state", "text", "`ok`, `note` or `problem`", role=Role.TERM),
    Field("found", "text", "what was found", role=Role.TEXT),
    Field("remedy", "text", "what to do about it; empty if nothing", role=Role.TEXT),
)
SESSION_FIELDS: tuple[Field, ...] = (
    Field("run", "text", "the session's name", role=Role.LABEL),
    Field("hosts", "count", "hosts that recorded it", "int"),
    Field("size_mb", "MB", "size of its files together"),
    Field("format", "text", "format of its files", role=Role.TYPE),
    Field("state", "text", "`ok`, `note` or `problem`", role=Role.TERM),
    Field("steps", "count", "complete steps; unknown if the session cannot be read", "int"),
    Field("steps_source", "text", "how the steps were found", role=Role.TERM),
)
_MOST_NAMED = 2


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, whether it is fine, and what to do."""

    check: str
    state: str
    found: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class DoctorReport(Report):
    """What was found; the worst first."""

    TOOL: ClassVar[str] = "doctor"

    checks: tuple[Check, ...]
    sessions: tuple[dict[str, Cell], ...] = ()

    def body(self) -> dict[str, Any]:
        """The report's own part of the JSON object."""
        return {"checks": [dict(vars(check)) for check in self.checks], "sessions": list(self.sessions)}

    def sections(self) -> Sequence[Section]:
        """The sessions, the problems in full, the other findings, and what to do."""
        rows = tuple(dict(vars(check)) for check in self.checks if check.state != "problem")
        problems = tuple(f"{check.check}: {check.found}" for check in self.checks if check.state == "problem")
        remedies = tuple(f"{check.check}: {check.remedy}" for check in self.checks if check.remedy)
        found = tuple(field for field in CHECK_FIELDS if field.name != "remedy")
        parts: list[Section] = [Rows("sessions", "Sessions", SESSION_FIELDS, self.sessions)] if self.sessions else []
        parts += [Prose("problems", "Problems", problems)] if problems else []
        parts += [Rows("findings", "Findings" if not problems else "Other findings", found, rows)] if rows else []
        return [*parts, Prose("remedies", "What to do", remedies or ("no problems found",))]

    def main_table(self) -> Rows:
        """The findings with their remedies."""
        return Rows("checks", "Findings", CHECK_FIELDS, tuple(dict(vars(check)) for check in self.checks))


def merge_equal(checks: Sequence[Check]) -> list[Check]:
    """Equal findings of several runs or pages as one, which names the first ones and counts the others."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for check in checks:
        names.setdefault((check.state, check.found, check.remedy), []).append(check.check)
    return [Check(_join_names(whose), *finding) for finding, whose in names.items()]


def _join_names(names: Sequence[str]) -> str:
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def make_report(
    checks: Sequence[Check], hosts: tuple[str, ...] = (), sessions: Sequence[dict[str, Cell]] = ()
) -> DoctorReport:
    """The report of all findings."""
    order = {"problem": 0, "note": 1, "ok": 2}
    worst = sorted(checks, key=lambda check: order[check.state])
    return DoctorReport(hosts=hosts, warnings=(), partial=False, checks=tuple(worst), sessions=tuple(sessions))
