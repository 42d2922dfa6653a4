"""How many numbers ops take, by the sizes that PyTorch records."""

from __future__ import annotations

import math

import numpy as np

from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64
from stepscope.vocabulary.patterns import Pattern

_SIZES = Pattern(r"\d+(?:,\d+)*")
_MOST_DIGITS = 15  # no tensor has a longer side, so more digits are damage
_MOST_NUMBERS = 1 << 48  # elements of a tensor; more are damage


def numbers_taken(trace: HostTrace, rows: I64) -> int:
    """The elements of the first operands of some ops together; 0 where sizes were not recorded."""
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return 0
    texts, counts = np.unique(trace.stat_strings(stat_names.INPUT_DIMS, rows=rows), return_counts=True)
    found = zip(texts.tolist(), counts.tolist(), strict=True)
    return sum(count * first_operand_numbers(trace.strings[text]) for text, count in found if text > 0)


def first_operand_numbers(dims: str) -> int:
    """Number of elements of the first operand that is a tensor; 0 if it is none or impossibly large.

    >>> first_operand_numbers("[[96,256],[640,256],[640]]")
    24576
    >>> first_operand_numbers("[[],[[8,4],[4,2]],[]]")  # of an einsum, whose first argument is its equation
    32
    """
    sizes = _SIZES.search(dims)
    if sizes is None or max(map(len, sizes[0].split(","))) > _MOST_DIGITS:
        return 0
    number = math.prod(map(int, sizes[0].split(",")))
    return number if number <= _MOST_NUMBERS else 0
