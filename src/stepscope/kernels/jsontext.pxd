"""Values written as JSON into bytes that grow."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from stepscope.kernels.memory cimport resize

cdef extern from *:
    """
    #include <math.h>
    #include <stdio.h>
    #include <stdlib.h>
    /* The fewest digits that give the number again, as JSON; what JSON cannot say is null. */
    static int stepscope_json_double(char* into, double value) {
        int digits, length = 0;
        if (!isfinite(value))
            return snprintf(into, 32, "null");
        for (digits = 15; digits <= 17; digits++) {
            length = snprintf(into, 32, "%.*g", digits, value);
            if (strtod(into, NULL) == value)
                break;
        }
        return length;
    }
    /* Whether a text is a number with a point, as JSON writes it, and which. */
    static int stepscope_read_real(const char* text, int length, double* value) {
        static const double POWERS[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
        char copy[32], *after;
        int k, points = 0, behind = 0;
        long long digits = 0;
        if (length < 3 || length > 31)
            return 0;
        /* Digits that a double holds, divided by a power of ten that it holds: rounded once, so as strtod rounds. */
        for (k = text[0] == '-'; k < length && length <= 16; k++) {
            if (text[k] == '.' && !points)
                points = 1;
            else if (text[k] >= '0' && text[k] <= '9')
                digits = 10 * digits + (text[k] - '0'), behind += points;
            else
                break;
        }
        if (points && k == length) {
            *value = (text[0] == '-' ? -1.0 : 1.0) * (double)digits / POWERS[behind];
            return 1;
        }
        points = 0;
        for (k = 0; k < length; k++) {
            points += text[k] == '.';
            if (!(text[k] >= '0' && text[k] <= '9') && text[k] != '.' && text[k] != '-' && text[k] != '+' && text[k] != 'e')
                return 0;
            copy[k] = text[k];
        }
        copy[length] = 0;
        *value = strtod(copy, &after);
        return points == 1 && after == copy + length && isfinite(*value);
    }
    static int stepscope_json_integer(char* into, long long value, int is_unsigned) {
        unsigned long long rest = value < 0 && !is_unsigned ? 0ULL - (unsigned long long)value : (unsigned long long)value;
        int minus = value < 0 && !is_unsigned, length = minus, at;
        unsigned long long power = rest;
        do length++; while (power /= 10);
        for (at = length; at > minus; rest /= 10)
            into[--at] = (char)('0' + rest % 10);
        if (minus)
            into[0] = '-';
        return length;
    }
    """
    int json_double "stepscope_json_double"(char* into, double value) noexcept nogil
    bint read_real "stepscope_read_real"(const char* text, int length, double* value) noexcept nogil
    int json_integer "stepscope_json_integer"(char* into, long long value, int is_unsigned) noexcept nogil

cdef struct Scratch:
    # Whoever makes one (all zeros) frees its `data`.
    uint8_t* data
    int64_t size
    int64_t room


cdef inline bint put_bytes(Scratch* into, const void* data, int64_t count) noexcept nogil:
    """Appends bytes.  False if there is no memory."""
    cdef int64_t room = into.room if into.room else 1 << 10
    cdef void* larger
    while room < into.size + count:
        room *= 2
    if room > into.room:
        larger = resize(into.data, <size_t>room)
        if larger == NULL:
            return False
        into.data, into.room = <uint8_t*>larger, room
    memcpy(into.data + into.size, data, <size_t>count)
    into.size += count
    return True


cdef inline bint put_json_text(Scratch* into, const uint8_t* text, int64_t length) noexcept nogil:
    """Appends a JSON string.  Bytes beyond ASCII stay as they are."""
    cdef const char* digits = b"0123456789abcdef"
    cdef uint8_t escape[6]
    cdef int64_t at, done = 0
    if not put_bytes(into, b'"', 1):
        return False
    for at in range(length):
        if text[at] >= 0x20 and text[at] != 0x22 and text[at] != 0x5C:
            continue
        if at > done and not put_bytes(into, text + done, at - done):
            return False
        done = at + 1
        memcpy(escape, b"\\u00", 4)
        escape[4], escape[5] = digits[text[at] >> 4], digits[text[at] & 15]
        if not put_bytes(into, escape, 6):
            return False
    if done < length and not put_bytes(into, text + done, length - done):  # an empty text may be NULL
        return False
    return put_bytes(into, b'"', 1)


cdef inline bint put_json_integer(Scratch* into, int64_t value, bint is_unsigned) noexcept nogil:
    cdef char digits[32]
    return put_bytes(into, digits, json_integer(digits, value, is_unsigned))


cdef inline bint put_json_double(Scratch* into, double value) noexcept nogil:
    cdef char digits[32]
    return put_bytes(into, digits, json_double(digits, value))
