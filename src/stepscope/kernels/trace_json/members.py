"""The members of a JSON object: keys, which repeat from event to event, and values that are kept as texts."""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from stepscope.kernels.trace_json.layout import INCOMPLETE, MALFORMED
from stepscope.kernels.trace_json.texts import equal_bytes, intern
from stepscope.kernels.trace_json.values import bare_end, skip_value, string_end
from stepscope.kernels.trace_json.words import COLON, COMMA, NO, OPEN, OPEN_LIST, QUOTE, SPACE, byte_at, inner


@inner
def read_token(buf, at, end, guess, texts, state):
    """Id of a number or string as text without its quotes, and the position after it.  `null` and lists have id 0."""
    c = byte_at(buf, at)
    if c == QUOTE:
        stop, escaped = string_end(buf, at, end)
        if stop < 0:
            return np.int64(0), stop
        text = intern(buf, at + 1, stop, escaped, guess, texts, state)
        return text, (stop + 1 if text >= 0 else text)
    if c == OPEN or c == OPEN_LIST:
        return np.int64(0), skip_value(buf, at, end)
    stop = bare_end(buf, at, end)
    if stop < 0 or stop == at:
        return np.int64(0), np.int64(MALFORMED) if stop == at else stop
    if c == 0x6E:  # null
        return np.int64(0), stop
    text = intern(buf, at, stop, NO, guess, texts, state)
    return text, (stop if text >= 0 else text)


@inner
def read_key(buf, at, end):
    """A key and its colon: (begin, end, position of the value or why not, 1 if it holds a backslash)."""
    zero = np.int64(0)
    if byte_at(buf, at) != QUOTE:
        return zero, zero, np.int64(MALFORMED), zero
    stop, escaped = string_end(buf, at, end)
    if stop < 0:
        return zero, zero, stop, zero
    return at + 1, stop, value_of_key(buf, stop + 1, end), escaped


@inner
def _skip_space(buf, at, end):
    while at < end and byte_at(buf, at) <= SPACE:
        at += 1
    return at


@inner
def value_of_key(buf, at, end):
    """Position of the value after the key that ends at `at`, or why there is none."""
    at = _skip_space(buf, at, end)
    if at >= end:
        return np.int64(INCOMPLETE)
    if byte_at(buf, at) != COLON:
        return np.int64(MALFORMED)
    at = _skip_space(buf, at + 1, end)
    return at if at < end else np.int64(INCOMPLETE)


@inner
def after_guess(buf, at, end, guess, texts):
    """Position after the string at `at` if it is the text `guess`, else -1; far cheaper than to look for its end."""
    start = texts.offsets[guess]
    length = texts.offsets[guess + 1] - start
    after = at + length + 2
    if guess == 0 or after > end or byte_at(buf, at) != QUOTE or byte_at(buf, after - 1) != QUOTE:
        return np.int64(-1)
    return after if equal_bytes(texts.blob, start, buf, at + 1, length) else np.int64(-1)


@inner
def next_member(buf, at, end):
    """Position of the next key or closing brace of an object, or INCOMPLETE."""
    while at < end and (byte_at(buf, at) <= SPACE or byte_at(buf, at) == COMMA):
        at += 1
    return at if at < end else np.int64(INCOMPLETE)
