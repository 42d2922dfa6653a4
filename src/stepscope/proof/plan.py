"""Which blocks of steps run, in which order, and how long they and the delays are.

Each pair of blocks is a plain one and one with a change, next to each other and in random order, so that what else
happens on the machine meets both alike.  The order follows from a seed and the number of the pair: the ranks of a job
that run the same steps have the same blocks without a word between them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean

from stepscope.proof.estimate import spread_of
from stepscope.records import dataclass

SEED = 35
BLOCK_S = 0.5  # shorter than most changes of load; what a switch left behind took up to 0.2 s in nine programs
LONGER = 3  # times as long are blocks made in which it lasts on
FEWEST_STEPS, MOST_STEPS = 6, 1000  # of a block
FEWEST_CALLS = 8  # in a block, of a place that not every step calls; half of a block counts at least
MOST_IDLE_STEPS = 60  # after so many more without a call a place counts as never called
ENOUGH_PAIRS = 6  # with fewer no interval of 95 % exists without a model of the noise
FEWEST_PAIRS = 8  # before an interval counts as narrow: fewer are too often narrow by chance
PAIRS_OF_RANKS = 16  # ranks cannot agree on an early end without talking
CLOSE_SENSITIVITY, CLOSE_GAIN = 0.1, 0.04  # half an interval that is narrow enough
LEAST_PART, MOST_PART = 0.05, 0.5  # of a step, that its delays take
LEAST_DELAY_S = 0.0005  # shorter sleeps are mostly the time that the system takes to wake a thread


@dataclass(frozen=True)
class Dose:
    """How a place is delayed.

    Attributes:
        seconds: each delay.
        every: one call in so many is delayed.
    """

    seconds: float
    every: int


def choose_steps(step_s: float, block_s: float = BLOCK_S) -> int:
    """How many steps make a block of this length.

    Args:
        step_s: a usual step.
    """
    return min(max(math.ceil(block_s / max(step_s, 1e-6)), FEWEST_STEPS), MOST_STEPS)


def changed_first(number: int, seed: int = SEED) -> bool:
    """Whether the changed block of a pair runs before the plain one."""
    return random.Random(f"{seed}:{number}").random() < 0.5


def choose_delay(lengths: Sequence[float], steps: int) -> float:
    """How much longer the delays make a step, in seconds.

    As little as measures a sensitivity to a tenth in `FEWEST_PAIRS` pairs, where a block differs from the next by as
    much as the spread of single steps says; within a twentieth and a half of a step.

    Args:
        lengths: plain steps.
        steps: of a block.
    """
    noise_s = spread_of(lengths) * math.sqrt(2 / steps)
    wanted_s = noise_s / math.sqrt(FEWEST_PAIRS) * 2 / CLOSE_SENSITIVITY
    step_s = fmean(lengths)
    return min(max(wanted_s, LEAST_PART * step_s, LEAST_DELAY_S), max(MOST_PART * step_s, LEAST_DELAY_S))


def choose_dose(delay_s: float, calls_per_step: float) -> Dose:
    """Delays that together take `delay_s` in a step, none too short to be slept."""
    every = max(1, math.ceil(LEAST_DELAY_S * calls_per_step / delay_s))
    return Dose(delay_s * every / max(calls_per_step, 1e-9), every)
