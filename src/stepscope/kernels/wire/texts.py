"""Texts of the file: equal ones get equal ids."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled
from stepscope.kernels.wire.fields import read_fixed, read_varint
from stepscope.kernels.wire.stats import INLINE

# Columns of intern's `texts`, one row a text.
TEXT_START, TEXT_LENGTH, TEXT_HASH, TEXT_WIDTH = range(4)


@compiled(inline="always")
def _hash(buf, start, length):  # type: ignore[no-untyped-def]
    """A multiplicative hash over words of eight bytes, of which the last overlaps the one before; `length` is not 0."""
    mixed = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    at = start
    end = start + length
    while at < end:
        if length >= 8:
            word = np.uint64(read_fixed(buf, min(at, end - 8), 8))
        else:
            word = np.uint64(read_fixed(buf, start, length))
        mixed = (mixed ^ word) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
        at += 8
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64(mixed ^ (mixed >> np.uint64(29)))


@compiled
def intern(buf, tag, value, first, slots, texts, count):  # type: ignore[no-untyped-def]
    """Gives equal texts of the buffer equal ids, from the row `first` on, until all are done or the table is full.

    Args:
        tag: uint8 of shape (n,); rows from INLINE on are texts, and lose INLINE.
        value: int64 of shape (n,), the places of these texts (0 for none), replaced by their ids; 0 for empty ones.
        slots: int32 hash table, its length a power of two and more than the rows of `texts`; -1 is free.
        texts: int64 of shape (room, TEXT_WIDTH), one row an id; see the TEXT_ columns.  Row 0 is the empty string.
        count: ids given so far.

    Returns:
        (rows done, ids given).
    """
    mask = len(slots) - 1
    for row in range(first, len(tag)):
        if tag[row] < INLINE:
            continue
        text = np.int32(0)
        length = np.int64(0)
        start = np.int64(0)
        if value[row] > 0:
            length, start = read_varint(buf, value[row], len(buf))
        if 0 < length <= len(buf) - start:
            mixed = _hash(buf, start, length)
            slot = mixed & mask
            while slots[slot] >= 0:
                text = slots[slot]
                if texts[text, TEXT_HASH] == mixed and texts[text, TEXT_LENGTH] == length:
                    other = texts[text, TEXT_START]
                    different = np.uint8(0)
                    for k in range(length):
                        different |= buf[np.uint64(other + k)] ^ buf[np.uint64(start + k)]
                    if different == 0:
                        break
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                if count == len(texts):
                    return row, count
                text = np.int32(count)
                slots[slot] = text
                texts[text, TEXT_START] = start
                texts[text, TEXT_LENGTH] = length
                texts[text, TEXT_HASH] = mixed
                count += 1
        tag[row] -= INLINE
        value[row] = text
    return len(tag), count


@compiled
def rehash(texts, slots):  # type: ignore[no-untyped-def]
    """Enters all rows of `texts` but the first into an empty hash table; see `intern`."""
    mask = len(slots) - 1
    for row in range(1, len(texts)):
        slot = texts[row, TEXT_HASH] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


@compiled
def gather_bytes(buf, starts, lengths, offsets, out):  # type: ignore[no-untyped-def]
    """Copies ranges of `buf` one after the other into `out`, range i to `offsets[i]`."""
    for i in range(len(starts)):
        to = offsets[i]
        at = starts[i]
        for k in range(lengths[i]):
            out[to + k] = buf[at + k]
