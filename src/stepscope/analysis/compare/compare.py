"""Two sessions side by side: did a change help, by how much, is that more than noise, and where did the time go?

What is compared is the time from the begin of a step to the begin of the next: the step, and what lies between it and
the next where the steps are those of one thread.  Of several hosts, a step is as on the host on which it lasts longest.
All differences are the session after less the session before; a row that one side lacks counts as zero there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.compare.comparable import Side, notes_of
from stepscope.analysis.compare.welch import Sample, half_width, sample_of
from stepscope.analysis.steps.breakdown import CATEGORIES, MEANING
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Figures, Prose, Report, Role, Rows, Section, number_text, round_6

BETWEEN = "between_steps"
_MEANING = {**MEANING, BETWEEN: "no step lasts: the time from a step's end to the begin of the next"}
_WORDS = {
    "output": "copies from the device",
    "input": "waits for input",
    "kernel_launch": "launches",
    "host_compute": "work on the host",
    "device_collectives": "collectives",
    "device_to_device": "copies between devices",
    "device_compute": "computation on the device",
    "other": "time in which no known work runs",
    BETWEEN: "time between steps",
}
_TWICE = 2.0  # from which ratio of step times on the sentence tells it

DIFFERENCE_FIELDS: tuple[Field, ...] = (
    Field("difference_ms", "ms", "difference of the mean step times", role=Role.CHANGE),
    Field(
        "uncertainty_ms",
        "ms",
        "half of the 95 % interval of the difference (Welch); where it is no less than the difference, that is within "
        "the noise; unknown if one side has fewer than two steps",
    ),
    Field("change_percent", "percent", "the difference as a share of the step time before", role=Role.CHANGE),
    Field("speedup", "ratio", "step time before over step time after"),
)
_CHANGES: tuple[Field, ...] = (
    Field("before_ms", "ms", "per step, before; unknown where that side has no such row"),
    Field("after_ms", "ms", "per step, after; unknown where that side has no such row"),
    Field("difference_ms", "ms", "after less before", role=Role.CHANGE),
    Field(
        "change_percent",
        "percent",
        "the difference as a share of what it was before; unknown if that was nothing",
        role=Role.CHANGE,
        label="Change",
    ),
)
_CALLS: tuple[Field, ...] = (
    Field("before_calls", "count", "how often per step, before", label="Calls before"),
    Field("after_calls", "count", "how often per step, after", label="Calls after"),
)
_STATUS = Field(
    "status",
    "text",
    "`both`, `added` if only the session after has it, `removed` if only that before",
    "str",
    role=Role.TERM,
)
BREAKDOWN_FIELDS: tuple[Field, ...] = (
    Field(
        "category",
        "text",
        "where the time goes; the differences add up to that of the step times",
        "str",
        role=Role.TERM,
    ),
    *_CHANGES,
    Field("meaning", "text", "what counts for the category", "str", role=Role.MEANING),
)
OP_FIELDS: tuple[Field, ...] = (
    Field("where", "text", "`host` or `device`", "str", role=Role.PLACE),
    Field("type", "text", "the op's type", "str", role=Role.TYPE),
    Field("name", "text", "the op; rows are of self time, over all threads and devices", "str", role=Role.NAME),
    _STATUS,
    *_CHANGES,
    *_CALLS,
)
KERNEL_FIELDS: tuple[Field, ...] = (
    Field("kernel", "text", "the kernel, whichever op launches it", "str", role=Role.NAME),
    _STATUS,
    *_CHANGES,
    *_CALLS,
)
SPREAD_FIELDS: tuple[Field, ...] = (
    Field(
        "step_time",
        "text",
        "which of the times from step to step; two captures share no steps, but have these",
        "str",
        role=Role.LABEL,
    ),
    *_CHANGES,
)
MEMORY_FIELDS: tuple[Field, ...] = (
    Field("memory", "text", "the memory; those of several hosts together", "str", role=Role.PLACE),
    Field("before_bytes", "bytes", "in use at its peak, before", "int"),
    Field("after_bytes", "bytes", "in use at its peak, after", "int"),
    Field("difference_bytes", "bytes", "after less before", "int", role=Role.CHANGE),
    Field("change_percent", "percent", "the difference as a share of what it was before", role=Role.CHANGE),
)


@dataclass(frozen=True)
class Difference:
    """How step times differ: after less before.

    Attributes:
        verdict: "faster", "slower", "within_noise", or "unknown" where a side has no steps or fewer than two.
        ms, uncertainty_ms, change_percent, speedup: see DIFFERENCE_FIELDS.
    """

    verdict: str
    ms: float | None
    uncertainty_ms: float | None
    change_percent: float | None
    speedup: float | None

    @property
    def slower_percent(self) -> float | None:
        """Percent by which the step got slower beyond the noise; 0 if it did not, None if that cannot be told."""
        if self.verdict == "unknown":
            return None
        return (self.change_percent or 0.0) if self.verdict == "slower" else 0.0


@dataclass(frozen=True, kw_only=True)
class CompareReport(Report):
    """Two sessions side by side; see the FIELDS tables of this module for the meaning of its parts.

    Attributes:
        verdict_text: the difference in one sentence.
        difference: the same in figures.
        sides: the two sessions: `side` is `before` or `after`, `run` its name, `mean_ms` and `std_ms` (n - 1) those of
            the time from step to step, `steps` how many count, `input_bound_percent` as in the overview, `first_advice`
            the title of what it says to do first.
        breakdown: time per step by category; the differences add up to that of the step times.
        spread: how the times from step to step are spread.
        rows: the ops, largest difference first; `kernels` and `memories` likewise.
        notes: why the two may not be comparable, one sentence each.
    """

    TOOL: ClassVar[str] = "compare"

    verdict_text: str
    difference: Difference
    sides: tuple[dict[str, Cell], ...]
    breakdown: tuple[dict[str, Cell], ...]
    spread: tuple[dict[str, Cell], ...]
    rows: tuple[dict[str, Cell], ...]
    kernels: tuple[dict[str, Cell], ...]
    memories: tuple[dict[str, Cell], ...]
    notes: tuple[str, ...]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "verdict": self.difference.verdict,
            "verdict_text": self.verdict_text,
            **{str(side["side"]): {key: side[key] for key in side if key != "side"} for side in self.sides},
            **self._figures(),
            "notes": list(self.notes),
            "breakdown": list(self.breakdown),
            "spread": list(self.spread),
            "rows": list(self.rows),
            "kernels": list(self.kernels),
            "memories": list(self.memories),
        }

    def sections(self) -> Sequence[Section]:
        """The verdict first, then where the time went."""
        return [
            Prose("verdict", "Verdict", (self.verdict_text,)),
            Prose("notes", "To keep in mind", self.notes),
            Prose("sides", "Steps", tuple(map(_side_line, self.sides))),
            Figures("difference", "Difference", DIFFERENCE_FIELDS, self._figures()),
            Rows("breakdown", "Breakdown of the mean step", BREAKDOWN_FIELDS, self.breakdown, empty=_NO_STEPS),
            Rows("rows", "Ops", OP_FIELDS, self.rows, empty="neither side has ops"),
            *self._if_any("kernels", "Kernels", KERNEL_FIELDS, self.kernels),
            *self._if_any("memories", "Memories at their peak", MEMORY_FIELDS, self.memories),
            *self._if_any("spread", "Times from step to step", SPREAD_FIELDS, self.spread),
        ]

    def head(self, rows: int) -> CompareReport:
        """The same report with at most so many ops and kernels."""
        return replace(self, rows=self.rows[:rows], kernels=self.kernels[:rows])

    def _figures(self) -> dict[str, Cell]:
        found = self.difference
        values: tuple[Cell, ...] = (found.ms, found.uncertainty_ms, found.change_percent, found.speedup)
        return {field.name: value for field, value in zip(DIFFERENCE_FIELDS, values, strict=True)}

    @staticmethod
    def _if_any(key: str, title: str, columns: tuple[Field, ...], rows: tuple[dict[str, Cell], ...]) -> list[Section]:
        return [Rows(key, title, columns, rows)] if rows else []


_NO_STEPS = "no steps on one side or on both"


def compare(before: Side, after: Side) -> CompareReport:
    """Lays two sessions side by side."""
    sides = before, after
    times = [_step_times(side) for side in sides]
    samples = [sample_of(each) for each in times]
    found = difference_of(*samples)
    breakdown = _breakdown(sides) if all(times) else ()
    per_step = [side.steps_of_totals for side in sides] if all(times) else [1.0, 1.0]
    return CompareReport(
        hosts=tuple(dict.fromkeys(host for side in sides for host in side.hosts)),
        warnings=_warnings(before.warnings, after.warnings),
        partial=any(side.partial for side in sides),
        verdict_text=_sentence(found, samples[0], samples[1], breakdown),
        difference=found,
        sides=tuple(_side_row(*each) for each in zip(("before", "after"), sides, samples, strict=True)),
        breakdown=breakdown,
        spread=_spread(*times) if all(times) else (),
        rows=_matched([side.ops.rows for side in sides], per_step, ("where", "type", "name"), "total_self_us"),
        kernels=_matched([side.kernels.rows for side in sides], per_step, ("kernel",), "total_us"),
        memories=_memories(sides),
        notes=notes_of(before, after),
    )


# -- step times ----------------------------------------------------------------------------------------------------


def _step_times(side: Side) -> list[float]:
    """Time from each step to the next in ms.  What follows the last step is not known: it has the mean of the others,
    so that the mean is that of the steps and of what lies between them."""
    gaps = side.gaps_ms
    mean_gap = _mean(gap for gap in gaps if gap is not None)
    return [
        _amount(row["duration_ms"]) + (mean_gap if gap is None else gap)
        for row, gap in zip(side.counted, gaps, strict=True)
    ]


def difference_of(before: Sample, after: Sample) -> Difference:
    """How the means of two samples differ, and whether by more than noise."""
    if before.mean is None or after.mean is None:
        return Difference("unknown", None, None, None, None)
    change, width = round_6(after.mean - before.mean), half_width(before, after)
    noise = None if width is None else round_6(width)  # like the difference: what is below a nanosecond is nothing
    if noise is None:
        verdict = "unknown"
    elif abs(change) <= noise:
        verdict = "within_noise"
    else:
        verdict = "faster" if change < 0 else "slower"
    return Difference(
        verdict=verdict,
        ms=change,
        uncertainty_ms=noise,
        change_percent=_share(change, before.mean),
        speedup=round(before.mean / after.mean, 4) if after.mean > 0 else None,
    )


def _sentence(found: Difference, before: Sample, after: Sample, breakdown: Sequence[Mapping[str, Cell]]) -> str:
    if before.mean is None or after.mean is None or found.ms is None or found.change_percent is None:
        lacking = [name for name, side in (("before", before), ("after", after)) if not side.mean]
        who = "neither session holds" if len(lacking) == 2 else f"the session {lacking[0]} holds no"
        return f"unknown: {who} steps to compare; mark the steps"
    times = f"{number_text(before.mean)} -> {number_text(after.mean)} ms"
    noise = None if found.uncertainty_ms is None else f"\N{PLUS-MINUS SIGN}{number_text(found.uncertainty_ms)}"
    if found.verdict == "within_noise":
        return f"within the noise: {times} ({found.change_percent:+.1f} %, {_signed(found.ms)} ms {noise})"
    text = f"{_size(found)} ({times}, {noise or 'noise unknown'})"
    if noise is None:
        text += ", which may be chance: one side has fewer than two steps"
    cause = _cause(found.ms, breakdown)
    return f"{text}: {cause}" if cause else text


def _size(found: Difference) -> str:
    """How much faster or slower."""
    if not found.ms or found.change_percent is None:
        return "no difference"
    words = f"{abs(found.change_percent):.1f} % {'faster' if found.ms < 0 else 'slower'}"
    is_much = found.speedup is not None and found.speedup >= _TWICE
    return f"{words}, {found.speedup:.2f} times as fast" if is_much else words


def _signed(value: float) -> str:
    return ("-" if value < 0 else "+") + number_text(abs(value))


def _cause(change_ms: float, breakdown: Sequence[Mapping[str, Cell]]) -> str:
    """The category that changed most in the direction in which the step time did."""
    direction = math.copysign(1.0, change_ms)
    most = max(breakdown, key=lambda row: direction * _amount(row["difference_ms"]), default=None)
    change = _amount(most["difference_ms"]) if most else 0.0
    if most is None or direction * change <= 0:
        return ""
    name = str(most["category"])
    return f"{_WORDS.get(name, name)} {'fell' if change < 0 else 'rose'} by {number_text(abs(change))} ms"


def _side_line(side: Mapping[str, Cell]) -> str:
    """One session in words; the label has the same width for both."""
    steps = "1 step" if side["steps"] == 1 else f"{side['steps']} steps"
    spread = f" \N{PLUS-MINUS SIGN} {number_text(_amount(side['std_ms']))}" if side["std_ms"] is not None else ""
    time = f"{number_text(_amount(side['mean_ms']))}{spread} ms, {steps}" if side["steps"] else "no steps"
    waits = side["input_bound_percent"]
    parts = [time, *([] if waits is None else [f"{waits:.1f} % waits for input"])]
    advice = f"; do first: {side['first_advice']}" if side["first_advice"] else ""
    return f"{side['side']:6}  {side['run']}: {', '.join(parts)}{advice}"


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


_PLACES = (
    ("shortest", 0.0),
    ("a quarter are shorter than", 0.25),
    ("median", 0.5),
    ("a quarter are longer than", 0.75),
    ("one in ten is longer than", 0.9),
    ("longest", 1.0),
)


def _spread(before: Sequence[float], after: Sequence[float]) -> tuple[dict[str, Cell], ...]:
    """Means and deviations are those of the sides; a place between two times has what is between them."""
    samples = sample_of(before), sample_of(after)
    rows: list[tuple[str, float | None, float | None]] = [("mean", samples[0].mean, samples[1].mean)]
    rows += [(name, float(np.quantile(before, at)), float(np.quantile(after, at))) for name, at in _PLACES]
    rows += [("standard deviation", samples[0].std, samples[1].std)]
    return tuple({"step_time": name, **_change(one, other, "ms")} for name, one, other in rows)


# -- where the time went -------------------------------------------------------------------------------------------


def _breakdown(sides: Sequence[Side]) -> tuple[dict[str, Cell], ...]:
    before, after = (_parts(side) for side in sides)
    rows = [
        {"category": name, **_change(before[name], after[name], "ms"), "meaning": _MEANING[name]} for name in before
    ]
    return tuple(row for row in rows if row["before_ms"] or row["after_ms"])


def _parts(side: Side) -> dict[str, float]:
    parts = {name: _mean(_amount(row[name]) for row in side.counted) for name in CATEGORIES}
    return parts | {BETWEEN: _mean(gap for gap in side.gaps_ms if gap is not None)}


def _matched(
    both: Sequence[Iterable[Mapping[str, Cell]]], per_step: Sequence[float], keys: tuple[str, ...], measure: str
) -> tuple[dict[str, Cell], ...]:
    """Rows with equal keys of both sides, in ms and calls per step, largest difference first."""
    before, after = (_sums(rows, keys, measure, count) for rows, count in zip(both, per_step, strict=True))
    rows: list[dict[str, Cell]] = []
    for key in dict.fromkeys((*before, *after)):
        one, other = before.get(key), after.get(key)
        if not any(time for time, _ in (one or (0.0, 0.0), other or (0.0, 0.0))):
            continue
        status = "added" if one is None else "removed" if other is None else "both"
        times = _change(one and one[0], other and other[0], "ms")
        calls = {"before_calls": one and round_6(one[1]), "after_calls": other and round_6(other[1])}
        rows.append({**dict(zip(keys, key, strict=True)), "status": status, **times, **calls})
    rows.sort(key=lambda row: (-abs(_amount(row["difference_ms"])), *(str(row[key]) for key in keys)))
    return tuple(rows)


def _sums(
    rows: Iterable[Mapping[str, Cell]], keys: tuple[str, ...], measure: str, steps: float
) -> dict[tuple[Cell, ...], tuple[float, float]]:
    """Time in ms and calls per step by key."""
    sums: dict[tuple[Cell, ...], tuple[float, float]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        time, calls = sums.get(key, (0.0, 0.0))
        sums[key] = time + _amount(row[measure]) / 1e3 / steps, calls + _amount(row["occurrences"]) / steps
    return sums


def _memories(sides: Sequence[Side]) -> tuple[dict[str, Cell], ...]:
    before, after = (_peaks(side) for side in sides)
    rows = [{"memory": key, **_change(before.get(key), after.get(key), "bytes")} for key in before | after]
    return tuple(sorted(rows, key=lambda row: (-abs(_amount(row["difference_bytes"])), str(row["memory"]))))


def _peaks(side: Side) -> dict[str, int]:
    peaks: dict[str, int] = {}
    for memory in side.memory.memories:
        full = memory["peak"]["in_use_bytes"]
        if full is not None:
            peaks[memory["id"]] = peaks.get(memory["id"], 0) + full
    return peaks


def _change(before: float | None, after: float | None, unit: str) -> dict[str, Cell]:
    """Both values, their difference and its share; bytes are whole, times have six decimals."""
    if unit != "bytes":
        before, after = (None if value is None else round_6(value) for value in (before, after))
    change = (after or 0) - (before or 0)
    values: tuple[Cell, ...] = (before, after, change if unit == "bytes" else round_6(change))
    cells = dict(zip((f"before_{unit}", f"after_{unit}", f"difference_{unit}"), values, strict=True))
    return {**cells, "change_percent": None if after is None else _share(change, before or 0.0)}


def _share(change: float, whole: float) -> float | None:
    return round(100 * change / whole, 4) if whole > 0 else None


def _amount(value: Cell) -> float:
    """A figure to add up, where unknown and nothing are alike."""
    return float(value) if isinstance(value, int | float) else 0.0


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else 0.0


def _warnings(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """What is to be known of the recordings, and of which; once where it is the same of both."""
    return (
        *(f"{'both' if text in after else 'before'}: {text}" for text in before),
        *(f"after: {text}" for text in after if text not in before),
    )
