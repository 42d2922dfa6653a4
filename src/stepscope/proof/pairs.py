"""What pairs of blocks say: a plain one, and one with a change, and after how many steps a block shows nothing any more
of the block before it.

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
from typing import NamedTuple

from stepscope.proof.estimate import estimate
from stepscope.proof.plan import CLOSE_GAIN
from stepscope.proof.record import Estimate
from stepscope.records import dataclass

_CLEARLY_QUICKER = 0.8  # what a change of the machine's load does to a step is rarely more
FEWEST = 2  # steps that are always left out: one began before the block, one may still use what that left


class Block(NamedTuple):
    """Steps that followed each other, from the switch on.

    Attributes:
        steps: how long each took, in seconds.
        delays: how long the delays in each took.
        queued_s: for how long their thread waited in all for a processor that others used.
        left_s: how long devices then still worked on what the steps had started.
    """

    steps: Sequence[float]
    delays: Sequence[float] = ()
    queued_s: float = 0.0
    left_s: float = 0.0

    @property
    def own_steps(self) -> list[float]:
        """How long each took without such waits, of which each has the same part."""
        part = 1 - min(self.queued_s / max(sum(self.steps), 1e-9), 1.0)
        return [part * step for step in self.steps]


class Pair(NamedTuple):
    """Two neighbouring blocks."""

    plain: Block
    changed: Block


@dataclass(frozen=True)
class PairsFinding:
    """What pairs say.

    Attributes:
        found: the gain, or the sensitivity; None if there is none.
        plain_s: a plain step.
        delay_s: how much delays took in a changed one, with what the change itself costs.
        is_settled: whether blocks are long enough: they end as they go on, and as the program went before.
        steps: how many were run.
    """

    found: Estimate | None
    plain_s: float
    delay_s: float
    is_settled: bool
    steps: int


def compare_pairs(pairs: Sequence[Pair], is_delay: bool, cost_s: float, usual_s: float) -> PairsFinding:
    """Compares the settled parts of blocks: a sensitivity for delays, else a gain.

    Steps with delays are compared without the time in which their thread waited for a processor.

    Args:
        pairs: one at least, in order of time.
        cost_s: what the change itself takes in a step.
        usual_s: a plain step before anything was changed.
    """
    plain, changed = (_Side(blocks, is_delay) for blocks in zip(*pairs, strict=True))
    delays = [cost_s + fmean(pair.changed.delays[changed.start :]) for pair in pairs]
    means = list(zip(plain.means, changed.means, delays, strict=True))
    if is_delay:
        found = estimate([(long - short) / delay for short, long, delay in means if delay > cost_s])
    else:
        found = estimate_ratio([(long, max(short - cost_s, 1e-9)) for long, short, _ in means])
    plain_s = fmean(plain.means)
    is_settled = plain.is_settled and changed.is_settled and plain_s > _CLEARLY_QUICKER * usual_s
    steps = sum(len(pair.plain.steps) + len(pair.changed.steps) for pair in pairs)
    return PairsFinding(found, plain_s, fmean(delays), is_settled, steps)


class _Side:
    """The blocks of one kind.

    Args:
        is_own: their steps count without waits for a core.

    Attributes:
        start: the first step that counts.
        means: of each block the mean of those, with the part of each in the work that was left.
    """

    def __init__(self, blocks: Sequence[Block], is_own: bool) -> None:
        steps = [block.own_steps if is_own else block.steps for block in blocks]
        self.start = find_settled(steps)
        left = [block.left_s / len(block.steps) for block in blocks]
        self.means = [fmean(each[self.start :]) + part for each, part in zip(steps, left, strict=True)]
        self._halves = [_compare_halves(each, self.start) for each in steps]

    @property
    def is_settled(self) -> bool:
        """Whether both halves of what counts are alike, as far as one can see, within what a gain is measured to."""
        found = estimate(self._halves)
        return found is None or found.least - CLOSE_GAIN <= 0 <= found.most + CLOSE_GAIN


def estimate_ratio(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """The centre of ratios, first over second, by their logarithms, since noise stretches ratios to one side only."""
    found = estimate([math.log(one / other) for one, other in pairs])
    if found is None:
        return None
    return Estimate(math.exp(found.value), math.exp(found.least), math.exp(found.most), found.pairs)


def find_settled(blocks: Sequence[Sequence[float]]) -> int:
    """The first step that counts, the same for blocks of one kind.

    >>> find_settled([[9, 9, 9, 9, 5, 5, 5, 5, 5, 5, 5, 5], [9, 9, 9, 9, 5, 5, 5, 5, 5, 5, 5, 5]])
    4
    """
    course = [fmean(steps) for steps in zip(*blocks, strict=False)]  # as far as all blocks go
    errors = {}
    total = squares = 0.0
    for at in range(len(course) - 1, -1, -1):
        total, squares, count = total + course[at], squares + course[at] ** 2, len(course) - at
        if at <= len(course) / 2:
            errors[at] = max(squares - total**2 / count, 0.0) / count**2
    best = min(errors, key=lambda at: (errors[at], at), default=0)
    return min(max(best, FEWEST), max(len(course) - 1, 0))


def _compare_halves(block: Sequence[float], start: int) -> float:
    """The logarithm of what steps take in the first half of those from `start`, over those of the second half."""
    half = max((len(block) - start) // 2, 1)
    return math.log(max(fmean(block[start : start + half]), 1e-9) / max(fmean(block[-half:]), 1e-9))
