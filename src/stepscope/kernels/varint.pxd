"""Reading the numbers of protobuf's wire format.  No function reads at or past the end that it is given."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef inline const uint8_t* read_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil:
    """Reads a number.  Returns where what follows it starts; NULL if it does not end before `end`."""
    if at < end and at[0] < 0x80:
        value[0] = at[0]
        return at + 1
    return read_long_varint(at, end, value)


cdef inline const uint8_t* read_long_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil:
    """The same for a number of any length; at most ten bytes count, and of the tenth one bit."""
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
