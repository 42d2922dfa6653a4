"""The table of texts: equal bytes, equal id."""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled
from stepscope.kernels.trace_json.layout import BLOB, NO_BLOB, NO_TEXT, TEXTS
from stepscope.kernels.trace_json.words import NO, byte_at, inner, word_at


@inner
def _hash(buf, begin, end):
    mixed = np.uint64(end - begin) * np.uint64(0x9E3779B97F4A7C15)
    at = begin
    while at + 8 <= end:
        mixed = (mixed ^ word_at(buf, at)) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
        at += 8
    while at < end:
        mixed = (mixed ^ np.uint64(byte_at(buf, at))) * np.uint64(0x100000001B3)
        at += 1
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(32))


@inner
def equal_bytes(a, at, b, begin, length):
    """True if so many bytes of two arrays are the same."""
    k = 0
    while k + 8 <= length:
        if word_at(a, at + k) != word_at(b, begin + k):
            return False
        k += 8
    while k < length:
        if a[at + k] != b[begin + k]:
            return False
        k += 1
    return True


@inner
def _is_text(buf, begin, end, text, texts):
    """True if the text of that id is `buf[begin:end]`."""
    start = texts.offsets[text]
    length = end - begin
    return texts.offsets[text + 1] - start == length and equal_bytes(texts.blob, start, buf, begin, length)


@inner
def intern(buf, begin, end, escaped, guess, texts, state):
    """Id of the text `buf[begin:end]`, NO_TEXT or NO_BLOB.  `buf` may be the blob itself, from its free end on."""
    length = end - begin
    if length == 0:
        return np.int64(0)
    if guess > 0 and _is_text(buf, begin, end, guess, texts):
        return guess
    mixed = _hash(buf, begin, end)
    mask = np.uint64(len(texts.slots) - 1)
    slot = mixed & mask
    while True:
        held = np.int64(texts.slots[slot])
        if held == 0:
            break
        if texts.hashes[held] == mixed and _is_text(buf, begin, end, held, texts):
            return held
        slot = (slot + np.uint64(1)) & mask
    new = state[TEXTS]
    to = state[BLOB]
    if new >= len(texts.hashes):
        return np.int64(NO_TEXT)
    if to + length > len(texts.blob):
        return np.int64(NO_BLOB)
    for k in range(length):
        texts.blob[to + k] = byte_at(buf, begin + k)
    texts.offsets[new + 1] = to + length
    texts.hashes[new] = mixed
    texts.escaped[new] = escaped
    texts.follower[new] = 0
    texts.slots[slot] = new
    state[TEXTS] = new + 1
    state[BLOB] = to + length
    return new


@compiled
def add_text(buf, texts, state):
    """Id of a text that does not come from a trace, NO_TEXT or NO_BLOB."""
    return intern(buf, NO, np.int64(len(buf)), NO, NO, texts, state)


@compiled
def fill_slots(hashes, count, slots):
    """Enters the texts 1 to `count - 1` into an empty hash table."""
    mask = np.uint64(len(slots) - 1)
    for text in range(1, count):
        slot = hashes[text] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = text
