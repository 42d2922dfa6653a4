"""Numbers and times, read as decimals so that they stay exact."""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from stepscope.kernels.trace_json.layout import DOUBLE, INT, MALFORMED, NONE, SLOW_DOUBLE, TIME_LIMIT_US, UINT
from stepscope.kernels.trace_json.values import bare_end, ends_bare, string_end
from stepscope.kernels.trace_json.words import DOT, MINUS, NINE, NO, PLUS, QUOTE, ZERO, byte_at, inner

_TENTH_OF_MOST = np.uint64(1844674407370955161)  # of 2^64 - 1, which ends with 5
_POWERS = np.array([10.0**k for k in range(23)])  # exact in a double
_TENS = np.array([10**k for k in range(20)], np.uint64)  # all that fit
_TRUE, _FALSE = 0x74727565, 0x66616C7365


@inner
def _digits(buf, at, end, mantissa, kept):
    """Reads digits into `mantissa` while they fit: (mantissa, digits kept, digits dropped, position)."""
    dropped = 0
    while at < end:
        c = byte_at(buf, at)
        if c < ZERO or c > NINE:
            break
        digit = np.uint64(c - ZERO)
        if dropped or mantissa > _TENTH_OF_MOST or (mantissa == _TENTH_OF_MOST and digit > np.uint64(5)):
            dropped += 1
        else:
            mantissa = mantissa * np.uint64(10) + digit
            kept += 1
        at += 1
    return mantissa, kept, dropped, at


@inner
def _exponent(buf, at, end):
    """The exponent whose `e` is at `at`, at most 9999 either way, and the position after it, or `at` without digits."""
    letter = at
    at += 1
    negative = False
    if at < end and (byte_at(buf, at) == MINUS or byte_at(buf, at) == PLUS):
        negative = byte_at(buf, at) == MINUS
        at += 1
    value = 0
    first = at
    while at < end and ZERO <= byte_at(buf, at) <= NINE:
        value = min(value * 10 + (byte_at(buf, at) - ZERO), 9999)
        at += 1
    return (-value if negative else value), (at if at > first else letter)


@inner
def read_number(buf, at, end):
    """A bare token as a stat: (tag, integer, double, position after it)."""
    negative = byte_at(buf, at) == MINUS
    begin = at + 1 if negative else at
    mantissa, kept, dropped, pos = _digits(buf, begin, end, np.uint64(0), NO)
    if pos > begin and pos < end and not dropped and ends_bare(byte_at(buf, pos)):
        if mantissa <= np.uint64(0x7FFFFFFFFFFFFFFF):
            value = np.int64(mantissa)
            return INT, (-value if negative else value), 0.0, pos
        if not negative:
            return UINT, np.int64(mantissa), 0.0, pos
    after = bare_end(buf, at, end)
    if after < 0 or after == at:
        return NONE, np.int64(0), 0.0, np.int64(MALFORMED) if after == at else after
    if pos == begin:
        word = np.int64(0)
        for k in range(at, min(after, at + 6)):
            word = (word << 8) | np.int64(byte_at(buf, k))
        if word == _TRUE or word == _FALSE:
            return INT, np.int64(word == _TRUE), 0.0, after
        return NONE, np.int64(0), 0.0, after  # null, NaN, Infinity, N/A: not known
    exponent = dropped
    exact = dropped == 0
    if pos < after and byte_at(buf, pos) == DOT:
        whole = kept
        mantissa, kept, dropped, pos = _digits(buf, pos + 1, after, mantissa, kept)
        exponent -= kept - whole
        exact = exact and dropped == 0
    if pos < after and (byte_at(buf, pos) | 0x20) == 0x65:  # e
        power, pos = _exponent(buf, pos, after)
        exponent += power
    if pos != after:
        return NONE, np.int64(0), 0.0, after
    if exact and mantissa <= np.uint64(1 << 53) and -22 <= exponent <= 22:
        # Both operands are exact doubles, so that one rounding gives the nearest double.
        double = np.float64(mantissa)
        double = double * _POWERS[exponent] if exponent >= 0 else double / _POWERS[-exponent]
        return DOUBLE, np.int64(0), (-double if negative else double), after
    return SLOW_DOUBLE, np.int64(0), 0.0, after


@inner
def _exponential(buf, at, end):
    """A time written with an exponent, without its sign: (whole microseconds, picoseconds, True if it is one, position
    after it).  All digits count: C++ libraries write `1.6231430898614251e+15` where others write no exponent."""
    zero = np.int64(0)
    mantissa, whole, dropped, pos = _digits(buf, at, end, np.uint64(0), NO)
    kept = whole
    if not dropped and pos < end and byte_at(buf, pos) == DOT:
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


@inner
def read_time(buf, at, end):
    """A time in microseconds: (whole microseconds, picoseconds, True if it is one, position after it).

    A quoted number counts.  Digits beyond the picosecond round.
    """
    zero = np.int64(0)
    quoted = byte_at(buf, at) == QUOTE
    if quoted:
        stop, _ = string_end(buf, at, end)
        begin = at + 1
        after = stop + 1
    else:
        stop = bare_end(buf, at, end)
        begin = at
        after = stop
    if stop < 0:
        return zero, zero, False, stop
    negative = begin < stop and byte_at(buf, begin) == MINUS
    if negative:
        begin += 1
    mantissa, _, dropped, pos = _digits(buf, begin, stop, np.uint64(0), NO)
    if pos == begin or dropped or mantissa > np.uint64(TIME_LIMIT_US):
        return zero, zero, False, after
    whole = np.int64(mantissa)
    frac = zero
    if pos < stop and byte_at(buf, pos) == DOT:
        pos += 1
        scale = np.int64(100_000)
        while pos < stop and ZERO <= byte_at(buf, pos) <= NINE:
            digit = np.int64(byte_at(buf, pos) - ZERO)
            if scale > 0:
                frac += digit * scale
            elif scale == 0:
                frac += 1 if digit >= 5 else 0
                scale = np.int64(-1)
            if scale > 0:
                scale //= 10
            pos += 1
    if pos < stop and (byte_at(buf, pos) | 0x20) == 0x65:  # e
        whole, frac, good, pos = _exponential(buf, begin, stop)
        if not good:
            return zero, zero, False, after
    if pos != stop:
        return zero, zero, False, after
    if negative:
        return -whole, -frac, True, after
    return whole, frac, True, after
