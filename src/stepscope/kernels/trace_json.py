"""The JSON scanner: text of trace events into columns, in one pass and without a Python object per event.

It reads what trace writers write rather than what the standard allows: stray commas, bare `NaN` or `N/A`, control
characters and raw bytes in strings are all taken.  An object that makes no sense is stepped over, and reading goes on
at the next one.  Times stay exact, because they are read as decimals and never pass through a float.

Measured on a 56 MB trace of 132,000 events and 550,000 args: 0.09 s.  msgspec takes 0.09 s for structs with raw args,
0.08 s more until these are columns and 0.21 s more until their args are, and gives times as floats.

    event = {"ph": "X", "cat": text, "name": text, "pid": any, "tid": any, "ts": us, "dur": us, "id": any, "args": args}
    args  = {text: number | text | list or object, kept as JSON text}
"""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from stepscope.kernels.compiling import compiled

# What scan_events stopped for.
MORE, CLOSED, FULL, TEXTS_FULL, BLOB_FULL = range(5)

# Instead of a position: the text ends first; this is no JSON; no room for another stat, text, or byte of text.
INCOMPLETE, MALFORMED, NO_STAT, NO_TEXT, NO_BLOB = -1, -2, -3, -4, -5

# Places of the scanner's state.
AT, ROWS, STATS, TEXTS, BLOB, SLOW, MEMBER_AT, RECOVERING, DAMAGED, DAMAGED_AT, STATE_WIDTH = range(11)

# Flags of an event.
HAS_TIME, HAS_DURATION, NEGATIVE, HAS_PID, HAS_TID, HAS_FLOW = 1, 2, 4, 8, 16, 32

# Times beyond this many microseconds (some 140,000 years) are damage.
TIME_LIMIT_US = 1 << 62

# What only other compiled functions call is part of their cached code.
_inner = njit(nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)

_NONE, _DOUBLE, _UINT, _INT, _STRING, _SLOW = 0, 1, 2, 3, 5, 9
_TENTH_OF_MOST = np.uint64(1844674407370955161)  # of 2^64 - 1, which ends with 5
_POWERS = np.array([10.0**k for k in range(23)])  # exact in a double
_TENS = np.array([10**k for k in range(20)], np.uint64)  # all that fit
_NO = np.int64(0)  # a literal 0 would make numba compile the called function once more
_SPACE, _QUOTE, _COMMA, _COLON, _BACKSLASH = 0x20, 0x22, 0x2C, 0x3A, 0x5C
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = 0x7B, 0x7D, 0x5B, 0x5D
_MINUS, _PLUS, _DOT, _ZERO, _NINE = 0x2D, 0x2B, 0x2E, 0x30, 0x39
_KEY_PH, _KEY_TS, _KEY_ID = 0x7068, 0x7473, 0x6964
_KEY_CAT, _KEY_PID, _KEY_TID, _KEY_DUR = 0x636174, 0x706964, 0x746964, 0x647572
_KEY_NAME, _KEY_ARGS = 0x6E616D65, 0x61726773
_TRUE, _FALSE = 0x74727565, 0x66616C7365


class Texts(NamedTuple):
    """Interned texts: text `i` is `blob[offsets[i]:offsets[i + 1]]`; text 0 is empty.

    `escaped[i]` is 1 if the text came from a string with a backslash.  `follower[i]` is the key that came last after
    the key `i`: a guess that saves looking it up.  `slots` is a hash table of ids, 0 where free, of a power-of-two
    length at least twice that of `hashes`.
    """

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    escaped: NDArray[np.uint8]
    follower: NDArray[np.int32]
    slots: NDArray[np.int32]


class Rows(NamedTuple):
    """Columns of events, one row each.  Texts are ids; `us` and `frac_ps` add up to the time; `flow` is an `id` that
    is a whole number, or the id of its text; `stat_end` is the row after the event's last stat."""

    phase: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    cat: NDArray[np.int32]
    name: NDArray[np.int32]
    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    us: NDArray[np.int64]
    frac_ps: NDArray[np.int32]
    duration_us: NDArray[np.int64]
    duration_frac_ps: NDArray[np.int32]
    flow: NDArray[np.int64]
    stat_end: NDArray[np.int64]


class StatRows(NamedTuple):
    """Columns of stats.  `double` is `value` seen as doubles.  `slow` lists (row, begin, end) of the numbers that need
    a careful conversion."""

    name: NDArray[np.int32]
    tag: NDArray[np.uint8]
    value: NDArray[np.int64]
    double: NDArray[np.float64]
    slow: NDArray[np.int64]


@intrinsic
def _word(_context, buf, at):
    """The eight bytes of a uint8 array from `at` on as one number, by one load and without a check of the bounds."""

    def load(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(buf, types.int64), load


@intrinsic
def _byte(_context, buf, at):
    """A byte of a uint8 array, which numba's own indexing finds only after a look for negative numbers."""

    def load(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load(builder.gep(array.data, [arguments[1]]))

    return types.uint8(buf, types.int64), load


@intrinsic
def _put(_context, buf, at, byte):
    """Stores a byte, for the same reason."""

    def store(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        builder.store(arguments[2], builder.gep(array.data, [arguments[1]]))
        return context.get_dummy_value()

    return types.none(buf, types.int64, types.uint8), store


@intrinsic
def _zeros_below(_context, word):
    """How many bits of a number that is not 0 stand below the lowest one that is set.

    Of a word it tells where the first byte with some property is: all that numba compiles for is little-endian.
    """

    def count(_, builder, __, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(word), count


@_inner
def _hash(buf, begin, end):
    mixed = np.uint64(end - begin) * np.uint64(0x9E3779B97F4A7C15)
    at = begin
    while at + 8 <= end:
        mixed = (mixed ^ _word(buf, at)) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
        at += 8
    while at < end:
        mixed = (mixed ^ np.uint64(_byte(buf, at))) * np.uint64(0x100000001B3)
        at += 1
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(32))


@_inner
def _equal(a, at, b, begin, length):
    k = 0
    while k + 8 <= length:
        if _word(a, at + k) != _word(b, begin + k):
            return False
        k += 8
    while k < length:
        if a[at + k] != b[begin + k]:
            return False
        k += 1
    return True


@_inner
def _is_text(buf, begin, end, text, texts):
    start = texts.offsets[text]
    length = end - begin
    return texts.offsets[text + 1] - start == length and _equal(texts.blob, start, buf, begin, length)


@_inner
def _intern(buf, begin, end, escaped, guess, texts, state):
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
        texts.blob[to + k] = _byte(buf, begin + k)
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
    return _intern(buf, _NO, np.int64(len(buf)), _NO, _NO, texts, state)


@compiled
def fill_slots(hashes, count, slots):
    """Enters the texts 1 to `count - 1` into an empty hash table."""
    mask = np.uint64(len(slots) - 1)
    for text in range(1, count):
        slot = hashes[text] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = text


@_inner
def _skip_space(buf, at, end):
    while at < end and _byte(buf, at) <= _SPACE:
        at += 1
    return at


@_inner
def _string_end(buf, at, end):
    """Closing quote of the string whose opening quote is at `at` (or INCOMPLETE), and 1 if it holds a backslash."""
    low = np.uint64(0x0101010101010101)
    high = np.uint64(0x8080808080808080)
    escaped = _NO
    at += 1
    while at + 8 <= end:  # eight bytes at once: is one of them a quote or a backslash?
        word = _word(buf, at)
        quote = word ^ np.uint64(0x2222222222222222)
        slash = word ^ np.uint64(0x5C5C5C5C5C5C5C5C)
        hits = (((quote - low) & ~quote) | ((slash - low) & ~slash)) & high
        if hits == 0:
            at += 8
            continue
        at += _zeros_below(hits) >> 3
        if _byte(buf, at) == _QUOTE:
            return at, escaped
        escaped = np.int64(1)
        at += 2
    while at < end:
        c = _byte(buf, at)
        if c == _QUOTE:
            return at, escaped
        if c == _BACKSLASH:
            escaped = np.int64(1)
            at += 1
        at += 1
    return np.int64(INCOMPLETE), escaped


@_inner
def _ends_bare(c):
    return c <= _SPACE or c == _COMMA or c == _CLOSE or c == _CLOSE_LIST


@_inner
def _bare_end(buf, at, end):
    """End of a bare token: a number, `null`, or whatever stands there until a comma, bracket or space."""
    while at < end:
        c = _byte(buf, at)
        if _ends_bare(c):
            return at
        if c == _QUOTE or c == _OPEN or c == _OPEN_LIST or c == _COLON:
            return np.int64(MALFORMED)
        at += 1
    return np.int64(INCOMPLETE)


@compiled
def skip_value(buf, at, end):
    """Position after the JSON value at `at`, INCOMPLETE or MALFORMED.  Kinds of brackets are not told apart."""
    at = np.int64(at)
    depth = 0
    while at < end:
        c = _byte(buf, at)
        if c == _QUOTE:
            at, _ = _string_end(buf, at, end)
            if at < 0:
                return at
            at += 1
        elif c == _OPEN or c == _OPEN_LIST:
            depth += 1
            at += 1
        elif c == _CLOSE or c == _CLOSE_LIST:
            depth -= 1
            at += 1
        elif depth == 0:
            after = _bare_end(buf, at, end)
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
    while at < end and (_byte(buf, at) <= _SPACE or (commas and _byte(buf, at) == _COMMA)):
        at += 1
    return at


@_inner
def _container(buf, at, end, texts, state):
    """Id of the list or object at `at` as JSON text without spaces, and the position after it (or why not)."""
    blob = texts.blob
    begin = state[BLOB]
    to = begin
    room = len(blob)
    depth = 0
    quoted = False
    while at < end:
        c = _byte(buf, at)
        if quoted:
            if c == _BACKSLASH:
                if to + 1 >= room:
                    return np.int64(0), np.int64(NO_BLOB)
                _put(blob, to, c)
                to += 1
                at += 1
                if at >= end:
                    break
                c = _byte(buf, at)
            elif c == _QUOTE:
                quoted = False
        elif c <= _SPACE:
            at += 1
            continue
        elif c == _QUOTE:
            quoted = True
        elif c == _OPEN or c == _OPEN_LIST:
            depth += 1
        elif c == _CLOSE or c == _CLOSE_LIST:
            depth -= 1
        if to >= room:
            return np.int64(0), np.int64(NO_BLOB)
        _put(blob, to, c)
        to += 1
        at += 1
        if depth == 0 and not quoted:
            text = _intern(blob, begin, to, _NO, _NO, texts, state)
            return text, (at if text >= 0 else text)
    return np.int64(0), np.int64(INCOMPLETE)


@_inner
def _digits(buf, at, end, mantissa, kept):
    """Reads digits into `mantissa` while they fit: (mantissa, digits kept, digits dropped, position)."""
    dropped = 0
    while at < end:
        c = _byte(buf, at)
        if c < _ZERO or c > _NINE:
            break
        digit = np.uint64(c - _ZERO)
        if dropped or mantissa > _TENTH_OF_MOST or (mantissa == _TENTH_OF_MOST and digit > np.uint64(5)):
            dropped += 1
        else:
            mantissa = mantissa * np.uint64(10) + digit
            kept += 1
        at += 1
    return mantissa, kept, dropped, at


@_inner
def _exponent(buf, at, end):
    """The exponent whose `e` is at `at`, at most 9999 either way, and the position after it, or `at` without digits."""
    letter = at
    at += 1
    negative = False
    if at < end and (_byte(buf, at) == _MINUS or _byte(buf, at) == _PLUS):
        negative = _byte(buf, at) == _MINUS
        at += 1
    value = 0
    first = at
    while at < end and _ZERO <= _byte(buf, at) <= _NINE:
        value = min(value * 10 + (_byte(buf, at) - _ZERO), 9999)
        at += 1
    return (-value if negative else value), (at if at > first else letter)


@_inner
def _number(buf, at, end):
    """A bare token as a stat: (tag, integer, double, position after it)."""
    negative = _byte(buf, at) == _MINUS
    begin = at + 1 if negative else at
    mantissa, kept, dropped, pos = _digits(buf, begin, end, np.uint64(0), _NO)
    if pos > begin and pos < end and not dropped and _ends_bare(_byte(buf, pos)):
        if mantissa <= np.uint64(0x7FFFFFFFFFFFFFFF):
            value = np.int64(mantissa)
            return _INT, (-value if negative else value), 0.0, pos
        if not negative:
            return _UINT, np.int64(mantissa), 0.0, pos
    after = _bare_end(buf, at, end)
    if after < 0 or after == at:
        return _NONE, np.int64(0), 0.0, np.int64(MALFORMED) if after == at else after
    if pos == begin:
        word = np.int64(0)
        for k in range(at, min(after, at + 6)):
            word = (word << 8) | np.int64(_byte(buf, k))
        if word == _TRUE or word == _FALSE:
            return _INT, np.int64(word == _TRUE), 0.0, after
        return _NONE, np.int64(0), 0.0, after  # null, NaN, Infinity, N/A: not known
    exponent = dropped
    exact = dropped == 0
    if pos < after and _byte(buf, pos) == _DOT:
        whole = kept
        mantissa, kept, dropped, pos = _digits(buf, pos + 1, after, mantissa, kept)
        exponent -= kept - whole
        exact = exact and dropped == 0
    if pos < after and (_byte(buf, pos) | 0x20) == 0x65:  # e
        power, pos = _exponent(buf, pos, after)
        exponent += power
    if pos != after:
        return _NONE, np.int64(0), 0.0, after
    if exact and mantissa <= np.uint64(1 << 53) and -22 <= exponent <= 22:
        # Both operands are exact doubles, so that one rounding gives the nearest double.
        double = np.float64(mantissa)
        double = double * _POWERS[exponent] if exponent >= 0 else double / _POWERS[-exponent]
        return _DOUBLE, np.int64(0), (-double if negative else double), after
    return _SLOW, np.int64(0), 0.0, after


@_inner
def _exponential(buf, at, end):
    """A time written with an exponent, without its sign: (whole microseconds, picoseconds, True if it is one, position
    after it).  All digits count: C++ libraries write `1.6231430898614251e+15` where others write no exponent."""
    zero = np.int64(0)
    mantissa, whole, dropped, pos = _digits(buf, at, end, np.uint64(0), _NO)
    kept = whole
    if not dropped and pos < end and _byte(buf, pos) == _DOT:
        mantissa, kept, _, pos = _digits(buf, pos + 1, end, mantissa, whole)
    power, pos = _exponent(buf, pos, end)
    places = kept - whole - power  # behind the decimal point
    while places < 0 and mantissa <= np.uint64(TIME_LIMIT_US // 10):
        mantissa *= np.uint64(10)
        places = places + 1 if mantissa else zero
    if places < 0:
        return zero, zero, False, pos
    while places >= len(_TENS):  # a picosecond is the sixth place
        mantissa //= np.uint64(10)
        places = places - 1 if mantissa else zero
    rest = mantissa % _TENS[places]
    if places <= 6:
        frac = rest * _TENS[6 - places]
    else:
        frac = (rest + _TENS[places - 6] // np.uint64(2)) // _TENS[places - 6]
    amount = mantissa // _TENS[places]
    return np.int64(amount), np.int64(frac), amount <= np.uint64(TIME_LIMIT_US), pos


@_inner
def _time(buf, at, end):
    """A time in microseconds: (whole microseconds, picoseconds, True if it is one, position after it).

    A quoted number counts.  Digits beyond the picosecond round.
    """
    zero = np.int64(0)
    quoted = _byte(buf, at) == _QUOTE
    if quoted:
        stop, _ = _string_end(buf, at, end)
        begin = at + 1
        after = stop + 1
    else:
        stop = _bare_end(buf, at, end)
        begin = at
        after = stop
    if stop < 0:
        return zero, zero, False, stop
    negative = begin < stop and _byte(buf, begin) == _MINUS
    if negative:
        begin += 1
    mantissa, _, dropped, pos = _digits(buf, begin, stop, np.uint64(0), _NO)
    if pos == begin or dropped or mantissa > np.uint64(TIME_LIMIT_US):
        return zero, zero, False, after
    whole = np.int64(mantissa)
    frac = zero
    if pos < stop and _byte(buf, pos) == _DOT:
        pos += 1
        scale = np.int64(100_000)
        while pos < stop and _ZERO <= _byte(buf, pos) <= _NINE:
            digit = np.int64(_byte(buf, pos) - _ZERO)
            if scale > 0:
                frac += digit * scale
            elif scale == 0:
                frac += 1 if digit >= 5 else 0
                scale = np.int64(-1)
            if scale > 0:
                scale //= 10
            pos += 1
    if pos < stop and (_byte(buf, pos) | 0x20) == 0x65:  # e
        whole, frac, good, pos = _exponential(buf, begin, stop)
        if not good:
            return zero, zero, False, after
    if pos != stop:
        return zero, zero, False, after
    if negative:
        return -whole, -frac, True, after
    return whole, frac, True, after


@_inner
def _token(buf, at, end, guess, texts, state):
    """Id of a number or string as text without its quotes, and the position after it.  `null` and lists have id 0."""
    c = _byte(buf, at)
    if c == _QUOTE:
        stop, escaped = _string_end(buf, at, end)
        if stop < 0:
            return np.int64(0), stop
        text = _intern(buf, at + 1, stop, escaped, guess, texts, state)
        return text, (stop + 1 if text >= 0 else text)
    if c == _OPEN or c == _OPEN_LIST:
        return np.int64(0), skip_value(buf, at, end)
    stop = _bare_end(buf, at, end)
    if stop < 0 or stop == at:
        return np.int64(0), np.int64(MALFORMED) if stop == at else stop
    if c == 0x6E:  # null
        return np.int64(0), stop
    text = _intern(buf, at, stop, _NO, guess, texts, state)
    return text, (stop if text >= 0 else text)


@_inner
def _key(buf, at, end):
    """A key and its colon: (begin, end, position of the value or why not, 1 if it holds a backslash)."""
    zero = np.int64(0)
    if _byte(buf, at) != _QUOTE:
        return zero, zero, np.int64(MALFORMED), zero
    stop, escaped = _string_end(buf, at, end)
    if stop < 0:
        return zero, zero, stop, zero
    return at + 1, stop, _value_of_key(buf, stop + 1, end), escaped


@_inner
def _value_of_key(buf, at, end):
    """Position of the value after the key that ends at `at`, or why there is none."""
    at = _skip_space(buf, at, end)
    if at >= end:
        return np.int64(INCOMPLETE)
    if _byte(buf, at) != _COLON:
        return np.int64(MALFORMED)
    at = _skip_space(buf, at + 1, end)
    return at if at < end else np.int64(INCOMPLETE)


@_inner
def _guessed(buf, at, end, guess, texts):
    """Position after the string at `at` if it is the text `guess`, else -1; far cheaper than to look for its end."""
    start = texts.offsets[guess]
    length = texts.offsets[guess + 1] - start
    after = at + length + 2
    if guess == 0 or after > end or _byte(buf, at) != _QUOTE or _byte(buf, after - 1) != _QUOTE:
        return np.int64(-1)
    return after if _equal(texts.blob, start, buf, at + 1, length) else np.int64(-1)


@_inner
def _next_member(buf, at, end):
    """Position of the next key or closing brace of an object, or INCOMPLETE."""
    while at < end and (_byte(buf, at) <= _SPACE or _byte(buf, at) == _COMMA):
        at += 1
    return at if at < end else np.int64(INCOMPLETE)


@_inner
def _args(buf, at, end, texts, stats, state, n_stats, n_slow):
    """Reads an args object: (position after it or why not, stats so far, slow numbers so far)."""
    at += 1
    last = np.int64(0)
    while True:
        at = _next_member(buf, at, end)
        if at < 0:
            return at, n_stats, n_slow
        if _byte(buf, at) == _CLOSE:
            return at + 1, n_stats, n_slow
        state[MEMBER_AT] = at
        guess = np.int64(texts.follower[last])
        after = _guessed(buf, at, end, guess, texts)
        if after > 0:
            name = guess
            at = _value_of_key(buf, after, end)
        else:
            begin, stop, at, escaped = _key(buf, at, end)
        if at < 0:
            return at, n_stats, n_slow
        if n_stats >= len(stats.name) or n_slow >= len(stats.slow):
            return np.int64(NO_STAT), n_stats, n_slow
        if after < 0:
            name = _intern(buf, begin, stop, escaped, _NO, texts, state)
            if name < 0:
                return name, n_stats, n_slow
            texts.follower[last] = name
        last = name
        c = _byte(buf, at)
        tag = _STRING
        value = np.int64(0)
        if c == _QUOTE:
            value, at = _token(buf, at, end, _NO, texts, state)
        elif c == _OPEN or c == _OPEN_LIST:
            value, at = _container(buf, at, end, texts, state)
        else:
            token = at
            tag, value, double, at = _number(buf, at, end)
            if tag == _DOUBLE:
                stats.double[n_stats] = double
            elif tag == _SLOW:
                stats.slow[n_slow, 0] = n_stats
                stats.slow[n_slow, 1] = token
                stats.slow[n_slow, 2] = at
                n_slow += 1
                tag = _DOUBLE
        if at < 0:
            return at, n_stats, n_slow
        if tag != _NONE:
            stats.name[n_stats] = name
            stats.tag[n_stats] = tag
            if tag != _DOUBLE:
                stats.value[n_stats] = value
            n_stats += 1


@_inner
def _flow_id(buf, at, end, texts, state):
    """An event's `id`: its value if it is a whole number, else the id of its text; and the position after it."""
    if _byte(buf, at) != _QUOTE:
        tag, value, _, after = _number(buf, at, end)
        if tag == _INT:
            return value, after
    return _token(buf, at, end, _NO, texts, state)


@_inner
def _event(buf, at, end, texts, rows, stats, state):
    """Reads the object at `at` into the next free row: the position after it, or why not.

    The row counts only once the caller says so, and so do its stats.
    """
    row = state[ROWS]
    n_stats = state[STATS]
    n_slow = state[SLOW]
    flags = 0
    phase = 0
    cat = name = pid = tid = flow = np.int64(0)
    us = frac = duration_us = duration_frac = np.int64(0)
    at += 1
    while True:
        at = _next_member(buf, at, end)
        if at < 0:
            return at
        if _byte(buf, at) == _CLOSE:
            break
        state[MEMBER_AT] = at
        begin, stop, at, _ = _key(buf, at, end)
        if at < 0:
            return at
        key = np.int64(0)
        if stop - begin <= 4:
            for k in range(begin, stop):
                key = (key << 8) | np.int64(_byte(buf, k))
        if key == _KEY_NAME or key == _KEY_CAT or key == _KEY_PID or key == _KEY_TID:
            guess = _NO
            if row > 0 and key != _KEY_NAME:
                last = rows.cat if key == _KEY_CAT else rows.pid if key == _KEY_PID else rows.tid
                guess = np.int64(last[row - 1])
            text, at = _token(buf, at, end, guess, texts, state)
            if key == _KEY_NAME:
                name = text
            elif key == _KEY_CAT:
                cat = text
            elif key == _KEY_PID:
                pid = text
                flags |= HAS_PID
            else:
                tid = text
                flags |= HAS_TID
        elif key == _KEY_PH:
            if _byte(buf, at) == _QUOTE and at + 1 < end:
                phase = _byte(buf, at + 1)
            at = skip_value(buf, at, end)
        elif key == _KEY_TS:
            us, frac, good, at = _time(buf, at, end)
            flags = flags | HAS_TIME if good else flags & ~HAS_TIME
        elif key == _KEY_DUR:
            duration_us, duration_frac, good, at = _time(buf, at, end)
            flags = flags | HAS_DURATION if good else flags & ~HAS_DURATION
        elif key == _KEY_ID:
            flow, at = _flow_id(buf, at, end, texts, state)
            flags |= HAS_FLOW
        elif key == _KEY_ARGS and _byte(buf, at) == _OPEN:
            at, n_stats, n_slow = _args(buf, at, end, texts, stats, state, n_stats, n_slow)
        else:
            at = skip_value(buf, at, end)
        if at < 0:
            return at
    if duration_us < 0 or duration_frac < 0:
        flags |= NEGATIVE
        duration_us = duration_frac = np.int64(0)
    rows.phase[row] = phase
    rows.flags[row] = flags
    rows.cat[row] = cat
    rows.name[row] = name
    rows.pid[row] = pid
    rows.tid[row] = tid
    rows.us[row] = us
    rows.frac_ps[row] = frac
    rows.duration_us[row] = duration_us
    rows.duration_frac_ps[row] = duration_frac
    rows.flow[row] = flow
    rows.stat_end[row] = n_stats
    state[STATS] = n_stats
    state[SLOW] = n_slow
    return at + 1


@compiled
def scan_events(buf, end, texts, rows, stats, state):
    """Reads the elements of a traceEvents array from `state[AT]` on.

    Args:
        buf: uint8 of shape (bytes,), read up to `end`.
        texts: the texts so far, added to.
        rows, stats: filled from `state[ROWS]` and `state[STATS]` on.
        state: int64 of shape (STATE_WIDTH,).

    Returns:
        MORE at the end of what there is, `state[AT]` then standing before what was not read; CLOSED after the closing
        bracket; FULL, TEXTS_FULL or BLOB_FULL if room is needed for the event at `state[AT]`.
    """
    at = state[AT]
    while True:
        while at < end and (_byte(buf, at) <= _SPACE or _byte(buf, at) == _COMMA):
            at += 1
        state[AT] = at
        if at >= end:
            return MORE
        c = _byte(buf, at)
        if c == _OPEN:
            if state[ROWS] >= len(rows.phase):
                return FULL
            stats_before = state[STATS]
            slow_before = state[SLOW]
            after = _event(buf, at, end, texts, rows, stats, state)
            if after >= 0:
                if state[RECOVERING] and rows.phase[state[ROWS]] == 0:  # an object inside a damaged event
                    state[STATS] = stats_before
                    state[SLOW] = slow_before
                else:
                    state[ROWS] += 1
                    state[RECOVERING] = 0
                at = after
                continue
            if after == INCOMPLETE:
                return MORE
            if after == NO_STAT:
                return FULL
            if after == NO_TEXT:
                return TEXTS_FULL
            if after == NO_BLOB:
                return BLOB_FULL
            # Going on from where it failed, not from its second byte, keeps hostile nesting linear.
            at = max(at, state[MEMBER_AT] - 1)
        elif c == _CLOSE_LIST and not state[RECOVERING]:
            state[AT] = at + 1
            return CLOSED
        if not state[RECOVERING]:
            state[RECOVERING] = 1
            if state[DAMAGED] == 0:
                state[DAMAGED_AT] = state[AT]
            state[DAMAGED] += 1
        at += 1
        while at < end and _byte(buf, at) != _OPEN:
            at += 1


@compiled
def match_pairs(group, opens, stack_next, stack_top, partner):
    """Matches beginnings with ends, the last open one first, each group by itself.

    Args:
        group: int32 of shape (n,), in the order of time.
        opens: bool of shape (n,): a beginning, else an end.
        stack_next: int64 of shape (n,), scratch.
        stack_top: int64 of shape (groups,), all -1.
        partner: int64 of shape (n,), receives the place of the other one, -1 if there is none.
    """
    for i in range(len(group)):
        partner[i] = -1
        top = stack_top[group[i]]
        if opens[i]:
            stack_next[i] = top
            stack_top[group[i]] = i
        elif top >= 0:
            partner[i] = top
            partner[top] = i
            stack_top[group[i]] = stack_next[top]


@compiled
def innermost(line, start, end, holds, stack, out):
    """For every event, the nearest event around it on its line that `holds`.

    Args:
        line, start, end: int64 of shape (n,), sorted by line, start, and falling end.
        holds: bool of shape (n,).
        stack: int64 of shape (n,), scratch.
        out: int64 of shape (n,), receives the place of that event, -1 if there is none.
    """
    depth = 0
    for i in range(len(line)):
        while depth > 0 and (line[stack[depth - 1]] != line[i] or end[stack[depth - 1]] <= start[i]):
            depth -= 1
        out[i] = -1
        for k in range(depth - 1, -1, -1):  # an event may run over the end of the one around it
            if end[stack[k]] >= end[i]:
                out[i] = stack[k]
                break
        if holds[i]:
            stack[depth] = i
            depth += 1


@compiled
def gather_stats(
    order, more, offsets, name, tag, value, extra_offsets, extra, out_offsets, out_name, out_tag, out_value
):  # fmt: skip
    """Copies the stats of events in a new order: event i gets those of the rows `order[i]` and `more[i]` (-1 for none)
    and then the extra stats `extra_offsets[i]` to `extra_offsets[i + 1]`."""
    extra_name, extra_tag, extra_value = extra
    to = 0
    for i in range(len(order)):
        for source in (order[i], more[i]):
            if source < 0:
                continue
            for row in range(offsets[source], offsets[source + 1]):
                out_name[to] = name[row]
                out_tag[to] = tag[row]
                out_value[to] = value[row]
                to += 1
        for row in range(extra_offsets[i], extra_offsets[i + 1]):
            out_name[to] = extra_name[row]
            out_tag[to] = extra_tag[row]
            out_value[to] = extra_value[row]
            to += 1
        out_offsets[i + 1] = to
