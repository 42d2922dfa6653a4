"""The time from the start of a step to the start of the next, on both sides: mean, spread and breakdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stepscope.analysis.account.causes import MEANING
from stepscope.analysis.compare.differences import DifferenceTable, change_cells, find_differences, make_table
from stepscope.analysis.compare.sides import Side
from stepscope.analysis.compare.welch import sample_of
from stepscope.report import Comparable, Field, Role, amount

_NO_STEPS = "no steps on one side or on both"
_PLACES = (
    ("shortest", 0.0),
    ("25th percentile", 0.25),
    ("median", 0.5),
    ("75th percentile", 0.75),
    ("90th percentile", 0.9),
    ("longest", 1.0),
)


def step_times(side: Side) -> list[float]:
    """The time of each usual step in ms, from its start to the start of the next, or that of each batch in it."""
    return [amount(row["duration_ms"]) / side.divisor for row in side.usual_steps]


# -- where the time goes -------------------------------------------------------------------------------------------


def _causes(side: Side) -> Iterator[dict[str, Any]]:
    """The mean step by cause, with the time in every usual step; the causes add up to the mean of the verdict."""
    found: list[dict[str, Any]] = []
    for cause, meaning in MEANING.items():
        name = cause.name.lower()
        samples = [amount(step[f"{name}_ms"]) / side.divisor for step in side.usual_steps]
        mean = sum(samples) / max(len(samples), 1)
        found.append({"cause": name, "ms": mean, "samples": samples, "meaning": meaning})
    yield from sorted(found, key=lambda row: -row["ms"])


_BREAKDOWN = Comparable(
    id="breakdown",
    title="Account of the mean step",
    keys=(
        Field(
            "cause",
            "text",
            "what the step waits for; the differences add up to that of the mean steps",
            role=Role.TERM,
        ),
    ),
    measure=Field("ms", "ms", "time of the mean step, from its start to the start of the next"),
    rows=_causes,
    samples="samples",
    is_ordered=True,
    carried=(Field("meaning", "text", "when a moment has that cause", role=Role.MEANING),),
    empty=_NO_STEPS,
)
_SPREAD = Comparable(
    id="spread",
    title="Times from step to step",
    keys=(Field("step_time", "text", "which of the times from step to step", role=Role.LABEL),),
    measure=Field("ms", "ms", "the time"),
    is_neutral=True,
    is_ordered=True,
    empty=_NO_STEPS,
)


def compare_breakdowns(before: Side, after: Side, within_noise: bool) -> DifferenceTable:
    """How the mean step differs by cause of its account; no rows if a side has no steps."""
    if not (before.usual_steps and after.usual_steps):
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
