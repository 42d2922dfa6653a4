"""The time from the start of a step to the start of the next, on both sides: mean, spread and breakdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from stepscope.analysis.compare.differences import (
    DifferenceTable,
    amount,
    change_cells,
    find_differences,
    make_table,
    mean_of,
)
from stepscope.analysis.compare.sides import Side
from stepscope.analysis.compare.welch import sample_of
from stepscope.report import Comparable, Field, Role, round_6

_NO_STEPS = "no steps on one side or on both"
_PLACES = (
    ("shortest", 0.0),
    ("a quarter are shorter than", 0.25),
    ("median", 0.5),
    ("a quarter are longer than", 0.75),
    ("one in ten is longer than", 0.9),
    ("longest", 1.0),
)


# -- times and gaps ------------------------------------------------------------------------------------------------


def step_times(side: Side) -> list[float]:
    """The time from each step to the next in ms.

    The last step has no next one.  It gets the mean gap of the others, so that the mean covers steps and gaps.
    """
    gaps = step_gaps(side)
    mean_gap = mean_of(gap for gap in gaps if gap is not None)
    return [
        amount(row["duration_ms"]) + (mean_gap if gap is None else gap)
        for (_, row), gap in zip(side.complete_steps, gaps, strict=True)
    ]


def step_gaps(side: Side) -> tuple[float | None, ...]:
    """The time in ms from the end of each compared step to the start of the next, on the host on which it is longest.

    None after the last step and where steps in between were left out.  0 if the steps are not those of one thread.
    """
    if side.overview.step_time_ms["between_steps_percent"] is None:
        return (0.0,) * len(side.complete_steps)
    by_host = _steps_by_host(side.steps.rows)
    gaps = {host: _find_gaps(rows) for host, rows in by_host.items()}
    return tuple(gaps[str(row["slowest_host"])][at] for at, row in side.complete_steps)


def _steps_by_host(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    ordered = sorted(rows, key=lambda row: str(row["host"]))  # stable: the steps of a host keep their order
    return {host: list(own) for host, own in groupby(ordered, key=lambda row: str(row["host"]))}


def _find_gaps(rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """The time from the end of each step of a host to the start of the next.

    None after the last one, and where the step numbers show that others lie in between: they are equal, or differ by
    more than those of neighbours.
    """
    differences = [following["step"] - step["step"] for step, following in pairwise(rows)]
    stride = min((difference for difference in differences if difference > 0), default=0)
    gaps = [
        max(round_6(after["start_ms"] - row["start_ms"] - row["duration_ms"]), 0.0) for row, after in pairwise(rows)
    ]
    known = [difference < 0 or 0 < difference <= stride for difference in differences]
    return [*(gap if here else None for gap, here in zip(gaps, known, strict=True)), None]


# -- where the time goes -------------------------------------------------------------------------------------------


def _causes(side: Side) -> Iterator[dict[str, Any]]:
    """The median step by cause of its account, with the time in every usual step; the causes add up to that step."""
    path = side.path_of_steps
    for row in path.parts:
        samples = [amount(step[f"{row['part']}_ms"]) for step in path.usual_steps]
        yield {"cause": row["part"], "ms": row["ms"], "samples": samples, "meaning": row["meaning"]}


_BREAKDOWN = Comparable(
    id="breakdown",
    title="Account of the median step",
    keys=(
        Field(
            "cause",
            "text",
            "what the step waits for; the differences add up to that of the median steps",
            "str",
            role=Role.TERM,
        ),
    ),
    measure=Field("ms", "ms", "time of the median step, from its start to the start of the next"),
    rows=_causes,
    samples="samples",
    is_ordered=True,
    carried=(Field("meaning", "text", "when a moment has that cause", "str", role=Role.MEANING),),
    empty=_NO_STEPS,
)
_SPREAD = Comparable(
    id="spread",
    title="Times from step to step",
    keys=(Field("step_time", "text", "which of the times from step to step", "str", role=Role.LABEL),),
    measure=Field("ms", "ms", "the time"),
    is_neutral=True,
    is_ordered=True,
    empty=_NO_STEPS,
)


def compare_breakdowns(before: Side, after: Side, within_noise: bool) -> DifferenceTable:
    """How the median step differs by cause of its account; no rows if a side has no steps."""
    if not (before.complete_steps and after.complete_steps):
        return make_table("overview", _BREAKDOWN, ())
    return find_differences("overview", _BREAKDOWN, before, after, None, within_noise)


def compare_spreads(before: Side, after: Side, _: bool) -> DifferenceTable:
    """How the spread of the times from step to step differs; no rows if a side has no steps.

    A quantile between two times is interpolated.
    """
    one, other = step_times(before), step_times(after)
    if not (one and other):
        return make_table("steps", _SPREAD, ())
    samples = sample_of(one), sample_of(other)
    figures: dict[str, tuple[float | None, float | None]] = {"mean": (samples[0].mean, samples[1].mean)}
    figures |= {name: (float(np.quantile(one, at)), float(np.quantile(other, at))) for name, at in _PLACES}
    figures |= {"standard deviation": (samples[0].std, samples[1].std)}
    rows = [{"step_time": name, **change_cells(*values, unit="ms")} for name, values in figures.items()]
    return make_table("steps", _SPREAD, rows)


STEP_TABLES = {"overview": compare_breakdowns, "steps": compare_spreads}
"""The tables that no tool declares, by the tool that they belong to: each needs the reports of several tools."""
