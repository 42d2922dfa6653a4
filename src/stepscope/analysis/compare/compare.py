"""Two sessions side by side: did a change help, by how much, is that more than noise, and where did the time go?

What is compared is the time from the start of a step to the start of the next: the step, and what lies between it and
the next where the steps are those of one thread.  With several hosts, a step is that of the host on which it is
longest.  All differences are after minus before; a row that one side lacks counts as zero there.

The tools declare which of their rows are compared; see `stepscope.report.Comparable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from stepscope.analysis.account.account_text import cause_words, culprit_name
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.compare.compare_report import CompareReport
from stepscope.analysis.compare.differences import DifferenceTable, find_differences
from stepscope.analysis.compare.notes import find_mismatches, find_notes
from stepscope.analysis.compare.predicted import Measured, compare_predicted
from stepscope.analysis.compare.sides import Side, count_captures_as_steps, other_amounts, per_batch
from stepscope.analysis.compare.step_times import STEP_TABLES, step_times
from stepscope.analysis.compare.verdict import StepTimeDifference, compare_means, verdict_text
from stepscope.analysis.compare.welch import Sample, sample_of
from stepscope.analysis.registry import Tool, all_tools, tool_named
from stepscope.errors import UsageError
from stepscope.report import Cell, amount, duration_text, round_6, round_ms

DEFAULT_TOOLS = ("overview", "op-stats", "kernel-stats", "memory-profile", "steps")
"""The tools whose differences are shown by default."""

_WARNING_TOOLS = ("overview", "steps", "op-stats", "kernel-stats")  # if no tool was asked for
_MAIN_TABLE = "rows"  # the ops
_ALWAYS_SHOWN = ("breakdown", _MAIN_TABLE)  # the others only if they have rows, or if their tool was requested
_MOST_CAUSES = 4  # that are named with what changed
_PART = 0.25  # of a cause's change: what changed by less of it does not stand for it

_Found = tuple[Culprit, float]  # and for how many ms of a step or batch


def comparable_tools() -> tuple[Tool, ...]:
    """The tools that declare something to compare."""
    return tuple(tool for tool in all_tools() if tool.name in STEP_TABLES or tool.comparables)


def choose_tools(names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the tools to compare: the default ones if None.

    Raises:
        UsageError: there is no such tool, or it has nothing to compare.
    """
    tools = [tool_named(name) for name in (DEFAULT_TOOLS if names is None else names)]
    for tool in tools:
        if tool not in comparable_tools():
            others = ", ".join(each.name for each in comparable_tools())
            raise UsageError(f"{tool.name} cannot be compared: {tool.not_comparable}", hint=f"tools: {others}")
    return tuple(dict.fromkeys(tool.name for tool in tools))


def compare(before: Side, after: Side, tools: Sequence[str] | None = None) -> CompareReport:
    """Compares two sessions.

    Args:
        before, after: the sides, with the reports of the tools.
        tools: the tools to compare; DEFAULT_TOOLS if None.

    Raises:
        UsageError: as of `choose_tools`.
    """
    names = choose_tools(tools)
    before, after = count_captures_as_steps(*per_batch(before, after))
    warned = _WARNING_TOOLS if tools is None else names
    times = step_times(before), step_times(after)
    samples = sample_of(times[0]), sample_of(times[1])
    windows = other_amounts(before, after)
    found = StepTimeDifference("unknown", None, None, None, None) if windows else compare_means(*samples)
    mismatches = find_mismatches(before, after)
    breakdown = STEP_TABLES["overview"](before, after, False).rows
    tables = list(_make_tables(before, after, names, bool(windows) or found.verdict == "within_noise"))
    if tools is None or len(names) == len(comparable_tools()):
        tables = [replace(table, is_optional=table.id not in _ALWAYS_SHOWN) for table in tables]
    main = next((table for table in tables if table.id == _MAIN_TABLE), tables[0])
    return CompareReport(
        hosts=tuple(dict.fromkeys((*before.hosts, *after.hosts))),
        warnings=_label_warnings(before.warnings_of(warned), after.warnings_of(warned)),
        partial=before.partial or after.partial,
        verdict_text=f"not known which is faster: {windows}"
        if windows
        else verdict_text(found, *samples, breakdown, before.of_captures),
        mismatches=mismatches,
        changes=tuple(_describe_changes(before, after, breakdown)),
        difference=found,
        sides=(_side_row("before", before, samples[0]), _side_row("after", after, samples[1])),
        foretold=() if mismatches else compare_predicted(before, after, _gain(found, samples[0])),
        notes=find_notes(before, after, mismatches),
        tables=tuple(tables),
        main=main.id,
        rows=main.rows,
    )


def _gain(found: StepTimeDifference, before: Sample) -> Measured | None:
    """How many times as fast the step became, with the noise of the difference."""
    if found.speedup is None or found.ms is None or not before.mean:
        return None
    after, noise = before.mean + found.ms, found.uncertainty_ms or 0.0
    most = round(before.mean / (after - noise), 4) if after > noise else None
    return Measured(found.speedup, round(before.mean / (after + noise), 4), most)


def _make_tables(before: Side, after: Side, names: Iterable[str], within_noise: bool) -> Iterator[DifferenceTable]:
    counts = before.step_count, after.step_count
    steps = counts if all(counts) else None
    for name in names:
        if name in STEP_TABLES:
            yield STEP_TABLES[name](before, after, within_noise)
        for comparable in tool_named(name).comparables:
            per_step = comparable.is_total and steps is not None
            reports = before.report(name, within_steps=per_step), after.report(name, within_steps=per_step)
            yield find_differences(name, comparable, *reports, steps, within_noise)


def _side_row(name: str, side: Side, sample: Sample) -> dict[str, Cell]:
    advice = side.overview.advice
    return {
        "side": name,
        "run": side.run,
        "mean_ms": None if sample.mean is None else round_6(sample.mean),
        "std_ms": None if sample.std is None else round_6(sample.std),
        "steps": sample.count,
        "input_bound_percent": side.overview.input_bound_percent if sample.count else None,
        "first_advice": advice[0].title if advice else None,
    }


def _label_warnings(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """The warnings of both recordings, each labelled with its side; once if it is about both."""
    return (
        *(f"{'both' if text in after else 'before'}: {text}" for text in before),
        *(f"after: {text}" for text in after if text not in before),
    )


def _describe_changes(before: Side, after: Side, breakdown: Iterable[Mapping[str, Cell]]) -> Iterator[str]:
    """The causes that changed most beyond the noise: ``input -34.2 ms: `train.py:9 read`, 36.1 ms before``; and what
    the others add up to, where without them the changes are not that of the step.

    Args:
        breakdown: the mean step by cause, see `compare_breakdowns`.
    """
    rows = sorted(breakdown, key=lambda row: -abs(amount(row["difference_ms"])))
    changed = [row for row in rows if row["verdict"] in ("better", "worse")][:_MOST_CAUSES]
    for row in changed:
        cause, change = str(row["cause"]), amount(row["difference_ms"])
        where = _changed_culprit(_culprit_of(before, cause), _culprit_of(after, cause), change)
        yield f"{_change_text(row)}: {where}" if where else _change_text(row)
    others = [row for row in rows if row not in changed and row["difference_ms"]]
    rest, whole = (sum(amount(row["difference_ms"]) for row in each) for each in (others, rows))
    if changed and abs(rest) >= _PART * abs(whole):
        how = "within the noise" if all(row["verdict"] == "within_noise" for row in others) else "together"
        named = ", ".join(map(_change_text, others[:2]))
        yield f"all others {'+' if rest > 0 else '-'}{duration_text(abs(rest))}, {how}: first {named}"


def _change_text(row: Mapping[str, Cell]) -> str:
    change = amount(row["difference_ms"])
    return f"{cause_words(str(row['cause']))} {'+' if change > 0 else '-'}{duration_text(abs(change))}"


def _changed_culprit(before: _Found | None, after: _Found | None, change_ms: float) -> str:
    """What a cause is spent in on the side where it takes longer; empty where that may take about as long on the other,
    on which nothing takes longer than what is named there."""
    larger, smaller = (after, before) if change_ms > 0 else (before, after)
    if larger is None or larger[1] - (smaller[1] if smaller else 0.0) < _PART * abs(change_ms):
        return ""
    culprit, ms = larger
    name = f"`{culprit_name(culprit)}`" + (f" in `{culprit.layer}`" if culprit.layer and not culprit.file else "")
    if before and after and (before[0].name, before[0].file) == (after[0].name, after[0].file):
        return f"{name}, {duration_text(before[1])} -> {duration_text(after[1])}"
    return f"{name}, {duration_text(ms)} {'after' if change_ms > 0 else 'before'}"


def _culprit_of(side: Side, cause: str) -> _Found | None:
    rows = side.overview.account.rows if side.overview.account else ()
    culprit = next((row.culprit for row in rows if row.cause == cause), None)
    return None if culprit is None else (culprit, round_ms(culprit.ps) / side.divisor)
