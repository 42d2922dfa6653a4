"""What many ranks show together: how their figures spread, and which ranks behave alike.

A thousand rows become a handful: ranks whose figures differ by little are one group, which is shown by its mean, and by
what it does otherwise than the largest group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, duration_text, round_ms

F64 = NDArray[np.float64]

PARTS = ("compute", "communication", "overlap", "exposed", "other_work", "idle")
FIGURES = ("span", *PARTS, "waiting", "held_up")
MOST_NAMED = 8  # ranks that are named one by one

PART_FIELDS: tuple[Field, ...] = (
    Field("compute_ms", "ms", "time in which the rank computes, overlapped or not; without devices, time in ops"),
    Field("communication_ms", "ms", "time in which the rank takes part in collectives"),
    Field("overlap_ms", "ms", "communication overlapped with computation"),
    Field("exposed_ms", "ms", "exposed communication: the part without computation"),
    Field("other_work_ms", "ms", "time with only other device work, such as copies"),
    Field("idle_ms", "ms", "time without any of these"),
)
ALIKE_FIELDS: tuple[Field, ...] = (
    Field("group", "number", "the group; the largest has number 1", "int", role=Role.ORDINAL),
    Field("ranks", "count", "ranks in it", "int"),
    Field("members", "text", "their numbers, or the names of their hosts", "str", role=Role.LABEL),
    Field("typical", "text", "the rank in the middle of the group", "str", role=Role.PLACE),
    *PART_FIELDS,
    Field("waiting_ms", "ms", "time in collectives beyond that of the last rank to arrive"),
    Field("held_up_ms", "ms", "mean wait of the other ranks in collectives to which a rank of the group came last"),
    Field("differs_in", "text", "the part that differs most from the largest group", "str", role=Role.TERM),
    Field("differs_ms", "ms", "by how much that part is longer; negative if it is shorter"),
)
SPREAD_FIELDS: tuple[Field, ...] = (
    Field("part", "text", "a figure of the ranks", "str", role=Role.TERM),
    Field("least_ms", "ms", "the shortest of any rank"),
    Field("lower_quartile_ms", "ms", "a quarter of the ranks is below"),
    Field("median_ms", "ms", "half of the ranks is below"),
    Field("upper_quartile_ms", "ms", "a quarter of the ranks is above"),
    Field("most_ms", "ms", "the longest of any rank"),
    Field("most_on", "text", "the rank with the longest", "str", role=Role.PLACE),
)

MOST_GROUPS = 6

ALIKE = 2.0
"""Ranks of a group differ from its typical rank by at most this in each figure, in percent of the span.  It is doubled
until there are at most MOST_GROUPS."""


@dataclass(frozen=True)
class RankFigures:
    """The figures of one rank in ps.

    Attributes:
        name: as findings name it.
        rank: -1 if unknown.
        parts_ps: the span, then PARTS.
        waits_ps: waiting and held up; None where ranks were not compared.
    """

    name: str
    rank: int
    parts_ps: tuple[int, ...]
    waits_ps: tuple[float, float] | None

    def figures_ps(self) -> tuple[float, ...]:
        """In the order of FIGURES."""
        return (*self.parts_ps, *(self.waits_ps or (0.0, 0.0)))


def _table(ranks: Sequence[RankFigures]) -> F64:
    """All figures: float64 of shape (ranks, FIGURES)."""
    return np.array([rank.figures_ps() for rank in ranks], np.float64)


def spread_rows(ranks: Sequence[RankFigures]) -> Iterator[dict[str, Cell]]:
    """A row for each figure; none for a single rank."""
    if len(ranks) < 2:
        return
    shown = FIGURES if ranks[0].waits_ps is not None else FIGURES[:-2]
    for name, column in zip(shown, _table(ranks).T, strict=False):
        least, lower, median, upper, most = (round_ms(float(ps)) for ps in np.percentile(column, (0, 25, 50, 75, 100)))
        yield {
            "part": name,
            "least_ms": least,
            "lower_quartile_ms": lower,
            "median_ms": median,
            "upper_quartile_ms": upper,
            "most_ms": most,
            "most_on": ranks[int(column.argmax())].name if most > least else None,
        }


def alike_rows(ranks: Sequence[RankFigures]) -> Iterator[dict[str, Cell]]:
    """A row for each group of ranks that behave alike; none for a single rank."""
    if len(ranks) < 2:
        return
    figures = _table(ranks)
    groups = group_alike(100.0 * figures / max(float(np.median(figures[:, 0])), 1.0))
    usual = figures[groups[0]].mean(axis=0)
    for number, members in enumerate(groups, 1):
        mean = figures[members].mean(axis=0)
        yield {
            "group": number,
            "ranks": len(members),
            "members": _members_text([ranks[at] for at in sorted(members.tolist())]),
            "typical": ranks[int(members[0])].name,
            **{f"{name}_ms": round_ms(float(ps)) for name, ps in zip(FIGURES[1:], mean[1:], strict=True)},
            **({} if ranks[0].waits_ps is not None else {"waiting_ms": None, "held_up_ms": None}),
            **_difference(mean - usual, number > 1),
        }


def _difference(more_ps: F64, is_other: bool) -> dict[str, Cell]:
    """The part that differs most, the span left aside."""
    most = 1 + int(np.abs(more_ps[1:]).argmax())
    return {
        "differs_in": FIGURES[most] if is_other else None,
        "differs_ms": round_ms(float(more_ps[most])) if is_other else None,
    }


def _members_text(ranks: Sequence[RankFigures]) -> str:
    if all(rank.rank >= 0 for rank in ranks):
        return list_numbers([rank.rank for rank in ranks])
    names = ", ".join(rank.name for rank in ranks[:MOST_NAMED])
    return f"{names} and {len(ranks) - MOST_NAMED} more" if len(ranks) > MOST_NAMED else names


def describe_group(row: dict[str, Cell], first: dict[str, Cell]) -> str:
    """A group in a sentence; `first` is the largest one."""
    many = row["ranks"] != 1
    who = f"ranks {row['members']}" if many else str(row["typical"])
    if row is first:
        return f"{row['ranks']} ranks behave alike: {who}"
    more, part = row["differs_ms"], str(row["differs_in"]).replace("_", " ")
    assert isinstance(more, float)
    amount = f"{duration_text(abs(more))} {'more' if more > 0 else 'less'}"
    return f"{who} {'differ' if many else 'differs'} from these most in {part}: {amount}"


def group_alike(figures: F64) -> list[I64]:
    """Groups of rows that are alike, the largest first; the first row of each group is its typical one.

    Args:
        figures: what to compare, float64 of shape (ranks, figures), in percent.
    """
    tolerance = ALIKE
    while True:
        groups = _group(figures, tolerance)
        if len(groups) <= MOST_GROUPS:
            return sorted(groups, key=lambda group: (-len(group), int(group[0])))
        tolerance *= 2


def _group(figures: F64, tolerance: float) -> list[I64]:
    """Takes the row in the middle of those that are left, with all that are near it, until none is left."""
    left = np.arange(len(figures))
    groups: list[I64] = []
    while len(left) and len(groups) <= MOST_GROUPS:
        own = figures[left]
        typical = int(np.abs(own - np.median(own, axis=0)).max(axis=1).argmin())
        near = np.abs(own - own[typical]).max(axis=1) <= tolerance
        members = left[near & (np.arange(len(left)) != typical)]
        groups.append(np.concatenate([left[typical : typical + 1], members]))
        left = left[~near]
    return groups


def list_numbers(numbers: list[int]) -> str:
    """Ascending numbers, runs as ranges.

    >>> list_numbers([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
