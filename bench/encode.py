"""Writes one repetition of a line's events as protobuf, compiled: ten million events take seconds, not minutes."""

from __future__ import annotations

import numpy as np
from numba import njit

# What a repetition does to a stat: nothing; add `delta` a repetition; mix into the low 62 bits; write `value + delta`
# a repetition as decimal text.
KEEP, SHIFT, MIX, DECIMAL = 0, 1, 2, 3

_LOW_62 = np.uint64((1 << 62) - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def _varint_size(value):  # type: ignore[no-untyped-def]
    size = 1
    while value > np.uint64(0x7F):
        value >>= np.uint64(7)
        size += 1
    return size


@njit(cache=True)
def _put_varint(out, pos, value):  # type: ignore[no-untyped-def]
    while value > np.uint64(0x7F):
        out[pos] = np.uint8(value & np.uint64(0x7F)) | np.uint8(0x80)
        value >>= np.uint64(7)
        pos += 1
    out[pos] = np.uint8(value)
    return pos + 1


@njit(cache=True)
def _put_field(out, pos, key, value):  # type: ignore[no-untyped-def]
    out[pos] = np.uint8(key)
    return _put_varint(out, pos + 1, np.uint64(value))


@njit(cache=True)
def _digits(value):  # type: ignore[no-untyped-def]
    count = 1
    while value >= np.uint64(10):
        value //= np.uint64(10)
        count += 1
    return count


@njit(cache=True)
def _put_digits(out, pos, value):  # type: ignore[no-untyped-def]
    count = _digits(value)
    for i in range(count):
        out[pos + count - 1 - i] = np.uint8(48 + value % np.uint64(10))
        value //= np.uint64(10)
    return pos + count


@njit(cache=True)
def _new_value(rule, value, delta, repetition):  # type: ignore[no-untyped-def]
    if rule in (SHIFT, DECIMAL):
        return np.uint64(value + np.uint64(delta) * np.uint64(repetition))
    if rule == MIX:
        return np.uint64(value ^ ((np.uint64(repetition) * _GOLDEN) & _LOW_62))
    return np.uint64(value)


@njit(cache=True)
def _stat_size(name, field, rule, value, length):  # type: ignore[no-untyped-def]
    size = 2 + _varint_size(name)
    if field == 2:
        return size + 8
    if rule == DECIMAL:
        length = _digits(value)
    elif field != 5 and field != 6:
        return size + _varint_size(value)
    return size + _varint_size(np.uint64(length)) + length


@njit(cache=True)
def _put_stat(out, pos, name, field, rule, value, blob, at, length):  # type: ignore[no-untyped-def]
    pos = _put_field(out, pos, 8, name)
    if field == 2:
        out[pos] = np.uint8(17)
        for i in range(8):
            out[pos + 1 + i] = np.uint8((value >> np.uint64(8 * i)) & np.uint64(0xFF))
        return pos + 9
    if rule == DECIMAL:
        pos = _put_field(out, pos, field << 3 | 2, _digits(value))
        return _put_digits(out, pos, value)
    if field != 5 and field != 6:
        return _put_field(out, pos, field << 3, value)
    pos = _put_field(out, pos, field << 3 | 2, length)
    for i in range(length):
        out[pos + i] = blob[at + i]
    return pos + length


@njit(cache=True)
def put_events(  # type: ignore[no-untyped-def]
    out, types, when_field, start, end, stat_begin, names, fields, rules, values, deltas, at, length, blob, repetition
):
    """Writes events `types[i]` from `start[i]` to `end[i]` ps with the stats `stat_begin[i]:stat_begin[i + 1]`.

    `when_field` is 2 for an offset and 5 for a number of occurrences, whose `start` is written as it is.  Returns the
    number of bytes written to `out`, which the caller made large enough.
    """
    pos = 0
    for event in range(types.size):
        duration = np.uint64(end[event] - start[event])
        when = np.uint64(start[event])
        if when_field[event] == 5:
            duration, when = np.uint64(end[event]), np.uint64(start[event])
        size = 3 + _varint_size(np.uint64(types[event])) + _varint_size(when) + _varint_size(duration)
        for i in range(stat_begin[event], stat_begin[event + 1]):
            value = _new_value(rules[i], values[i], deltas[i], repetition)
            stat = _stat_size(names[i], fields[i], rules[i], value, length[i])
            size += 1 + _varint_size(np.uint64(stat)) + stat
        pos = _put_field(out, pos, 34, size)
        pos = _put_field(out, pos, 8, types[event])
        pos = _put_field(out, pos, when_field[event] << 3, when)
        pos = _put_field(out, pos, 24, duration)
        for i in range(stat_begin[event], stat_begin[event + 1]):
            value = _new_value(rules[i], values[i], deltas[i], repetition)
            pos = _put_field(out, pos, 34, _stat_size(names[i], fields[i], rules[i], value, length[i]))
            pos = _put_stat(out, pos, names[i], fields[i], rules[i], value, blob, at[i], length[i])
    return pos
