"""What pairs of blocks say: a plain one, and one with a change."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepscope.proof.estimate import drift_of, estimate
from stepscope.proof.plan import CLOSE_GAIN
from stepscope.proof.record import Estimate
from stepscope.records import dataclass

_CLEARLY_QUICKER = 0.8  # what a change of the machine's load does to a step is rarely more


@dataclass(frozen=True)
class BlockTimes:
    """What a block took.

    Attributes:
        at_s: the middle of it.
        step_s: the mean of the steps that count, without what the change itself costs.
        own_s: the mean with that, and without the time in which their thread waited for a processor.
        delay_s: how long the delays of such a step took, with that.
        early: the mean of the first half of the steps over that of the second half.
    """

    at_s: float
    step_s: float
    own_s: float
    delay_s: float = 0.0
    early: float = 1.0


@dataclass(frozen=True)
class Pair:
    """Two neighbouring blocks."""

    plain: BlockTimes
    changed: BlockTimes

    @property
    def apart_s(self) -> float:
        """How much later the changed one ran."""
        return self.changed.at_s - self.plain.at_s


def sensitivity_of(pairs: Sequence[Pair]) -> Estimate | None:
    """By how much a step grows for each second of delay, both without waits for a processor."""
    pairs = [pair for pair in pairs if pair.changed.delay_s > 0]
    drift = drift_of([pair.plain.at_s for pair in pairs], [pair.plain.own_s for pair in pairs])
    grown = [pair.changed.own_s - pair.plain.own_s - drift * pair.apart_s for pair in pairs]
    return estimate([each / pair.changed.delay_s for each, pair in zip(grown, pairs, strict=True)])


def gain_of(pairs: Sequence[Pair]) -> Estimate | None:
    """How many times as fast steps are with the change."""
    drift = drift_of([pair.plain.at_s for pair in pairs], [pair.plain.step_s for pair in pairs])
    changed = [max(pair.changed.step_s - drift * pair.apart_s, 1e-9) for pair in pairs]
    return estimate_ratio([(pair.plain.step_s, left) for pair, left in zip(pairs, changed, strict=True)])


def estimate_ratio(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """The centre of ratios, first over second, by their logarithms, since noise stretches ratios to one side only."""
    found = estimate([math.log(one / other) for one, other in pairs])
    if found is None or found.half_width == math.inf:
        return found and Estimate(math.exp(found.value), -math.inf, math.inf, found.pairs)
    return Estimate(math.exp(found.value), math.exp(found.least), math.exp(found.most), found.pairs)


def is_settled(pairs: Sequence[Pair], usual_s: float) -> bool:
    """Whether the blocks show nothing any more of those before them, such as batches that lay ready: halves of blocks
    are alike within what a gain is measured to, and plain steps not clearly quicker than the first ones, `usual_s`.
    """
    for blocks in ([pair.plain for pair in pairs], [pair.changed for pair in pairs]):
        halves = estimate_ratio([(block.early, 1.0) for block in blocks])
        if halves is not None and not halves.least - CLOSE_GAIN <= 1 <= halves.most + CLOSE_GAIN:
            return False
    plain = estimate_ratio([(pair.plain.step_s, usual_s) for pair in pairs])
    return plain is None or plain.value > _CLEARLY_QUICKER
