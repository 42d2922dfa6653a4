"""Instructions of serialized XLA programs as rows of numbers, and texts of programs by what they say.

    instruction 1: name 2: opcode 3: shape 7: metadata { 1: op type, 2: op name } 9: parameter 11: fusion kind
                13: tuple index 35: id 36: operands 38: called computations

Everything stays inside the range of the message that it belongs to; damage ends that message and no other.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from stepscope.kernels.growing cimport Growing, as_table, push
from stepscope.kernels.varint cimport read_varint
from stepscope.kernels.wire.fields cimport DELIMITED, OK, OVERRUN, VARINT, Field, read_field
from stepscope.kernels.wire.texts cimport Interner, Text, hash_text

cpdef enum:
    # Columns of `scan_instructions`' table.  Of a text or a message the start, and in the next column the stop.
    NAME
    NAME_STOP
    OPCODE
    OPCODE_STOP
    SHAPE
    SHAPE_STOP
    METADATA
    METADATA_STOP
    OP_TYPE
    OP_TYPE_STOP
    OP_NAME
    OP_NAME_STOP
    FUSION_KIND
    FUSION_KIND_STOP
    ID
    PARAMETER
    TUPLE_INDEX
    # Where the operands and the called computations of an instruction end in their lists.
    OPERANDS_STOP
    CALLED_STOP
    DAMAGED
    WIDTH


cdef inline int _text_column(int64_t number) noexcept nogil:
    """The column of a text or message of an instruction; -1 for one that has none."""
    if number == 1:
        return NAME
    if number == 2:
        return OPCODE
    if number == 3:
        return SHAPE
    if number == 7:
        return METADATA
    return FUSION_KIND if number == 11 else -1


cdef inline int _number_column(int64_t number) noexcept nogil:
    """The column of a number of an instruction; -1 for one that has none."""
    if number == 35:
        return ID
    if number == 9:
        return PARAMETER
    return TUPLE_INDEX if number == 13 else -1


cdef int _push_numbers(const Field* field, Growing* into) except -1 nogil:
    """Appends the numbers of a repeated field, packed or not.  What is cut is left out."""
    cdef const uint8_t* at = field.start
    cdef uint64_t value = 0
    if field.wire == VARINT:
        push(into, field.value)
        return 0
    while at < field.stop:
        at = read_varint(at, field.stop, &value)
        if at == NULL:
            return 0
        push(into, <int64_t>value)
    return 0


cdef void _read_metadata(const uint8_t* base, const Field* inside, int64_t* row) noexcept nogil:
    cdef const uint8_t* at = inside.start
    cdef Field field
    while at < inside.stop:
        at = read_field(at, inside.stop, &field)
        if at == NULL:
            if field.wire != DELIMITED or field.error != OVERRUN:
                return
            at = inside.stop
        if field.wire == DELIMITED and 1 <= field.number <= 2:
            row[OP_TYPE + 2 * (field.number - 1)] = field.start - base
            row[OP_TYPE_STOP + 2 * (field.number - 1)] = field.stop - base


cdef int _read_instruction(
    const uint8_t* base, const uint8_t* at, const uint8_t* end, int64_t* row, Growing* operands, Growing* called
) except -1 nogil:
    cdef Field field
    cdef int column
    while at < end:
        at = read_field(at, end, &field)
        if at == NULL:
            row[DAMAGED] = 1
            if field.wire != DELIMITED or field.error != OVERRUN:
                return 0
            at = end  # the last field as far as it goes
        if field.number == 36:
            _push_numbers(&field, operands)
        elif field.number == 38:
            _push_numbers(&field, called)
        elif field.wire == DELIMITED:
            column = _text_column(field.number)
            if column >= 0:
                row[column], row[column + 1] = field.start - base, field.stop - base
            if column == METADATA:
                _read_metadata(base, &field, row)
        elif field.wire == VARINT:
            column = _number_column(field.number)
            if column >= 0:
                row[column] = field.value
    return 0


def scan_instructions(
    const uint8_t[::1] buf, const int64_t[::1] begins, const int64_t[::1] ends, int64_t[:, ::1] table
):
    """Fills one row for each instruction.

    Args:
        buf: uint8 of shape (bytes,).
        begins, ends: int64 of shape (instructions,), their ranges, which lie in `buf`.
        table: int64 of shape (instructions, WIDTH), zeros.

    Returns:
        the ids of all operands, and those of all called computations: two int64 of shape (n, 1).
    """
    cdef Growing operands = Growing(NULL, 0, 0)
    cdef Growing called = Growing(NULL, 0, 0)
    cdef int64_t row, rows = begins.shape[0]
    cdef const uint8_t* base
    if table.shape[0] < rows or table.shape[1] != WIDTH or ends.shape[0] != rows:
        raise IndexError("the instructions have no room")
    if buf.shape[0] and rows:
        base = &buf[0]
        with nogil:
            for row in range(rows):
                if 0 <= begins[row] <= ends[row] <= buf.shape[0]:
                    _read_instruction(
                        base, base + begins[row], base + ends[row], &table[row, 0], &operands, &called
                    )
                table[row, OPERANDS_STOP], table[row, CALLED_STOP] = operands.size, called.size
    return as_table(&operands, 1), as_table(&called, 1)


cdef inline Text _text_at(const uint8_t[::1] buf, int64_t start, int64_t stop, uint64_t seed) noexcept nogil:
    """A text of a buffer; an empty one where the range does not lie in it."""
    if not 0 <= start < stop <= buf.shape[0]:
        return Text(NULL, 0, 0)
    return Text(&buf[start], stop - start, hash_text(&buf[start], stop - start, seed))


def number_texts(
    const uint8_t[::1] buf, const int64_t[::1] starts, const int64_t[::1] stops, int64_t[::1] numbers, uint64_t seed
):
    """Numbers different texts from 1 as they appear; an empty one is 0.

    Args:
        buf: uint8 of shape (bytes,).
        starts, stops: int64 of shape (n,).
        numbers: int64 of shape (n,), filled.

    Returns:
        where each number is first: int64 of shape (different, 1).
    """
    cdef Interner known = Interner(buf, seed)
    cdef Growing first = Growing(NULL, 0, 0)
    cdef Text text
    cdef int64_t row
    if stops.shape[0] < starts.shape[0] or numbers.shape[0] < starts.shape[0]:
        raise IndexError("the texts have no room")
    with nogil:
        for row in range(starts.shape[0]):
            text = _text_at(buf, starts[row], stops[row], seed)
            numbers[row] = known.give(&text) if text.length else 0
            if numbers[row] > first.size:
                push(&first, row)
    return as_table(&first, 1)


cdef inline bint _is_equal(const Text* one, const Text* other) noexcept nogil:
    return one.hash == other.hash and one.length == other.length and (
        memcmp(one.start, other.start, <size_t>one.length) == 0
    )


def find_texts(
    const uint8_t[::1] buf, const int64_t[::1] starts, const int64_t[::1] stops,
    const uint8_t[::1] wanted, const int64_t[::1] wanted_starts, const int64_t[::1] wanted_stops,
    int64_t[::1] slots, int64_t[::1] rows, uint64_t seed,
):
    """Finds texts of one buffer among those of another.

    Args:
        buf: uint8 of shape (bytes,); starts, stops: int64 of shape (n,), the texts that are there.
        wanted: uint8 of shape (others,); wanted_starts, wanted_stops: int64 of shape (m,), the texts to find.
        slots: int64 of shape (a power of two larger than m,), all -1: room to work in.
        rows: int64 of shape (m,), filled with the last row that has the text, or -1.
    """
    cdef uint64_t mask = <uint64_t>(slots.shape[0] - 1), at
    cdef Text text, known
    cdef int64_t row, count = wanted_starts.shape[0]
    if stops.shape[0] < starts.shape[0] or min(wanted_stops.shape[0], rows.shape[0]) < count:
        raise IndexError("the texts have no room")
    if slots.shape[0] <= count or slots.shape[0] & (slots.shape[0] - 1):
        raise IndexError("the slots are no power of two larger than what is wanted")
    with nogil:
        for row in range(count):
            rows[row] = -1
            text = _text_at(wanted, wanted_starts[row], wanted_stops[row], seed)
            at = text.hash & mask
            while text.length and slots[at] >= 0:
                known = _text_at(wanted, wanted_starts[slots[at]], wanted_stops[slots[at]], seed)
                if _is_equal(&text, &known):
                    break
                at = (at + 1) & mask
            if text.length and slots[at] < 0:
                slots[at] = row
        for row in range(starts.shape[0]):
            text = _text_at(buf, starts[row], stops[row], seed)
            at = text.hash & mask
            while text.length and slots[at] >= 0:
                known = _text_at(wanted, wanted_starts[slots[at]], wanted_stops[slots[at]], seed)
                if _is_equal(&text, &known):
                    rows[slots[at]] = row
                    break
                at = (at + 1) & mask
        for row in range(count):  # what is wanted twice has one slot
            text = _text_at(wanted, wanted_starts[row], wanted_stops[row], seed)
            at = text.hash & mask
            while text.length and rows[row] < 0 and slots[at] >= 0:
                known = _text_at(wanted, wanted_starts[slots[at]], wanted_stops[slots[at]], seed)
                if _is_equal(&text, &known):
                    rows[row] = rows[slots[at]]
                    break
                at = (at + 1) & mask
