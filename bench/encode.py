"""Writes one repetition of a line's events as protobuf, by columns: ten million events take seconds, not minutes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.xspace.encode import field_sizes, put_heads, put_texts, put_varints, varint_sizes
from stepscope.model.arrays import offsets_of

# How a repetition changes a stat: not at all; adds `delta` per repetition; mixes the low 62 bits; writes
# `value + delta` per repetition as decimal text.
KEEP, SHIFT, MIX, DECIMAL = 0, 1, 2, 3

_LOW_62 = (1 << 62) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_DIGITS = 20  # of the longest number
_DOUBLE, _STRING, _BYTES = 2, 5, 6
_OCCURRENCES = 5

Column = NDArray[Any]


def put_events(
    out: Column, types: Column, when_field: Column, start: Column, end: Column, stat_begin: Column, names: Column,
    fields: Column, rules: Column, values: Column, deltas: Column, at: Column, length: Column, blob: Column,
    repetition: int,
) -> int:  # fmt: skip
    """Writes events `types[i]` from `start[i]` to `end[i]` ps with the stats `stat_begin[i]:stat_begin[i + 1]`.

    `when_field` is 2 for an offset and 5 for a number of occurrences, whose `start` is written as it is.  Returns the
    number of bytes written to `out`, which must be large enough.
    """
    values = _new_values(rules, values, deltas, repetition)
    blob, begins, lengths = _place_texts(rules, fields, values, at, length, blob)
    is_text, is_double = np.isin(fields, (_STRING, _BYTES)) | (rules == DECIMAL), fields == _DOUBLE
    content = np.where(is_double, 8, np.where(is_text, varint_sizes(lengths) + lengths, varint_sizes(values)))
    stat_sizes = 2 + varint_sizes(names) + content
    stat_offsets = offsets_of(field_sizes(stat_sizes))
    of_event = stat_offsets[stat_begin[1:]] - stat_offsets[stat_begin[:-1]]
    duration = np.where(when_field == _OCCURRENCES, end, end - start)
    head = 3 + varint_sizes(types) + varint_sizes(start) + varint_sizes(duration)
    places = offsets_of(field_sizes(head + of_event))

    place = put_heads(out, places[:-1], 4, head + of_event)
    place = _put_numbers(out, place, np.full(len(types), 1), types)
    place = _put_numbers(out, place, when_field, start)
    place = _put_numbers(out, place, np.full(len(types), 3), duration)
    first = stat_offsets[stat_begin[:-1]]
    place = stat_offsets[:-1] + np.repeat(place - first, np.diff(stat_begin))
    place = put_heads(out, place, 4, stat_sizes)
    place = _put_numbers(out, place, np.full(len(names), 1), names)
    plain = ~is_text & ~is_double
    _put_numbers(out, place[plain], fields[plain], values[plain])
    out[place[is_double]] = _DOUBLE << 3 | 1
    out[place[is_double, None] + np.arange(1, 9)] = values[is_double].astype("<i8").view(np.uint8).reshape(-1, 8)
    out[place[is_text]] = fields[is_text].astype(np.uint8) << 3 | 2
    put_varints(out, place[is_text] + 1, lengths[is_text])
    after = place[is_text] + 1 + varint_sizes(lengths[is_text])
    put_texts(out, after, blob, begins[is_text], lengths[is_text])
    return int(places[-1])


def _put_numbers(out: Column, place: Column, fields: Column, values: Column) -> Column:
    """Writes one number per message; returns the position after each."""
    out[place] = fields.astype(np.uint8) << 3
    put_varints(out, place + 1, values)
    after: Column = place + 1 + varint_sizes(values)
    return after


def _new_values(rules: Column, values: Column, deltas: Column, repetition: int) -> Column:
    bits = values.astype(np.int64)
    shifted = np.where(np.isin(rules, (SHIFT, DECIMAL)), bits + deltas.astype(np.int64) * repetition, bits)
    mixed: Column = np.where(rules == MIX, bits ^ ((repetition * _GOLDEN) & _LOW_62), shifted)
    return mixed


def _place_texts(
    rules: Column, fields: Column, values: Column, at: Column, length: Column, blob: Column
) -> tuple[Column, Column, Column]:
    """All texts: the bytes, and the start and length of the text of each stat; decimals come after the others."""
    decimal = rules == DECIMAL
    digits = values[decimal].astype(np.uint64).astype(f"S{_DIGITS}").view(np.uint8).reshape(-1, _DIGITS)
    begins, lengths = at.astype(np.int64), length.astype(np.int64)
    begins[decimal] = len(blob) + _DIGITS * np.arange(len(digits))
    lengths[decimal] = np.count_nonzero(digits, axis=1)
    return np.concatenate([blob, digits.reshape(-1)]), begins, lengths
