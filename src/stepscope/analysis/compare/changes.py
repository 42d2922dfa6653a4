"""What changed by cause, and the line or op in which it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stepscope.analysis.account.account_text import cause_words, culprit_name
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.compare.sides import Side
from stepscope.report import Cell, amount, duration_text, round_ms

_MOST = 4  # causes that are named
_PART = 0.25  # of a cause's change: what changed by less of it does not stand for it

_Found = tuple[Culprit, float]  # and for how many ms of a step or batch


def describe_changes(before: Side, after: Side, breakdown: Iterable[Mapping[str, Cell]]) -> Iterator[str]:
    """The causes that changed most beyond the noise: ``input -34.2 ms: `train.py:9 read`, 36.1 ms before``.

    Args:
        breakdown: the mean step by cause, see `compare_breakdowns`.
    """
    changed = [row for row in breakdown if row["verdict"] in ("better", "worse")]
    for row in sorted(changed, key=lambda row: -abs(amount(row["difference_ms"])))[:_MOST]:
        cause, change = str(row["cause"]), amount(row["difference_ms"])
        text = f"{cause_words(cause)} {'+' if change > 0 else '-'}{duration_text(abs(change))}"
        where = _changed_culprit(_culprit_of(before, cause), _culprit_of(after, cause), change)
        yield f"{text}: {where}" if where else text


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
