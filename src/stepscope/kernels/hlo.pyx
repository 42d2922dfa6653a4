"""Finds the instructions in the serialized program of an XLA module.

    program (HloProto) 1: module 3: computation 2: instruction 1: name, 2: opcode, 7: metadata 1: op type, 2: op name

Everything stays inside the range of the message it belongs to; what is damaged ends that message, not the walk.
"""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t

from stepscope.kernels.varint cimport read_varint

cpdef enum:
    # Columns of `instructions`' table: where a text lies and how long it is.
    NAME_AT
    NAME_LEN
    OPCODE_AT
    OPCODE_LEN
    TYPE_AT
    TYPE_LEN
    OP_AT
    OP_LEN
    WIDTH

cdef enum:
    # How deep a message is.
    _PROGRAM
    _MODULE
    _COMPUTATION
    _INSTRUCTION
    _METADATA
    _DEPTHS

cdef enum:
    _VARINT = 0
    _FIXED64 = 1
    _DELIMITED = 2
    _FIXED32 = 5


cdef inline uint64_t _way(int depth) noexcept nogil:
    """The number of the field that leads one deeper."""
    if depth == _PROGRAM:
        return 1
    if depth == _MODULE:
        return 3
    if depth == _COMPUTATION:
        return 2
    return 7 if depth == _INSTRUCTION else UINT64_MAX


cdef const uint8_t* _read_field(
    const uint8_t* at, const uint8_t* end, uint64_t* number, int* wire, uint64_t* value
) noexcept nogil:
    """Reads a field's tag and, of a number or a message, its value or length.

    Returns where the message or the next field starts; NULL if the field is damaged.
    """
    cdef uint64_t tag
    cdef int64_t width
    at = read_varint(at, end, &tag)
    if at == NULL:
        return NULL
    number[0], wire[0] = tag >> 3, <int>(tag & 7)
    if wire[0] == _VARINT or wire[0] == _DELIMITED:
        at = read_varint(at, end, value)
        if at != NULL and wire[0] == _DELIMITED and value[0] > <uint64_t>(end - at):
            return NULL
        return at
    width = 8 if wire[0] == _FIXED64 else 4 if wire[0] == _FIXED32 else 0
    return at + width if 0 < width <= end - at else NULL


def instructions(const uint8_t[::1] buf, int64_t[:, ::1] table):
    """Fills one row for each instruction.

    Args:
        buf: uint8 of shape (bytes,), a serialized HloProto.
        table: int64 of shape (room, WIDTH), zeros.

    Returns:
        how many instructions there are, whether they fit or not.
    """
    if not buf.shape[0]:
        return 0
    cdef const uint8_t* start = &buf[0]
    cdef const uint8_t* stop[_DEPTHS]
    cdef const uint8_t* at = start
    cdef uint64_t number = 0, length = 0
    cdef int64_t count = 0, column
    cdef int depth = _PROGRAM, wire = 0
    stop[_PROGRAM] = start + buf.shape[0]
    with nogil:
        while depth >= 0:
            if at >= stop[depth]:
                depth -= 1
                continue
            at = _read_field(at, stop[depth], &number, &wire, &length)
            if at == NULL:
                at = stop[depth]
            elif wire == _DELIMITED and number == _way(depth):
                count += depth == _COMPUTATION
                depth += 1
                stop[depth] = at + length
            elif wire == _DELIMITED:
                if depth >= _INSTRUCTION and 1 <= number <= 2 and count <= table.shape[0]:
                    column = (NAME_AT if depth == _INSTRUCTION else TYPE_AT) + 2 * (<int64_t>number - 1)
                    table[count - 1, column] = at - start
                    table[count - 1, column + 1] = <int64_t>length
                at += length
    return count
