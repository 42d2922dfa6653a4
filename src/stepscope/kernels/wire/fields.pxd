"""Fields of messages: numbers, ranges, and what is wrong with them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from stepscope.kernels.varint cimport read_varint

cpdef enum:
    # Why a range could not be read to its end.
    OK = 0
    BAD_VARINT = 1
    BAD_TAG = 2
    OVERRUN = 3

cpdef enum:
    # Columns of `scan_fields`' result, one row a field: the row of its message; its number, negative if it runs over
    # the end; for a length-delimited field its range and place, for others the value and -1.
    FIELD_MESSAGE
    FIELD_NUMBER
    FIELD_START
    FIELD_STOP
    FIELD_PLACE
    FIELD_WIDTH

cdef enum:
    # Wire types.
    VARINT = 0
    FIXED64 = 1
    DELIMITED = 2
    GROUP_START = 3
    GROUP_END = 4
    FIXED32 = 5

cdef struct Field:
    int64_t number
    int wire
    int64_t value  # of a number, as int64 bits
    const uint8_t* start  # of a length-delimited field
    const uint8_t* stop
    const uint8_t* place  # where its length or value stands; texts go by it
    int error


cdef inline bint is_group(const uint8_t* at) noexcept nogil:
    """Whether a field is a group, which takes more than a head to be skipped."""
    return (at[0] & 7) == GROUP_START


cdef inline int varint_error(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Why there is no number at a place: the range ends, or the number does not."""
    return OVERRUN if end - at < 10 else BAD_VARINT


cdef inline const uint8_t* fail(Field* field, int error) noexcept nogil:
    field.error = error
    return NULL


cdef inline const uint8_t* read_tag(const uint8_t* at, const uint8_t* end, Field* field) noexcept nogil:
    """Reads number and wire type.  Returns what follows, or NULL if they are damaged."""
    cdef uint64_t tag = 0
    cdef const uint8_t* next = read_varint(at, end, &tag)
    field.number = field.wire = 0
    if next == NULL:
        return fail(field, varint_error(at, end))
    if tag < 8 or tag > <uint64_t>0xFFFFFFFF or (tag & 7) > <uint64_t>FIXED32:
        return fail(field, BAD_TAG)
    field.number, field.wire = <int64_t>(tag >> 3), <int>(tag & 7)
    return next


cdef inline const uint8_t* read_value(const uint8_t* at, const uint8_t* end, Field* field) noexcept nogil:
    """Reads the value of a field whose tag is read, or its range.  Returns what follows, or NULL if it is damaged; the
    range is then what there is of it."""
    cdef uint64_t value = 0
    cdef int64_t width
    cdef const uint8_t* next
    field.place = at
    field.value = 0
    field.start = field.stop = NULL
    if field.wire == VARINT or field.wire == DELIMITED:
        next = read_varint(at, end, &value)
        field.start = next if next != NULL else end
        field.stop = end
        if next == NULL:
            return fail(field, varint_error(at, end))
        if field.wire == VARINT:
            field.value = <int64_t>value
            return next
        if value > <uint64_t>(end - next):
            return fail(field, OVERRUN)
        field.stop = next + value
        return field.stop
    if field.wire == FIXED64 or field.wire == FIXED32:
        width = 8 if field.wire == FIXED64 else 4
        if width > end - at:
            return fail(field, OVERRUN)
        memcpy(&value, at, <size_t>width)
        field.value = <int64_t>value
        return at + width
    return at


cdef inline const uint8_t* _read_common(const uint8_t* at, const uint8_t* end, Field* field) noexcept nogil:
    """Reads a number or a range whose tag takes up to two bytes, as most do; NULL for any other field."""
    cdef uint64_t tag, value = 0
    if end - at < 3:
        return NULL
    tag = at[0]
    at += 1
    if tag >= 0x80:
        if at[0] >= 0x80:
            return NULL
        tag = (tag & 0x7F) | <uint64_t>at[0] << 7
        at += 1
    field.number, field.wire = <int64_t>(tag >> 3), <int>(tag & 7)
    if field.number == 0 or not (field.wire == VARINT or field.wire == DELIMITED):
        return NULL
    field.place = at
    at = read_varint(at, end, &value)
    if field.wire == VARINT:
        field.value = <int64_t>value
        field.start = field.stop = NULL
        return at
    if at == NULL or value > <uint64_t>(end - at):
        return NULL
    field.value = 0
    field.start, field.stop = at, at + value
    return field.stop


cdef inline const uint8_t* read_field(const uint8_t* at, const uint8_t* end, Field* field) noexcept nogil:
    """Reads one field.  Returns where the next starts, or NULL if it is damaged, with the reason in `error`.

    A group counts as one field without a value.
    """
    cdef int64_t depth = 0
    cdef const uint8_t* next
    field.error = OK
    next = _read_common(at, end, field)
    if next != NULL:
        return next
    while True:
        at = read_tag(at, end, field)
        if at == NULL:
            return NULL
        at = read_value(at, end, field)
        if at == NULL:
            return NULL
        depth += field.wire == GROUP_START
        depth -= field.wire == GROUP_END
        if depth < 0:
            field.number = field.wire = 0
            return fail(field, BAD_TAG)
        if depth == 0:
            return at
