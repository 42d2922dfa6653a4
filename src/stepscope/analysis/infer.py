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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

LEAST_STEPS = 3  # fewer repetitions than this prove no cycle
LEAST_CONFIDENCE = 0.6
# Work outside the cycles that amounts to this share of a cycle says that the cycles are parts of something larger;
# less is what a loop does now and then: it logs, or counts.
FOREIGN_SHARE = 0.25
_TIE = 0.02  # readings closer than this are equally good: then the finer is taken
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


def find_cycle(names: NDArray[np.integer], start: I64) -> Cycle | None:
    """The cycle in a sequence of events, or None if there is none to speak of.

    Args:
        names: integers of shape (n,), 0 or larger, equal for equal names, in order of time.
        start: int64 of shape (n,), when each event starts, ascending.
    """
    if len(names) < LEAST_STEPS:
        return None
    present = np.bincount(names) > 0
    names = (np.cumsum(present) - 1)[names]
    head = names[:_LONGEST]
    readings = [_read(head, start, steps, fit) for steps, fit in _candidates(np.bincount(head))]
    best = max((reading.confidence for reading in readings), default=0.0)
    if best < LEAST_CONFIDENCE:
        return None
    chosen = next(reading for reading in readings if reading.confidence >= best - _TIE)
    anchors = np.flatnonzero(names == chosen.anchor)
    return Cycle(anchors, round(chosen.confidence, 3), _last_is_whole(names, anchors))


def _candidates(counts: I64) -> list[tuple[int, float]]:
    """Numbers of steps that explain the counts about equally well, finest first, with the share that they explain."""
    total = counts.sum()
    scored = [
        (steps, float(counts[_fits(counts, steps)].sum() / total))
        for steps in np.unique(counts[counts >= LEAST_STEPS])[::-1].tolist()
    ]
    best = max((score for _, score in scored), default=0.0)
    good = [(steps, score) for steps, score in scored if score >= best - _TIE]
    return [(steps, score) for steps, score in good if not _is_part(counts, steps)] or good[-1:]


def _fits(counts: I64, steps: int) -> NDArray[np.bool_]:
    per_step = np.rint(counts / steps)
    slack = np.minimum(per_step, 0.15 * steps)  # a cycle cut at either end lacks or adds one round of a name
    return (per_step >= 1) & (np.abs(counts - per_step * steps) <= slack)


def _is_part(counts: I64, steps: int) -> bool:
    """Whether what `steps` cycles leave unexplained repeats by itself and is too much for an occasional extra."""
    fits = _fits(counts, steps)
    rest = counts[~fits & (counts >= LEAST_STEPS) & (counts < steps)]
    return len(rest) > 0 and rest.sum() / rest.min() >= FOREIGN_SHARE * counts[fits].sum() / steps


def _read(names: I64, start: I64, steps: int, fit: float) -> _Reading:
    counts = np.bincount(names)
    once = np.flatnonzero(np.abs(counts - steps) <= 1)
    first_of = np.full(len(counts), len(names))
    np.minimum.at(first_of, names, np.arange(len(names)))
    anchor = int(once[np.argmin(first_of[once])])
    anchors = np.flatnonzero(names == anchor)
    if len(anchors) < LEAST_STEPS:
        return _Reading(anchor, 0.0)
    confidence = fit * _likeness(names, anchors)
    if len(counts) == 1:  # one name alone is always "the same again": then only its rhythm can tell
        confidence *= _regularity(start[anchors])
    return _Reading(anchor, confidence)


def _likeness(names: I64, anchors: I64) -> float:
    """How alike each step is to the next, 0 to 1: shared events over all events, whatever their order.

    Large steps weigh more: where layers are taken for steps, the one that holds all the rest gives them away.  The
    last step is left out, for it may be cut.
    """
    n_names = int(names.max()) + 1
    inside = slice(anchors[0], anchors[-1])
    step = np.repeat(np.arange(len(anchors) - 1), np.diff(anchors))
    key, count = np.unique(step * n_names + names[inside], return_counts=True)
    at = np.minimum(np.searchsorted(key, key + n_names), len(key) - 1)
    shared = int(np.minimum(count, count[at])[key[at] == key + n_names].sum())
    sizes = np.diff(anchors)
    larger = int(sizes[:-1].sum() + sizes[1:].sum()) - shared  # of both steps together, as a multiset
    return shared / larger if larger else 1.0


def _last_is_whole(names: I64, anchors: I64) -> bool:
    """Whether the last step holds nearly all that the one before it holds, and little else."""
    n_names = int(names.max()) + 1
    last = np.bincount(names[anchors[-1] :], minlength=n_names)
    before = np.bincount(names[anchors[-2] : anchors[-1]], minlength=n_names)
    return bool(np.minimum(last, before).sum() >= 0.9 * np.maximum(last, before).sum())


def _regularity(start: I64) -> float:
    """1 for equal distances, towards 0 as their standard deviation exceeds their mean."""
    distances = np.diff(start)
    mean = float(distances.mean())
    return 1.0 / (1.0 + float(distances.std()) / mean) if mean > 0 else 0.0
