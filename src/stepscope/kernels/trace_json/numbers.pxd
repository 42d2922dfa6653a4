"""Numbers and times, read as decimals so that they stay exact."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from stepscope.kernels.trace_json.layout cimport (
    DOT, DOUBLE, INT, MINUS, NINE, NONE, PLUS, QUOTE, SLOW_DOUBLE, SMALL_E, UINT, ZERO,
)
from stepscope.kernels.trace_json.values cimport Quoted, bare_end, ends_bare, string_end, token_end
from stepscope.kernels.trace_json.words cimport MOST_DIGITS, Window, as_digits, byte_at, digits_in, number_of, word_at

cdef extern from *:
    """
    /* Powers of ten that are exact in a double. */
    static const double EXACT_POWERS[23] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22
    };
    /* All powers of ten that 64 bits hold. */
    static const unsigned long long TENS[20] = {
        1ULL, 10ULL, 100ULL, 1000ULL, 10000ULL, 100000ULL, 1000000ULL, 10000000ULL, 100000000ULL, 1000000000ULL,
        10000000000ULL, 100000000000ULL, 1000000000000ULL, 10000000000000ULL, 100000000000000ULL,
        1000000000000000ULL, 10000000000000000ULL, 100000000000000000ULL, 1000000000000000000ULL,
        10000000000000000000ULL
    };
    """
    const double EXACT_POWERS[23]
    const uint64_t TENS[20]

cdef enum:
    TENS_COUNT = 20
    MOST_EXACT_POWER = 22
    MOST_POWER = 9999  # of an exponent; what is larger is 0 or infinite as well


cdef struct Digits:
    # Decimal digits as a number: how many it holds, how many did not fit, and the position after them.
    uint64_t mantissa
    int64_t kept
    int64_t dropped
    int64_t after


cdef struct Power:
    int64_t value
    int64_t after


cdef struct Number:
    # A stat: its tag, its value as the tag wants it, and the position after it or why there is none.
    int tag
    int64_t integer
    double real
    int64_t after


cdef struct Time:
    # Whole microseconds and picoseconds, whether it is a time, and the position after it.
    int64_t us
    int64_t frac_ps
    bint good
    int64_t after


cdef inline uint64_t time_limit_us() noexcept nogil:
    """Times beyond this many microseconds (some 140,000 years) are damage."""
    return <uint64_t>1 << 62


cdef inline Digits read_digits(Window text, int64_t at, uint64_t mantissa, int64_t kept) noexcept nogil:
    """Adds digits to a number while they fit."""
    cdef uint64_t tenth_of_most = 1844674407370955161  # of 2^64 - 1, which ends with 5
    cdef uint64_t digit, word
    cdef int count
    cdef Digits found
    found.dropped = 0
    while at + MOST_DIGITS <= text.end and mantissa < TENS[TENS_COUNT - 1 - MOST_DIGITS]:
        word = as_digits(word_at(text, at))
        count = digits_in(word)
        if count:
            mantissa = mantissa * TENS[count] + number_of(word, count)
            kept += count
            at += count
        if count < MOST_DIGITS:
            found.mantissa = mantissa
            found.kept = kept
            found.after = at
            return found
    while at < text.end:
        digit = <uint64_t>byte_at(text, at) - ZERO
        if digit > 9:
            break
        if found.dropped or mantissa > tenth_of_most or (mantissa == tenth_of_most and digit > 5):
            mantissa += found.dropped == 0 and digit >= 5  # rounded to what fits
            found.dropped += 1
        else:
            mantissa = mantissa * 10 + digit
            kept += 1
        at += 1
    found.mantissa = mantissa
    found.kept = kept
    found.after = at
    return found


cdef inline Power read_power(Window text, int64_t at) noexcept nogil:
    """The exponent whose `e` is at `at`, at most 9999 either way; without digits, `after` is `at`."""
    cdef int64_t first
    cdef bint negative = False
    cdef Power found
    found.value = 0
    found.after = at
    at += 1
    if at < text.end and (byte_at(text, at) == MINUS or byte_at(text, at) == PLUS):
        negative = byte_at(text, at) == MINUS
        at += 1
    first = at
    while at < text.end and ZERO <= byte_at(text, at) <= NINE:
        found.value = min(found.value * 10 + (byte_at(text, at) - ZERO), <int64_t>MOST_POWER)
        at += 1
    if negative:
        found.value = -found.value
    if at > first:
        found.after = at
    return found


cdef inline Number read_number(Window text, int64_t at) noexcept nogil:
    """A bare token as a stat."""
    cdef bint negative = byte_at(text, at) == MINUS
    cdef int64_t begin = at + 1 if negative else at
    cdef Digits digits = read_digits(text, begin, 0, 0)
    cdef Number found
    found.tag = NONE
    found.integer = 0
    found.real = 0.0
    found.after = digits.after
    if digits.after > begin and digits.after < text.end and not digits.dropped and ends_bare(byte_at(text, digits.after)):
        if digits.mantissa <= <uint64_t>INT64_MAX:
            found.tag = INT
            found.integer = -<int64_t>digits.mantissa if negative else <int64_t>digits.mantissa
            return found
        if not negative:
            found.tag = UINT
            found.integer = <int64_t>digits.mantissa
            return found
    found.after = token_end(text, at)
    if found.after < 0:
        return found
    if digits.after == begin:
        _read_word(text, at, &found)
    else:
        _read_real(text, begin, digits, negative, &found)
    return found


cdef inline void _read_word(Window text, int64_t at, Number *found) noexcept nogil:
    """`true` and `false` are 1 and 0; null, NaN, Infinity and N/A are not known."""
    cdef uint64_t word = 0
    cdef int64_t k
    for k in range(at, min(found.after, at + 6)):
        word = (word << 8) | byte_at(text, k)
    if word == <uint64_t>0x74727565 or word == <uint64_t>0x66616C7365:
        found.tag = INT
        found.integer = word == <uint64_t>0x74727565


cdef inline void _read_real(Window text, int64_t begin, Digits digits, bint negative, Number *found) noexcept nogil:
    """A number with a fraction, an exponent or too many digits, of which `digits` are the first."""
    cdef Window token
    cdef int64_t exponent = digits.dropped
    cdef int64_t whole = digits.kept
    cdef bint exact = digits.dropped == 0
    cdef Power power
    token.data = text.data
    token.end = found.after
    if digits.after < token.end and byte_at(token, digits.after) == DOT:
        digits = read_digits(token, digits.after + 1, digits.mantissa, whole)
        exponent -= digits.kept - whole
        exact = exact and digits.dropped == 0
    if digits.after < token.end and (byte_at(token, digits.after) | 0x20) == SMALL_E:
        power = read_power(token, digits.after)
        exponent += power.value
        digits.after = power.after
    if digits.after != token.end:
        return
    found.tag = SLOW_DOUBLE
    if exact and digits.mantissa <= <uint64_t>1 << 53 and -MOST_EXACT_POWER <= exponent <= MOST_EXACT_POWER:
        # Both operands are exact doubles, so that one rounding gives the nearest double.
        found.tag = DOUBLE
        found.real = <double>digits.mantissa
        found.real = found.real * EXACT_POWERS[exponent] if exponent >= 0 else found.real / EXACT_POWERS[-exponent]
        if negative:
            found.real = -found.real


cdef inline Time read_time(Window text, int64_t at) noexcept nogil:
    """A time in microseconds.  A quoted number counts.  Digits beyond the picosecond round."""
    cdef Window token
    cdef Digits digits
    cdef Quoted quoted
    cdef int64_t begin, scale
    cdef uint8_t digit
    cdef bint negative
    cdef Time found
    found.us = found.frac_ps = 0
    found.good = False
    token.data = text.data
    if byte_at(text, at) <= NINE and byte_at(text, at) >= ZERO:  # most times are whole numbers
        digits = read_digits(text, at, 0, 0)
        if (
            digits.after < text.end and ends_bare(byte_at(text, digits.after)) and not digits.dropped
            and digits.mantissa <= time_limit_us()
        ):
            found.us = <int64_t>digits.mantissa
            found.good = True
            found.after = digits.after
            return found
    if byte_at(text, at) == QUOTE:
        quoted = string_end(text, at)
        token.end = quoted.stop
        begin = at + 1
        found.after = quoted.stop + 1 if quoted.stop >= 0 else quoted.stop
    else:
        token.end = found.after = bare_end(text, at)
        begin = at
    if token.end < 0:
        return found
    negative = begin < token.end and byte_at(token, begin) == MINUS
    if negative:
        begin += 1
    digits = read_digits(token, begin, 0, 0)
    if digits.after == begin or digits.dropped or digits.mantissa > time_limit_us():
        return found
    found.us = <int64_t>digits.mantissa
    at = digits.after
    if at < token.end and byte_at(token, at) == DOT:
        at += 1
        scale = 100_000
        while at < token.end and ZERO <= byte_at(token, at) <= NINE:
            digit = byte_at(token, at) - ZERO
            if scale > 0:
                found.frac_ps += digit * scale
                scale = scale // 10
            elif scale == 0:
                found.frac_ps += digit >= 5
                scale = -1
            at += 1
    found.good = True
    if at < token.end and (byte_at(token, at) | 0x20) == SMALL_E:
        at = _read_exponential(token, begin, &found)
    found.good = found.good and at == token.end
    if not found.good:
        found.us = found.frac_ps = 0
    elif negative:
        found.us = -found.us
        found.frac_ps = -found.frac_ps
    return found


cdef inline int64_t _read_exponential(Window token, int64_t at, Time *found) noexcept nogil:
    """A time written with an exponent, without its sign; returns the position after it.  All digits count: C++
    libraries write `1.6231430898614251e+15` where others write no exponent."""
    cdef Digits digits = read_digits(token, at, 0, 0)
    cdef int64_t whole = digits.kept
    cdef int64_t places  # behind the decimal point
    cdef uint64_t mantissa, rest, amount
    cdef Power power
    if not digits.dropped and digits.after < token.end and byte_at(token, digits.after) == DOT:
        digits = read_digits(token, digits.after + 1, digits.mantissa, whole)
    power = read_power(token, digits.after)
    places = digits.kept - whole - power.value
    mantissa = digits.mantissa
    while places < 0 and mantissa <= time_limit_us() // 10:
        mantissa *= 10
        places = places + 1 if mantissa else 0
    found.good = False
    if places < 0:
        return power.after
    while places >= TENS_COUNT:  # a picosecond is the sixth place
        mantissa = mantissa // 10
        places = places - 1 if mantissa else 0
    rest = mantissa % TENS[places]
    if places <= 6:
        found.frac_ps = <int64_t>(rest * TENS[6 - places])
    else:
        found.frac_ps = <int64_t>((rest + TENS[places - 6] // 2) // TENS[places - 6])
    amount = mantissa // TENS[places]
    found.us = <int64_t>amount
    found.good = amount <= time_limit_us()
    return power.after
