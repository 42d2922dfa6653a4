"""Reading the numbers of protobuf's wire format.  No function reads at or past the end that it is given."""

from libc.stdint cimport uint8_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(_MSC_VER)
    #include <intrin.h>
    #endif

    #if defined(_MSC_VER) || (defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
    /* Reads a number of up to eight bytes out of the eight at `at`, without a branch a byte.  Returns how many bytes it
       takes, 0 if it takes more than these. */
    static inline int stepscope_varint8(const uint8_t* at, uint64_t* value) {
        uint64_t word, last;
        memcpy(&word, at, 8);
        last = ~word & UINT64_C(0x8080808080808080);
        if (!last)
            return 0;
        word &= (last ^ (last - 1)) & UINT64_C(0x7F7F7F7F7F7F7F7F);
        word = (word & UINT64_C(0x007F007F007F007F)) | (word & UINT64_C(0x7F007F007F007F00)) >> 1;
        word = (word & UINT64_C(0x00003FFF00003FFF)) | (word & UINT64_C(0x3FFF00003FFF0000)) >> 2;
        word = (word & UINT64_C(0x000000000FFFFFFF)) | (word & UINT64_C(0x0FFFFFFF00000000)) >> 4;
        *value = word;
    #if defined(_MSC_VER)
        { unsigned long bit; _BitScanForward64(&bit, last); return (int)(bit >> 3) + 1; }
    #else
        return (__builtin_ctzll(last) >> 3) + 1;
    #endif
    }
    #else
    static inline int stepscope_varint8(const uint8_t* at, uint64_t* value) { (void)at; (void)value; return 0; }
    #endif
    """
    int varint8 "stepscope_varint8"(const uint8_t* at, uint64_t* value) noexcept nogil


cdef inline const uint8_t* read_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil:
    """Reads a number.  Returns where what follows it starts; NULL if it does not end before `end`."""
    return read_varint_inside(at, end, end, value)


cdef inline const uint8_t* read_varint_inside(
    const uint8_t* at, const uint8_t* end, const uint8_t* limit, uint64_t* value
) noexcept nogil:
    """The same in a message that lies in memory which may be read up to `limit`, which is not before `end`: eight bytes
    at once are there more often."""
    cdef uint64_t found = 0  # a variable of its own, so that the caller's may stay in a register
    cdef int size
    if at >= end:
        return NULL
    if at[0] < 0x80:
        value[0] = at[0]
        return at + 1
    if limit - at >= 8:
        size = varint8(at, &found)
        if size:
            value[0] = found
            return at + size if size <= end - at else NULL
    at = read_long_varint(at, end, &found)
    value[0] = found
    return at


cdef inline const uint8_t* read_long_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil:
    """The same byte by byte, for a number of any length; at most ten bytes count, and of the tenth one bit."""
    cdef uint64_t found = 0
    cdef int shift = 0
    while at < end and shift < 70:
        found |= <uint64_t>(at[0] & 0x7F) << shift
        if at[0] < 0x80:
            value[0] = found
            return at + 1
        at += 1
        shift += 7
    value[0] = found
    return NULL
