"""Texts of programs, by where they lie: equal ones, and those of a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope import kernels
from stepscope.model.arrays import I64, U8

if TYPE_CHECKING:
    from stepscope.kernels import wire

_SEED = 0x51AB_1E57_E95C_09E5  # a text made to collide would only be slow to find


def number_texts(buf: U8, starts: I64, stops: I64) -> tuple[I64, tuple[str, ...]]:
    """Numbers texts by what they say: int64 of shape (n,), and the different texts.  Number 0 is the empty text.

    Args:
        buf: uint8 of shape (bytes,).
        starts, stops: int64 of shape (n,).
    """
    numbers = _number(kernels.wire.Interner(buf, _SEED), buf, starts, stops)
    first = np.zeros(int(numbers.max(initial=0)) + 1, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, ("", *texts_of(buf, starts[first[1:]], stops[first[1:]]))


def find_texts(buf: U8, starts: I64, stops: I64, wanted: U8, wanted_starts: I64, wanted_stops: I64) -> I64:
    """The last row of `buf`'s texts that equals each wanted one: int64 of shape (wanted texts,), -1 for none."""
    known = kernels.wire.Interner(buf, _SEED)
    numbers, asked = _number(known, buf, starts, stops), _number(known, wanted, wanted_starts, wanted_stops)
    rows = np.full(known.count, -1, np.int64)
    rows[numbers] = np.arange(len(numbers))
    rows[0] = -1  # of the empty text
    found: I64 = rows[asked]
    return found


def _number(known: wire.Interner, buf: U8, starts: I64, stops: I64) -> I64:
    numbers = np.empty(len(starts), np.int64)
    known.add_ranges(buf, np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(stops, np.int64), numbers)
    return numbers


def texts_of(buf: U8, starts: I64, stops: I64) -> tuple[str, ...]:
    """The texts in some ranges."""
    view = buf.data
    return tuple(str(view[a:b], "utf-8", "replace") for a, b in zip(starts.tolist(), stops.tolist(), strict=True))
