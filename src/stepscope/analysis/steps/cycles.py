"""Finds unmarked steps: the repeating cycle in a sequence of named events.

A training loop repeats the same work, so over n steps nearly every name occurs a multiple of n times.

    fwd relu fwd relu loss sgd | fwd relu fwd relu loss sgd | fwd relu fwd relu loss sgd
    counts: fwd 6, relu 6, loss 3, sgd 3  ->  n = 3; "loss" and "sgd" occur once a step

A step starts at the first name that occurs once per step.  Layers repeat as well, so several readings may explain the
counts.  The finest reading whose cycles are all alike is chosen:

    embed layer layer layer layer head | embed layer layer layer layer head | ...
    n = 12 leaves embed and head unexplained, and they recur every 4th cycle: "layer" is only a part of a step
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass

LEAST_STEPS = 3  # fewer repetitions do not prove a cycle
LEAST_CONFIDENCE = 0.6
# A compiled program that a loop calls is the loop's step, however long the loop waits, logs or saves between calls.
LEAST_RHYTHM_OF_PROGRAM = 0.2
# If work outside the cycles reaches this share of a cycle, the cycles are only parts of steps.  Less is occasional
# work such as logging.
FOREIGN_SHARE = 0.2
_TIE = 0.05  # readings closer than this are equally good: the finer wins
_MOST_READINGS = 12
_LONGEST = 200_000  # events used to find the cycle


@dataclass(frozen=True)
class Cycle:
    """A repeating cycle.

    Attributes:
        anchors: int64 of shape (steps,), positions in the sequence where a step starts.
        confidence: 0 to 1: the share of events that fit into n equal steps, times the similarity of adjacent steps.
        last_is_whole: False if the sequence ends in the middle of the last step.
    """

    anchors: I64
    confidence: float
    last_is_whole: bool


@dataclass(frozen=True)
class _Reading:
    """One way to read a sequence: the name that starts each step, and how well it explains the sequence."""

    anchor: int
    confidence: float


def find_cycle(names: NDArray[np.integer], start: I64, least_rhythm: float = LEAST_CONFIDENCE) -> Cycle | None:
    """The cycle in a sequence of events, or None without a convincing one.

    Args:
        names: integers of shape (n,), 0 or larger, one per distinct name, in order of time.
        start: int64 of shape (n,), when each event starts, ascending.
        least_rhythm: 0 to 1, the regularity required if all events have one name, where only rhythm shows a cycle.
    """
    if len(names) < LEAST_STEPS:
        return None
    present = np.bincount(names) > 0
    dense: I64 = (np.cumsum(present) - 1)[names]
    head = dense[:_LONGEST]
    readings = [_read_cycle(head, start, steps) for steps in _candidate_counts(np.bincount(head))]
    best = max((reading.confidence for reading in readings), default=0.0)
    if best < (LEAST_CONFIDENCE if len(distinct(head)) > 1 else least_rhythm):
        return None
    chosen = next(reading for reading in readings if reading.confidence >= best - _TIE)
    anchors = np.flatnonzero(dense == chosen.anchor)
    return Cycle(anchors, round(chosen.confidence, 3), _last_is_whole(dense, anchors))


def _candidate_counts(counts: I64) -> list[int]:
    """Step counts that explain the name counts well enough for a closer look, finest first."""
    scored = [(_fit_share(counts, steps), steps) for steps in distinct(counts[counts >= LEAST_STEPS]).tolist()]
    good = [steps for fit, steps in sorted(scored, reverse=True)[:_MOST_READINGS] if fit >= LEAST_CONFIDENCE]
    return sorted(good, reverse=True)


def _fit_share(counts: I64, steps: int) -> float:
    """Share of events whose names occur a multiple of `steps` times, without what some steps have besides."""
    besides = np.where(_occur_besides(counts, steps), counts % steps, 0)
    return float((counts - besides)[_names_that_fit(counts, steps)].sum() / counts.sum())


def _names_that_fit(counts: I64, steps: int) -> Mask:
    per_step = np.rint(counts / steps)
    slack = np.maximum(per_step, 0.1 * steps)  # a cut cycle at either end may lack or add a round of a name
    fits: Mask = (per_step >= 1) & (np.abs(counts - per_step * steps) <= slack)
    return fits | _occur_besides(counts, steps)


def _occur_besides(counts: I64, steps: int) -> Mask:
    """Which names each step has as often and some a few times more, such as those that write a log line."""
    more = counts % steps
    besides: Mask = (
        (counts >= steps) & (more > np.maximum(counts // steps, 0.1 * steps)) & (more < FOREIGN_SHARE * counts)
    )
    return besides


def _read_cycle(names: I64, start: I64, steps: int) -> _Reading:
    counts = np.bincount(names)
    once = np.flatnonzero(counts == steps)
    first_of = np.full(len(counts), len(names))
    np.minimum.at(first_of, names, np.arange(len(names)))
    anchor = int(once[np.argmin(first_of[once])])
    anchors = np.flatnonzero(names == anchor)
    step = np.searchsorted(anchors, np.arange(len(names)), side="right")  # 0 is before the first
    fits = _names_that_fit(counts, steps)
    if len(anchors) < LEAST_STEPS or _is_part(step, ~fits[names] & (counts[names] >= LEAST_STEPS)):
        return _Reading(anchor, 0.0)
    confidence = _fit_share(counts, steps) * _similarity(names, step, fits)
    if len(counts) == 1:  # with one name only its rhythm can show a cycle
        confidence *= _regularity(start[anchors])
    return _Reading(anchor, confidence)


def _is_part(step: I64, foreign: Mask) -> bool:
    """Whether foreign work recurs between cycles, in amounts too large for occasional extras."""
    places = distinct(step[foreign & (step > 0)])
    usual = float(np.median(np.bincount(step[step > 0])[1:]))
    return len(places) >= 2 and int(foreign.sum()) / len(places) >= FOREIGN_SHARE * usual


def _similarity(names: I64, step: I64, fits: Mask) -> float:
    """How similar adjacent steps are, 0 to 1: shared events over all events, in any order.

    Large steps weigh more, so that layers taken for steps are exposed by the one that also holds everything else.  The
    events before the first step and those of the last may be cut, so there only surplus events count.
    """
    n_names, last = len(fits), int(step[-1])
    key, count = np.unique(step * n_names + names, return_counts=True)
    at = np.minimum(np.searchsorted(key, key + n_names), len(key) - 1)
    common = np.where(key[at] == key + n_names, np.minimum(count, count[at]), 0)
    shared = np.bincount(key // n_names, common, minlength=last + 1)  # by each step with the next
    size, fitting = np.bincount(step, minlength=last + 1), np.bincount(step, fits[names], minlength=last + 1)
    whole = slice(1, last - 1)
    together = (size[:-1] + size[1:] - shared[:-1])[whole].sum()
    too_much = max(0, fitting[0] - shared[0]) + max(0, fitting[last] - shared[last - 1])
    return float(shared[whole].sum() / max(together + too_much, 1))


def _last_is_whole(names: I64, anchors: I64) -> bool:
    """Whether the last step has nearly the same events as the one before it."""
    n_names = int(names.max()) + 1
    last = np.bincount(names[anchors[-1] :], minlength=n_names)
    before = np.bincount(names[anchors[-2] : anchors[-1]], minlength=n_names)
    return bool(np.minimum(last, before).sum() >= 0.9 * np.maximum(last, before).sum())


def _regularity(start: I64) -> float:
    """How regular a rhythm is, 0 to 1: the share of distances close to the median, reduced by the quartile spread.

    A few outliers do little harm: the first step warms up, another saves.
    """
    distances = np.diff(start)
    low, median, high = np.percentile(distances, (25, 50, 75))
    if median <= 0:
        return 0.0
    usual = np.mean((distances >= median / 2) & (distances <= 2 * median))
    return float(usual / (1 + (high - low) / 2 / median))
