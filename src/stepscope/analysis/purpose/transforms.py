"""Fourier transforms of lengths that have no fast way: a large prime factor makes them several times as slow.

    _fft_r2c [8,32191]    32191 is a prime number; of 32400 = 2^4 3^4 5^2 numbers it takes a fifth

Most such lengths come from a sum such as n + m - 1, where any longer one would do.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.purpose.compiled import ProgramWork, program_work
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.purpose.sizes import sizes_of
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import TRANSFORMS, strip_library
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.patterns import Pattern

# Measured on one core with MKL, about 32,000 numbers in a row: with factors of at most 23 up to 2.2 times as long per
# number as with 32,768; from 31 on 3 to 20 times.
_SLOW = 31
KEPT = 1 / 3
_AXES = Pattern(r"\[(\d+(?:, \d+)*)\]")
_LENGTH = Pattern(r"'(\d+)'\]?$")


@dataclass(frozen=True)
class SlowTransforms:
    """Such transforms: their events, and the lengths, the longest first."""

    rows: I64
    lengths: tuple[int, ...]


def slow_transforms(trace: HostTrace) -> SlowTransforms | None:
    """Those that a processor computes in the steps; None without one.  Libraries of devices have other limits."""
    if is_device_work(trace).any():
        return None
    found = [_find_ops(trace), *(_find_in_program(work) for work in program_work(trace))]
    rows = np.concatenate([each.rows for each in found])
    lengths = sorted({length for each in found for length in each.lengths}, reverse=True)
    return SlowTransforms(rows, tuple(lengths)) if len(rows) else None


def _find_ops(trace: HostTrace) -> SlowTransforms:
    rows = computing_of(trace).rows
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    names = map(strip_library, type_names(trace, types))
    wanted = [type_ for type_, name in zip(types.tolist(), names, strict=True) if TRANSFORMS.fullmatch(name)]
    rows = rows[np.isin(trace.events.type[rows], wanted)]
    stats = (stat_names.INPUT_DIMS, stat_names.CONCRETE_INPUTS)
    texts = np.stack([trace.stat_strings(stat, rows=rows) for stat in stats], axis=1).reshape(-1, 2)
    pairs, place = np.unique(texts, axis=0, return_inverse=True)
    slow = [_slow_of(_lengths(*(trace.strings[max(each, 0)] for each in pair))) for pair in pairs.tolist()]
    chosen = np.array([bool(each) for each in slow], np.bool_)[place.ravel()]
    return SlowTransforms(rows[chosen], tuple(length for each in slow for length in each))


def _lengths(dims: str, numbers: str) -> list[int]:
    """The lengths that an op transforms, of its operands: its axes, and for real results the length of these.

    >>> _lengths("[[8, 32191], [], [], []]", "['', '[1]', '0', 'True']")
    [32191]
    >>> _lengths("[[8, 16096], [], [], []]", "['', '[1]', '2', '32191']")
    [32191]
    """
    size, axes, last = next(iter(sizes_of(dims)), ()), _AXES.search(numbers), _LENGTH.search(numbers)
    found = [size[axis] for axis in map(int, axes[1].split(", ")) if axis < len(size)] if axes else []
    return [*found[:-1], int(last[1])] if found and last else found


def _find_in_program(work: ProgramWork) -> SlowTransforms:
    from stepscope.analysis.hlo.module import FFT_LENGTH

    module = work.module
    rows = np.flatnonzero(module.is_opcode("fft"))
    slow = {row: _slow_of(module.fields_of(np.array([row])).numbers(FFT_LENGTH)[1].tolist()) for row in rows.tolist()}
    chosen = [row for row, lengths in slow.items() if lengths]
    return SlowTransforms(work.runs_of(chosen), tuple(length for row in chosen for length in slow[row]))


def _slow_of(lengths: list[int]) -> list[int]:
    return [length for length in lengths if largest_factor(length) >= _SLOW]


def largest_factor(number: int) -> int:
    """The largest prime factor of a number.

    >>> largest_factor(32191), largest_factor(32400), largest_factor(1)
    (32191, 5, 1)
    """
    found, factor = 1, 2
    while factor * factor <= number:
        while number % factor == 0:
            found, number = factor, number // factor
        factor += 1
    return max(found, number)


def fast_length(number: int) -> int:
    """The least length that is no shorter and a product of 2, 3 and 5.

    >>> fast_length(32191), fast_length(512)
    (32400, 512)
    """
    while largest_factor(number) > 5:
        number += 1
    return number
