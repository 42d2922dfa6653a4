"""One side of a comparison: a session and the reports of the tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import cast

from stepscope.analysis.account.causes import MEANING
from stepscope.analysis.account.steps_tool import StepsReport
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.registry import tool_named
from stepscope.records import dataclass
from stepscope.report import Cell, Report, amount, number_text, round_ms

BASE_TOOLS = ("overview", "steps", "op-shapes", "op-stats")
"""The tools that every comparison needs: for the step times, and notes on what makes comparing hard."""

MOST_OUTSIDE_PERCENT = 1.0
"""If at least this share of op time is outside of the steps, totals count the steps alone."""

Ask = Callable[[Sequence[str], bool], Mapping[str, Report]]


@dataclass(frozen=True)
class Side:
    """A session, with the reports of the tools that are compared, all for the same hosts and steps.

    Attributes:
        run, path: the session's name and place.
        reports: by tool, of the whole capture or of the chosen steps.
        within_steps: by tool, of the steps alone; only of tools with totals, and only if much ran outside of the steps.
        divisor: what step times are divided by: the batches of a step, where those of the two sides differ.
        of_captures: whether the whole captures are compared, as steps were found on neither side.
    """

    run: str
    path: str
    reports: Mapping[str, Report]
    within_steps: Mapping[str, Report] = field(default_factory=dict)
    divisor: int = 1
    of_captures: bool = False

    @property
    def overview(self) -> OverviewReport:
        """The overview."""
        return cast(OverviewReport, self.reports["overview"])

    @property
    def steps(self) -> StepsReport:
        """The steps of each host."""
        return cast(StepsReport, self.reports["steps"])

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the reports cover."""
        return self.overview.hosts

    def warnings_of(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The warnings of these tools, each once; those of reports with nothing to show are left out."""
        shown = [self.reports[tool] for tool in tools if self.reports[tool].why_empty() is None]
        return tuple(dict.fromkeys(text for report in (self.overview, self.steps, *shown) for text in report.warnings))

    @property
    def partial(self) -> bool:
        """True if a part of the recording is missing."""
        return self.overview.partial

    @property
    def step_count(self) -> float:
        """The number of steps by which totals are divided: all that a host recorded, as a mean over hosts."""
        return 0.0 if self.overview.steps_source == "none" else self.overview.steps_a_host

    @property
    def outside_percent(self) -> dict[str, float]:
        """The share of op time outside of the steps, by `host` and `device`, where it reaches MOST_OUTSIDE_PERCENT."""
        shares = self.overview.outside_steps_percent
        return {where: share for where, share in shares.items() if share is not None and share >= MOST_OUTSIDE_PERCENT}

    def report(self, tool: str, within_steps: bool) -> Report:
        """A tool's report; with `within_steps` the one on the steps alone, if there is one."""
        return (self.within_steps.get(tool) if within_steps else None) or self.reports[tool]

    @cached_property
    def usual_steps(self) -> tuple[dict[str, Cell], ...]:
        """The steps that are compared: those that statistics count; none if only this side has no steps.

        A whole capture is that of the host of which the overview's account is, so that both give the same figures.
        """
        if self.of_captures and (account := self.overview.account) is not None:
            none = dict.fromkeys((f"{cause.name.lower()}_ms" for cause in MEANING), 0.0)
            spent = {f"{row.cause}_ms": round_ms(row.ps) for row in account.rows}
            return ({"duration_ms": round_ms(account.step_ps), **none, **spent},)
        rows = self.overview.step_rows if self.step_count or self.of_captures else ()
        return tuple(row for row in rows if row["usual"])


def per_batch(before: Side, after: Side) -> tuple[Side, Side]:
    """The sides with step times per batch, if their steps are of different numbers of batches."""
    counts = before.steps.batches_a_step, after.steps.batches_a_step
    if counts[0] == counts[1]:
        return before, after
    return replace(before, divisor=counts[0]), replace(after, divisor=counts[1])


def count_captures_as_steps(before: Side, after: Side) -> tuple[Side, Side]:
    """The sides with the captures as their only steps, if steps were found on neither."""
    if before.step_count or after.step_count:
        return before, after
    return replace(before, of_captures=True), replace(after, of_captures=True)


def other_amounts(before: Side, after: Side) -> str:
    """Why the lengths of two captures do not tell which side is faster, as a sentence; empty if nothing speaks against.

    A recorder that cuts a window makes captures of one length with more or less work in them: where the runs of the
    longest op of both differ by more than the lengths do.
    """
    if not before.of_captures or not (before.usual_steps and after.usual_steps):
        return ""
    calls = {str(op["name"]): amount(op["calls"]) for op in after.overview.top_ops}
    op = next((op for op in before.overview.top_ops if calls.get(str(op["name"])) and op["calls"]), None)
    lengths = [amount(side.usual_steps[0]["duration_ms"]) for side in (before, after)]
    if op is None or not all(lengths):
        return ""
    runs = amount(op["calls"]), calls[str(op["name"])]
    if abs(runs[1] / runs[0] - 1) <= abs(lengths[1] / lengths[0] - 1):
        return ""
    each = [length / count for length, count in zip(lengths, runs, strict=True)]
    change = 100 * (each[1] / each[0] - 1)
    return (
        f"both captures are windows with different amounts of work; `{op['name']}` runs {runs[0]:,.0f} times in"
        f" {number_text(lengths[0])} ms before and {runs[1]:,.0f} times in {number_text(lengths[1])} ms after:"
        f" {abs(change):.0f} % {'more' if change > 0 else 'less'} time for each run, if steps run it as often as before"
    )


def side_of(run: str, path: str, ask: Ask, tools: Sequence[str]) -> Side:
    """Asks the tools about a session.

    Args:
        run, path: the session's name and place.
        ask: returns the reports of some tools, given their names and whether to count the steps alone.
        tools: the tools that are compared.
    """
    side = Side(run, path, ask(tuple(dict.fromkeys((*BASE_TOOLS, *tools))), False))
    with_totals = tuple(tool for tool in tools if any(each.is_total for each in tool_named(tool).comparables))
    if not (side.outside_percent and side.step_count and with_totals):
        return side
    return replace(side, within_steps=ask(with_totals, True))
