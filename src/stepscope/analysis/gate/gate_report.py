"""The report of a gate: every budget, whether it is kept, and what the session after should change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar

from stepscope.analysis.compare.compare import compare
from stepscope.analysis.compare.compare_report import CompareReport
from stepscope.analysis.compare.predicted import predicted_lines
from stepscope.analysis.gate.budgets import Budget
from stepscope.analysis.gate.figures import JudgedSession
from stepscope.analysis.gate.judge import (
    BROKEN,
    KEPT,
    STATES,
    UNKNOWN,
    WITHIN_NOISE,
    BudgetCheck,
    check_budgets,
    find_all_doubts,
    refuse_other_jobs,
)
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.errors import counted
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Lines, Part, Report, Role, Table, as_prose, as_table, make_rows
from stepscope.report.findings import Case, Level, PlacedFinding

FIELDS: tuple[Field, ...] = (
    Field("figure", "text", "the figure, as the budget names it", role=Role.LABEL),
    Field("state", "text", "; ".join(f"`{name}`: {meaning}" for name, meaning in STATES.items()), role=Role.TERM),
    Field("before", "by unit", "mean of the figure over the sessions before"),
    Field("after", "by unit", "mean of the figure over the sessions after"),
    Field("limit", "by unit", "the largest value allowed, or the smallest if `is_least`"),
    Field("noise", "by unit", "half of the 95 % interval; empty where the limit is kept and where it is unknown"),
    Field("unit", "text", "the unit of these four", role=Role.TYPE),
    Field("is_least", "", "whether the limit is a lower one", "bool", label="Lower limit"),
    Field("reason", "text", "the check in a sentence", role=Role.TEXT),
)
_ON_SCREEN = ("figure", "state", "before", "after", "limit", "noise", "unit")  # the verdict has the reasons
_LEVELS: dict[str, Level] = {BROKEN: "error", UNKNOWN: "error", WITHIN_NOISE: "warning"}


@dataclass(frozen=True, kw_only=True)
class GateReport(Report):
    """Budgets and how they are kept.

    Attributes:
        verdict: `passed`, `warned` or `failed`.
        verdict_text: the same in a sentence.
        rows: the checks; see FIELDS.
        before, after: the names of the sessions.
        foretold: what the advice on the session before predicted, and what came, as of `compare`.
        notes: what the step time did, what came of the advice, and what makes the two sides hard to compare.
        findings: broken budgets and the advice of the session after, each with its line where one is known.
    """

    TOOL: ClassVar[str] = "gate"

    verdict: str
    verdict_text: str = as_prose("Verdict", "verdict", lambda report: report.verdict_text.split("; "))
    before: tuple[str, ...]
    after: tuple[str, ...]
    rows: Table = as_table("Budgets", FIELDS, "no budget", (Part("Budgets", _ON_SCREEN),))
    foretold: Table
    notes: Lines = as_prose("Notes")
    findings: tuple[PlacedFinding, ...] = as_prose(
        "What to change first",
        "advice",
        lambda report: (_finding_line(each) for each in report.findings if each.rule.startswith("advice/")),
    )

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        findings = [{key: value for key, value in vars(each).items() if key != "docs"} for each in self.findings]
        return super().body() | {"findings": findings}

    def cases(self) -> list[Case]:
        """The checks as test cases."""
        return [_case(row) for row in self.rows]


def make_gate_report(
    before: Sequence[JudgedSession],
    after: Sequence[JudgedSession],
    budgets: Sequence[Budget],
    accept_other: bool = False,
) -> GateReport:
    """Checks the budgets of one or more runs.

    Args:
        before: the baselines; may be empty if no budget is relative.
        after: one or more runs of what is judged.
        budgets: the budgets.
        accept_other: whether baselines of another model or device are compared all the same.

    Raises:
        UsageError: a budget names no figure, or a baseline is not of the same job.
    """
    if not accept_other:
        refuse_other_jobs(before, after)
    checks = check_budgets(before, after, budgets)
    last = after[-1].side
    compared = compare(before[-1].side, last, ["overview"]) if before else None
    return GateReport(
        hosts=last.hosts,
        warnings=last.overview.warnings,
        partial=last.partial,
        verdict=_verdict(checks),
        verdict_text=_verdict_text(checks),
        rows=make_rows(FIELDS, checks, unit=lambda check: check.field.unit),
        before=tuple(one.side.run for one in before),
        after=tuple(one.side.run for one in after),
        foretold=() if compared is None else compared.foretold,
        notes=(*_notes(compared), *find_all_doubts(before, after)),
        findings=(*_budget_findings(checks, last.overview, compared), *_advice_findings(last.overview)),
    )


def _notes(compared: CompareReport | None) -> tuple[str, ...]:
    if compared is None:
        return ()
    said = compared.mismatches, predicted_lines(compared.foretold), compared.notes
    return (f"step time: {compared.verdict_text}", *chain.from_iterable(said))


def _verdict(checks: Sequence[BudgetCheck]) -> str:
    states = {check.state for check in checks}
    return "failed" if states & {BROKEN, UNKNOWN} else "warned" if WITHIN_NOISE in states else "passed"


def _verdict_text(checks: Sequence[BudgetCheck]) -> str:
    count = {state: [check for check in checks if check.state == state] for state in STATES}
    parts = [f"{len(count[KEPT])} of {counted(len(checks), 'budget')} kept"]
    parts += [f"{check.figure} is broken: {check.reason}" for check in count[BROKEN]]
    parts += [f"{check.figure} cannot be checked: {check.reason}" for check in count[UNKNOWN]]
    parts += [f"{check.figure} is within the noise: {check.reason}" for check in count[WITHIN_NOISE]]
    return "; ".join(parts)


# -- findings ------------------------------------------------------------------------------------------------------


def _budget_findings(
    checks: Sequence[BudgetCheck], overview: OverviewReport, compared: CompareReport | None
) -> Iterator[PlacedFinding]:
    """What is beyond a limit, at the line that most of the longer time is spent in."""
    place = _place_of_growth(overview, compared)
    for check in checks:
        if check.state != KEPT:
            yield PlacedFinding(
                rule=f"budget/{check.figure}",
                level=_LEVELS[check.state],
                title=f"The budget of {check.figure}",
                message=f"{check.figure}: {check.reason}.",
                file=place[0],
                line=place[1],
                docs="gate.md",
            )


def _place_of_growth(overview: OverviewReport, compared: CompareReport | None) -> tuple[str | None, int | None]:
    """File and line of the culprit of the cause that grew most; of the longest cause without a session before."""
    account = overview.account
    if account is None:
        return None, None
    grown = {row["cause"]: row["difference_ms"] for row in compared.table("breakdown").rows} if compared else {}
    rows = sorted(account.rows, key=lambda row: -float(grown.get(row.cause) or 0.0))  # type: ignore[arg-type]
    culprit = rows[0].culprit if rows else None
    return (culprit.file, culprit.line) if culprit else (None, None)


def _advice_findings(overview: OverviewReport) -> Iterator[PlacedFinding]:
    for item in overview.advice:
        if item.kind != "none":
            yield PlacedFinding(
                rule=f"advice/{item.kind}",
                level="note",
                title=item.title,
                message=f"{item.title}: {item.evidence}. {'; '.join(item.actions[:2])}",
                file=item.culprit.file if item.culprit else None,
                line=item.culprit.line if item.culprit else None,
                docs=item.docs,
            )


def _finding_line(finding: PlacedFinding) -> str:
    return f"{finding.file}:{finding.line}  {finding.message}" if finding.file else finding.message


def _case(row: dict[str, Cell]) -> Case:
    state, figure = str(row["state"]), str(row["figure"])
    limit = (
        f"{'at least' if row['is_least'] else 'at most'} {row['limit']:g} {row['unit']}"
        if row["limit"] is not None
        else ""
    )
    return Case(
        group=figure.partition(".")[0] if "." in figure else "gate",
        name=f"{figure} {limit}".strip(),
        state="failed" if state == BROKEN else "error" if state == UNKNOWN else "passed",
        message="" if state == KEPT else str(row["reason"]),
        text="\n".join(f"{name}: {'unknown' if row[name] is None else row[name]}" for name in row),
    )
