"""One step above the median one: what each is spent on in the order of time, and which lines and ops differ.

Both are steps of one recording, so nothing is predicted and no noise is estimated: a difference is what was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.account.account import moments_of
from stepscope.analysis.account.account_text import cause_words, describe_place
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.critical_path import Pieces
from stepscope.analysis.account.culprits import Culprit, PieceFinder
from stepscope.analysis.account.every_step import CausesOfStep, every_step
from stepscope.analysis.account.every_step import causes_of_steps as accounts_of
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.trace.spans import Spans
from stepscope.errors import UsageError
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, U8, Mask
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, Rows, amount, duration_text, round_ms

MOST_ROWS = 12  # differences that are shown by name
MOST_FOLLOWED = 60  # differences that are followed to a line or an op, which may be the same for several
FIELDS: tuple[Field, ...] = (
    Field("cause", "text", "what the step waits for then", "str", Role.TERM),
    Field("name", "text", "the function, op or kernel that takes most of it; the rest as one row", "str", Role.NAME),
    Field("place", "text", "file and line of the function, or that ask for the op", "str", Role.SOURCE),
    Field("layer", "text", "the module that it runs in, where the trace says so", "str", Role.LABEL),
    Field("difference_ms", "ms", "this step minus the median one; all rows add up", role=Role.CHANGE),
    Field("step_ms", "ms", "its time in this step", label="This step"),
    Field("median_ms", "ms", "its time in the median step", label="Median step"),
)


@dataclass(frozen=True)
class OrderedStep:
    """A step's causes in the order of time, each with how long it goes on; see `StepAccount.moments`."""

    number: int
    start_ms: float
    ms: float
    moments: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class StepBesideMedian:
    """A step and the median of the others.

    Attributes:
        difference: how much longer or shorter the step is, in words.
        reason: what explains most of that, in words, and cause: what identifies it; empty if nothing does.
        rows: of FIELDS, the largest difference first.
    """

    step: OrderedStep
    median: OrderedStep
    difference: str
    reason: str
    cause: str
    rows: tuple[dict[str, Cell], ...]

    @property
    def sentence(self) -> str:
        """The difference and its reason."""
        return f"{self.difference}: {self.reason}" if self.reason else self.difference

    def section(self) -> Rows:
        """The differences as a table."""
        return Rows("differences", "What differs", FIELDS, self.rows, "nothing differs")


def compare_with_median(trace: HostTrace, number: int) -> StepBesideMedian:
    """Compares a step with the median of the other usual steps of its host.

    Raises:
        UsageError: there is no such step, or no other one.
    """
    found, steps = every_step(trace), accounts_of(trace)
    here = next((at for at, step in enumerate(steps) if step.number == number), None)
    if found is None or here is None:
        known = f"steps {steps[0].number} to {steps[-1].number} have an account" if steps else "it has no steps"
        raise UsageError(f"there is no step {number}", hint=known)
    others = [at for at in range(len(steps)) if at != here]
    others = [at for at in others if steps[at].usual] or others
    if not others:
        raise UsageError("there is no other step to compare with")
    there = sorted(others, key=lambda at: steps[at].step_ps)[(len(others) - 1) // 2]
    chosen = (found.step == here) | (found.step == there)
    pieces, cause, is_here = found.pieces.take(chosen), found.cause[chosen], found.step[chosen] == here
    told = list(_list_causes(trace, found.graph, pieces, cause, is_here))
    both = steps[here], steps[there]
    strips = [
        OrderedStep(
            step.number,
            round_ms(step.start_ps),
            round_ms(step.step_ps),
            tuple((name, round_ms(ps)) for name, ps in moments_of(pieces.take(part), cause[part])),
        )
        for step, part in zip(both, (is_here, ~is_here), strict=True)
    ]
    return StepBesideMedian(strips[0], strips[1], *_explain(*both, told), tuple(row for row, _ in told))


_Told = tuple[dict[str, Cell], Culprit | None]


def _list_causes(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8, is_here: Mask) -> Iterator[_Told]:
    """The time of both steps by cause and culprit, the largest difference first, and what else differs as the last row;
    each with its culprit.

    Args:
        is_here: bool of shape (pieces,), whether a piece is of this step rather than of the median one.
    """
    finder, length = PieceFinder(trace, graph, pieces), pieces.end_ps - pieces.start_ps
    _, group = np.unique(np.stack([cause.astype(np.int64), finder.labels()]), axis=1, return_inverse=True)
    spent = np.zeros((int(group.max()) + 1, 2), np.int64)
    np.add.at(spent, (group.ravel(), is_here.astype(np.int64)), length)
    order = np.argsort(-np.abs(spent[:, 1] - spent[:, 0]), kind="stable").tolist()
    by_name: dict[tuple[str, str | None, str | None], tuple[Culprit | None, I64]] = {}
    for at in order[:MOST_FOLLOWED]:
        members = np.flatnonzero(group.ravel() == at)
        each = Cause(cause[members[0]])
        grown = members[is_here[members] == (spent[at, 1] > spent[at, 0])]
        during = Spans.union(pieces.start_ps[grown], pieces.end_ps[grown])
        # Contention is by what runs elsewhere.
        culprit = None if each == Cause.CONTENTION else finder.culprit(members, each, during)
        key = each.name.lower(), culprit.name if culprit else None, describe_place(culprit)
        known = by_name.get(key, (culprit, np.zeros(2, np.int64)))
        by_name[key] = known[0], known[1] + spent[at]
    rest = spent[order[MOST_FOLLOWED:]].sum(axis=0)
    ranked = sorted(by_name.items(), key=lambda item: -abs(int(np.diff(item[1][1])[0])))
    for (name, _, _), (culprit, ps) in ranked[:MOST_ROWS]:
        if ps[0] != ps[1]:
            yield _row(name, culprit, ps), culprit
    rest = rest + sum((ps for _, (_, ps) in ranked[MOST_ROWS:]), np.zeros(2, np.int64))
    if rest.any():
        yield _row(None, None, rest), None


def _row(cause: str | None, culprit: Culprit | None, ps: I64) -> dict[str, Cell]:
    return {
        "cause": cause,
        "name": culprit.name if culprit else None if cause else "everything else",
        "place": describe_place(culprit),
        "layer": culprit.layer if culprit else None,
        "step_ms": round_ms(int(ps[1])),
        "median_ms": round_ms(int(ps[0])),
        "difference_ms": round_ms(int(ps[1] - ps[0])),
    }


def _explain(step: CausesOfStep, median: CausesOfStep, told: list[_Told]) -> tuple[str, str, str]:
    """How much longer the step is, and the row that explains most of that, in words and as what identifies it."""
    change = round_ms(step.step_ps - median.step_ps)
    words = f"{duration_text(abs(change))} {'longer' if change > 0 else 'shorter'} than" if change else "as long as"
    first = f"Step {step.number} is {words} step {median.number}, the median of the others"
    side = 1 if change > 0 else -1
    grown = [(side * amount(row["difference_ms"]), row, culprit) for row, culprit in told if row["cause"]]
    most, main, culprit = max(grown, key=lambda item: item[0], default=(0.0, {}, None))
    if most <= 0:
        return first, "", ""
    what = " ".join(str(main[key]) for key in ("place", "name") if main[key])
    place = f" in `{what}`" if what else ""
    inside = f" (`{culprit.inside}`)" if culprit is not None and culprit.inside else ""
    words = f"is {duration_text(most)} {'longer' if change > 0 else 'shorter'}"
    return first, f"{cause_words(str(main['cause']))}{place}{inside} {words}", f"{main['cause']} {what}"
