"""Where a JSON value ends, and values that are kept as text."""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled
from stepscope.kernels.trace_json.layout import BLOB, INCOMPLETE, MALFORMED, NO_BLOB
from stepscope.kernels.trace_json.texts import intern
from stepscope.kernels.trace_json.words import (
    BACKSLASH,
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    NO,
    OPEN,
    OPEN_LIST,
    QUOTE,
    SPACE,
    byte_at,
    inner,
    put_byte,
    word_at,
    zeros_below,
)


@inner
def string_end(buf, at, end):
    """Closing quote of the string whose opening quote is at `at` (or INCOMPLETE), and 1 if it holds a backslash."""
    low = np.uint64(0x0101010101010101)
    high = np.uint64(0x8080808080808080)
    escaped = NO
    at += 1
    while at + 8 <= end:  # eight bytes at once: is one of them a quote or a backslash?
        word = word_at(buf, at)
        quote = word ^ np.uint64(0x2222222222222222)
        slash = word ^ np.uint64(0x5C5C5C5C5C5C5C5C)
        hits = (((quote - low) & ~quote) | ((slash - low) & ~slash)) & high
        if hits == 0:
            at += 8
            continue
        at += zeros_below(hits) >> 3
        if byte_at(buf, at) == QUOTE:
            return at, escaped
        escaped = np.int64(1)
        at += 2
    while at < end:
        c = byte_at(buf, at)
        if c == QUOTE:
            return at, escaped
        if c == BACKSLASH:
            escaped = np.int64(1)
            at += 1
        at += 1
    return np.int64(INCOMPLETE), escaped


@inner
def ends_bare(c):
    """True for a byte that ends a bare token."""
    return c <= SPACE or c == COMMA or c == CLOSE or c == CLOSE_LIST


@inner
def bare_end(buf, at, end):
    """End of a bare token: a number, `null`, or whatever stands there until a comma, bracket or space."""
    while at < end:
        c = byte_at(buf, at)
        if ends_bare(c):
            return at
        if c == QUOTE or c == OPEN or c == OPEN_LIST or c == COLON:
            return np.int64(MALFORMED)
        at += 1
    return np.int64(INCOMPLETE)


@compiled
def skip_value(buf, at, end):
    """Position after the JSON value at `at`, INCOMPLETE or MALFORMED.  Kinds of brackets are not told apart."""
    at = np.int64(at)
    depth = 0
    while at < end:
        c = byte_at(buf, at)
        if c == QUOTE:
            at, _ = string_end(buf, at, end)
            if at < 0:
                return at
            at += 1
        elif c == OPEN or c == OPEN_LIST:
            depth += 1
            at += 1
        elif c == CLOSE or c == CLOSE_LIST:
            depth -= 1
            at += 1
        elif depth == 0:
            after = bare_end(buf, at, end)
            return np.int64(MALFORMED) if after == at else after
        else:
            at += 1
            continue
        if depth <= 0:
            return np.int64(MALFORMED) if depth < 0 else at
    return np.int64(INCOMPLETE)


@compiled
def skip_space(buf, at, end, commas):
    """Position of the next byte that is no space, nor a comma if `commas`; `end` if there is none."""
    while at < end and (byte_at(buf, at) <= SPACE or (commas and byte_at(buf, at) == COMMA)):
        at += 1
    return at


@inner
def read_container(buf, at, end, texts, state):
    """Id of the list or object at `at` as JSON text without spaces, and the position after it (or why not)."""
    blob = texts.blob
    begin = state[BLOB]
    to = begin
    room = len(blob)
    depth = 0
    quoted = False
    while at < end:
        c = byte_at(buf, at)
        if quoted:
            if c == BACKSLASH:
                if to + 1 >= room:
                    return np.int64(0), np.int64(NO_BLOB)
                put_byte(blob, to, c)
                to += 1
                at += 1
                if at >= end:
                    break
                c = byte_at(buf, at)
            elif c == QUOTE:
                quoted = False
        elif c <= SPACE:
            at += 1
            continue
        elif c == QUOTE:
            quoted = True
        elif c == OPEN or c == OPEN_LIST:
            depth += 1
        elif c == CLOSE or c == CLOSE_LIST:
            depth -= 1
        if to >= room:
            return np.int64(0), np.int64(NO_BLOB)
        put_byte(blob, to, c)
        to += 1
        at += 1
        if depth == 0 and not quoted:
            text = intern(blob, begin, to, NO, NO, texts, state)
            return text, (at if text >= 0 else text)
    return np.int64(0), np.int64(INCOMPLETE)
