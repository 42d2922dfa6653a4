"""Finds steps that nobody marked: the repeating cycle in a sequence of named events.

A training loop does the same things again and again, so over n steps nearly every name occurs a multiple of n times.

    fwd relu fwd relu loss sgd | fwd relu fwd relu loss sgd | fwd relu fwd relu loss sgd
    counts: fwd 6, relu 6, loss 3, sgd 3  ->  n = 3; "loss" and "sgd" occur once a step

The first name that occurs once a step is where a step begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

LEAST_STEPS = 3  # fewer repetitions than this prove no cycle
LEAST_CONFIDENCE = 0.6
_TIE = 0.02  # scores closer than this are equal: then more steps are the better reading
_LONGEST = 200_000  # events looked at
_MOST_CELLS = 20_000_000  # of the table that compares neighbouring steps


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


def find_cycle(names: NDArray[np.integer], start: I64) -> Cycle | None:
    """The cycle in a sequence of events, or None if there is none to speak of.

    Args:
        names: integers of shape (n,), equal for equal names, in order of time.
        start: int64 of shape (n,), when each event starts, ascending.
    """
    names = np.unique(names[:_LONGEST], return_inverse=True)[1].reshape(-1)
    if len(names) < LEAST_STEPS:
        return None
    counts = np.bincount(names)
    steps, fit = _count_steps(counts)
    once = np.flatnonzero(np.abs(counts - steps) <= 1)
    if steps < LEAST_STEPS or not len(once):
        return None
    first_of = np.full(len(counts), len(names))
    np.minimum.at(first_of, names, np.arange(len(names)))
    anchors = np.flatnonzero(names == once[np.argmin(first_of[once])])
    alike = _likeness(names, anchors, len(counts))
    last_is_whole = len(alike) < 2 or alike[-1] >= 0.9 * float(np.median(alike[:-1]))
    body = alike if last_is_whole else alike[:-1]
    confidence = fit * float(np.mean(body)) if len(body) else 0.0
    if len(counts) == 1:  # one name alone is always "the same again": then only its rhythm can tell
        confidence *= _regularity(start[anchors])
    if len(anchors) < LEAST_STEPS or confidence < LEAST_CONFIDENCE:
        return None
    return Cycle(anchors, round(confidence, 3), bool(last_is_whole))


def _count_steps(counts: I64) -> tuple[int, float]:
    """The number of steps that explains the counts best, and the share of events that it explains."""
    total = counts.sum()
    candidates = np.unique(counts[counts >= LEAST_STEPS])
    if not len(candidates):
        return 0, 0.0
    scores = []
    for steps in candidates.tolist():
        per_step = np.rint(counts / steps)
        slack = np.minimum(per_step, 0.15 * steps)  # a cycle cut at either end lacks or adds one round of a name
        fits = (per_step >= 1) & (np.abs(counts - per_step * steps) <= slack)
        scores.append(counts[fits].sum() / total)
    best = max(scores)
    chosen = max(row for row, score in enumerate(scores) if score >= best - _TIE)
    return int(candidates[chosen]), float(scores[chosen])


def _likeness(names: I64, anchors: I64, n_names: int) -> NDArray[np.float64]:
    """How alike each step is to the next, 0 to 1: shared names over all names, counted with multiplicity."""
    step = np.searchsorted(anchors, np.arange(len(names)), side="right") - 1
    inside = step >= 0
    n_steps = min(len(anchors), max(2, _MOST_CELLS // max(n_names, 1)))
    inside &= step < n_steps
    table = np.bincount(step[inside] * n_names + names[inside], minlength=n_steps * n_names).reshape(n_steps, n_names)
    shared = np.minimum(table[:-1], table[1:]).sum(axis=1)
    return shared / np.maximum(np.maximum(table[:-1], table[1:]).sum(axis=1), 1)


def _regularity(start: I64) -> float:
    """1 for equal distances, towards 0 as their standard deviation exceeds their mean."""
    distances = np.diff(start)
    mean = float(distances.mean())
    return 1.0 / (1.0 + float(distances.std()) / mean) if mean > 0 else 0.0
