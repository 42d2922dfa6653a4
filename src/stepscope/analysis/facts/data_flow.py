"""Which compiled programs of a step need each other, by the shapes of what they take and give.

    solve       takes f32[96,96] f32[48,96]    gives f32[48,96]
    train_step  takes f32[96,96] f32[48,96]    gives f32[96,96]

What a program takes and gives of one shape is its state, which goes from step to step, as the weights of `train_step`.
What it takes besides comes from elsewhere: here from `solve`, which takes those weights, so that its result is another
one in each step.  Single numbers say nothing: many programs take or give one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module


def find_needed(modules: Sequence[Module | None]) -> list[bool]:
    """Whether another of these programs takes each program's result, which changes as it takes another's.

    Args:
        modules: the programs of a step; None for one that the trace does not hold.
    """
    takes = [_arrays(shape for _, shape in module.parameters) if module else Counter() for module in modules]
    gives = [_arrays(module.results) if module else Counter() for module in modules]
    wanted = [taken - own for taken, own in zip(takes, gives, strict=True)]
    fed = [[not given.keys().isdisjoint(each) for each in wanted] for given in gives]
    every = range(len(modules))
    return [
        any(fed[at][other] for other in every if other != at) and any(fed[other][at] for other in every if other != at)
        for at in every
    ]


def _arrays(shapes: Iterable[str]) -> Counter[str]:
    return Counter(shape for shape in shapes if not shape.endswith("[]"))
