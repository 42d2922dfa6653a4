"""After how many steps a block shows nothing any more of the block before it.

Batches lie ready, a pipeline fills its buffers again, work is queued, workers take processors: how long such things
last follows from the program, and nobody has to know.  The mean course of all blocks of a kind, step by step after the
switch, starts differently from how it goes on.  The marginal standard error rule finds where the start ends: what is
left after it has the smallest standard error of its mean (White: An effective truncation heuristic for bias reduction
in simulation output, Simulation 69, 1997; at most half of the course is cut, as there).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

FEWEST = 2  # steps that are always left out: one began before the block, one may still use what that left


def find_settled(blocks: Sequence[Sequence[float]]) -> int:
    """The first step that counts, the same for blocks of one kind.

    >>> find_settled([[9, 9, 9, 9, 5, 5, 5, 5, 5, 5, 5, 5], [9, 9, 9, 9, 5, 5, 5, 5, 5, 5, 5, 5]])
    4
    """
    course = mean_course(blocks)
    errors = {}
    total = squares = 0.0
    for at in range(len(course) - 1, -1, -1):
        total, squares, count = total + course[at], squares + course[at] ** 2, len(course) - at
        if at <= len(course) / 2:
            errors[at] = max(squares - total**2 / count, 0.0) / count**2
    best = min(errors, key=lambda at: (errors[at], at), default=0)
    return min(max(best, FEWEST), max(len(course) - 1, 0))


def mean_course(blocks: Sequence[Sequence[float]]) -> list[float]:
    """The mean of the first steps of blocks, of the second ones, and so on, as far as all blocks go."""
    return [fmean(steps) for steps in zip(*blocks, strict=False)]


def halves_of(block: Sequence[float], start: int) -> float:
    """The logarithm of what steps take in the first half of those from `start`, over those of the second half."""
    half = max((len(block) - start) // 2, 1)
    return math.log(max(fmean(block[start : start + half]), 1e-9) / max(fmean(block[-half:]), 1e-9))
