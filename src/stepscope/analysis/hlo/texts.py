"""Texts of programs, by where they lie: equal ones, and those of a name."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.model.arrays import I64, U8

_SEED = 0x51AB_1E57_E95C_09E5  # a text made to collide would only be slow to find


def number_texts(buf: U8, starts: I64, stops: I64) -> tuple[I64, tuple[str, ...]]:
    """Numbers texts by what they say: int64 of shape (n,), and the different texts.  Number 0 is the empty text.

    Args:
        buf: uint8 of shape (bytes,).
        starts, stops: int64 of shape (n,).
    """
    numbers = np.zeros(len(starts), np.int64)
    starts, stops = (np.ascontiguousarray(each, np.int64) for each in (starts, stops))
    first = np.asarray(kernels.hlo.number_texts(buf, starts, stops, numbers, _SEED)).reshape(-1)
    return numbers, ("", *texts_of(buf, starts[first], stops[first]))


def find_texts(buf: U8, starts: I64, stops: I64, wanted: U8, wanted_starts: I64, wanted_stops: I64) -> I64:
    """The last row of `buf`'s texts that equals each wanted one: int64 of shape (wanted texts,), -1 for none."""
    count = len(wanted_starts)
    rows, slots = np.full(count, -1, np.int64), np.full(1 << (2 * count + 1).bit_length(), -1, np.int64)
    starts, stops, firsts, lasts = (
        np.ascontiguousarray(each, np.int64) for each in (starts, stops, wanted_starts, wanted_stops)
    )
    kernels.hlo.find_texts(buf, starts, stops, wanted, firsts, lasts, slots, rows, _SEED)
    return rows


def texts_of(buf: U8, starts: I64, stops: I64) -> tuple[str, ...]:
    """The texts in some ranges."""
    view = buf.data
    return tuple(str(view[a:b], "utf-8", "replace") for a, b in zip(starts.tolist(), stops.tolist(), strict=True))
