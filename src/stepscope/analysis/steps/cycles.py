"""Finds steps that nobody marked: the repeating cycle in a sequence of named events.

A training loop does the same things again and again, so over n steps nearly every name occurs a multiple of n times.

    fwd relu fwd relu loss sgd | fwd relu fwd relu loss sgd | fwd relu fwd relu loss sgd
    counts: fwd 6, relu 6, loss 3, sgd 3  ->  n = 3; "loss" and "sgd" occur once a step

The first name that occurs once a step is where a step begins.  Layers repeat as well, so several readings may explain
the counts; the finest whose cycles are all alike is taken:

    embed layer layer layer layer head | embed layer layer layer layer head | ...
    n = 12 leaves embed and head unexplained, and they return every 4th cycle: "layer" is a part of something larger
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass

LEAST_STEPS = 3  # fewer repetitions than this prove no cycle
LEAST_CONFIDENCE = 0.6
# A program that the user compiled and a loop calls is the loop's step, however long the loop waits, logs or saves
# between two calls.
LEAST_RHYTHM_OF_PROGRAM = 0.2
# Work outside the cycles that amounts to this share of a cycle says that the cycles are parts of something larger;
# less is what a loop does now and then: it logs, or counts.
FOREIGN_SHARE = 0.2
_TIE = 0.05  # readings closer than this are equally good: then the finer is taken
_MOST_READINGS = 12
_LONGEST = 200_000  # events from which the cycle is learnt


@dataclass(frozen=True)
class Cycle:
    """A repeating cycle.

    Attributes:
        anchors: int64 of shape (steps,), positions in the sequence where a step begins.
        confidence: 0 to 1: the share of events that fit into n equal steps times how alike neighbouring steps are.
        last_is_whole: False if the sequence ends in the middle of the last step.
    """

    anchors: I64
    confidence: float
    last_is_whole: bool


@dataclass(frozen=True)
class _Reading:
    """One way to read a sequence: the name with which each step begins, and how well that explains it."""

    anchor: int
    confidence: float


def find_cycle(names: NDArray[np.integer], start: I64, least_rhythm: float = LEAST_CONFIDENCE) -> Cycle | None:
    """The cycle in a sequence of events, or None if there is none to speak of.

    Args:
        names: integers of shape (n,), 0 or larger, equal for equal names, in order of time.
        start: int64 of shape (n,), when each event starts, ascending.
        least_rhythm: 0 to 1, how regular the events have to be where all have one name, so that nothing else can tell.
    """
    if len(names) < LEAST_STEPS:
        return None
    present = np.bincount(names) > 0
    dense: I64 = (np.cumsum(present) - 1)[names]
    head = dense[:_LONGEST]
    readings = [_read(head, start, steps) for steps in _candidates(np.bincount(head))]
    best = max((reading.confidence for reading in readings), default=0.0)
    if best < (LEAST_CONFIDENCE if len(np.unique(head)) > 1 else least_rhythm):
        return None
    chosen = next(reading for reading in readings if reading.confidence >= best - _TIE)
    anchors = np.flatnonzero(dense == chosen.anchor)
    return Cycle(anchors, round(chosen.confidence, 3), _last_is_whole(dense, anchors))


def _candidates(counts: I64) -> list[int]:
    """Numbers of steps that explain the counts well enough for a closer look, finest first."""
    scored = [(_fit(counts, steps), steps) for steps in np.unique(counts[counts >= LEAST_STEPS]).tolist()]
    good = [steps for fit, steps in sorted(scored, reverse=True)[:_MOST_READINGS] if fit >= LEAST_CONFIDENCE]
    return sorted(good, reverse=True)


def _fit(counts: I64, steps: int) -> float:
    """The share of events whose names occur a multiple of `steps` times."""
    return float(counts[_fits(counts, steps)].sum() / counts.sum())


def _fits(counts: I64, steps: int) -> Mask:
    per_step = np.rint(counts / steps)
    slack = np.maximum(per_step, 0.1 * steps)  # a cycle cut at either end lacks or adds a round of a name
    fits: Mask = (per_step >= 1) & (np.abs(counts - per_step * steps) <= slack)
    return fits


def _read(names: I64, start: I64, steps: int) -> _Reading:
    counts = np.bincount(names)
    once = np.flatnonzero(counts == steps)
    first_of = np.full(len(counts), len(names))
    np.minimum.at(first_of, names, np.arange(len(names)))
    anchor = int(once[np.argmin(first_of[once])])
    anchors = np.flatnonzero(names == anchor)
    step = np.searchsorted(anchors, np.arange(len(names)), side="right")  # 0 lies before the first
    fits = _fits(counts, steps)
    if len(anchors) < LEAST_STEPS or _is_part(step, ~fits[names] & (counts[names] >= LEAST_STEPS)):
        return _Reading(anchor, 0.0)
    confidence = _fit(counts, steps) * _likeness(names, step, fits)
    if len(counts) == 1:  # one name alone is always "the same again": then only its rhythm can tell
        confidence *= _regularity(start[anchors])
    return _Reading(anchor, confidence)


def _is_part(step: I64, foreign: Mask) -> bool:
    """Whether foreign work comes again and again between cycles, too much of it for an occasional extra."""
    places = np.unique(step[foreign & (step > 0)])
    usual = float(np.median(np.bincount(step[step > 0])[1:]))
    return len(places) >= 2 and int(foreign.sum()) / len(places) >= FOREIGN_SHARE * usual


def _likeness(names: I64, step: I64, fits: Mask) -> float:
    """How alike each step is to the next, 0 to 1: shared events over all events, whatever their order.

    Large steps weigh more: where layers are taken for steps, the one that holds all the rest gives them away.  What
    lies before the first step, and the last one, may be cut, so only what they hold too much counts.
    """
    n_names, last = len(fits), int(step[-1])
    key, count = np.unique(step * n_names + names, return_counts=True)
    at = np.minimum(np.searchsorted(key, key + n_names), len(key) - 1)
    common = np.where(key[at] == key + n_names, np.minimum(count, count[at]), 0)
    shared = np.bincount(key // n_names, common, minlength=last + 1)  # of each step with the next
    size, fitting = np.bincount(step, minlength=last + 1), np.bincount(step, fits[names], minlength=last + 1)
    whole = slice(1, last - 1)
    together = (size[:-1] + size[1:] - shared[:-1])[whole].sum()
    too_much = max(0, fitting[0] - shared[0]) + max(0, fitting[last] - shared[last - 1])
    return float(shared[whole].sum() / max(together + too_much, 1))


def _last_is_whole(names: I64, anchors: I64) -> bool:
    """Whether the last step holds nearly all that the one before it holds, and little else."""
    n_names = int(names.max()) + 1
    last = np.bincount(names[anchors[-1] :], minlength=n_names)
    before = np.bincount(names[anchors[-2] : anchors[-1]], minlength=n_names)
    return bool(np.minimum(last, before).sum() >= 0.9 * np.maximum(last, before).sum())


def _regularity(start: I64) -> float:
    """How regular a rhythm is, 0 to 1: the share of distances that are about as long as the median, less the further
    the quartiles lie from it.  A few may be anything: the first step warms up, another saves."""
    distances = np.diff(start)
    low, median, high = np.percentile(distances, (25, 50, 75))
    if median <= 0:
        return 0.0
    usual = np.mean((distances >= median / 2) & (distances <= 2 * median))
    return float(usual / (1 + (high - low) / 2 / median))
