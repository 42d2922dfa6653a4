"""Lists the fields of messages."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from stepscope.kernels.growing cimport Growing, as_column, as_table, push
from stepscope.kernels.memory cimport free, zeros
from stepscope.kernels.wire.source cimport LONGEST_HEAD, Source


def scan_fields(
    Source source, const int64_t[::1] begins, const int64_t[::1] ends, int64_t left, int64_t[::1] bad_at,
    int64_t[::1] bad_code,
):
    """Lists the fields of messages, and has their content in memory.

    Args:
        begins, ends: int64 of shape (messages,), the messages' ranges in the source.
        left: the number of fields whose content is left in the file.
        bad_at, bad_code: int64 of shape (messages,), filled with the position of the damage or -1, and what it is.

    Returns:
        int64 of shape (fields, FIELD_WIDTH), see the FIELD_ columns: the fields, a last length-delimited one that runs
        over the end included.
    """
    cdef Growing rows = Growing(NULL, 0, 0)
    cdef int64_t message
    if source.size:
        with nogil:
            for message in range(begins.shape[0]):
                bad_at[message] = -1
                if 0 <= begins[message] <= ends[message] <= source.size:
                    bad_code[message] = _scan(
                        source, begins[message], ends[message], message, left, &rows, &bad_at[message]
                    )
    return as_table(&rows, FIELD_WIDTH)


cdef int _scan(
    Source source, int64_t begin, int64_t stop, int64_t message, int64_t left, Growing* rows, int64_t* bad_at
) except -1 nogil:
    """Lists the fields of one message.  Returns what ends it."""
    cdef Field field
    cdef const uint8_t* base = source.start
    cdef const uint8_t* at = base + begin
    cdef const uint8_t* end = base + stop
    cdef const uint8_t* next
    cdef bint is_range
    while at < end:
        source.fetch(at - base, at - base + LONGEST_HEAD)
        if is_group(at):
            source.fetch(at - base, stop)
        next = read_field(at, end, &field)
        is_range = field.wire == DELIMITED
        if next != NULL or (is_range and field.error == OVERRUN):
            push(rows, message)
            push(rows, field.number if next != NULL else -field.number)
            push(rows, field.start - base if is_range else field.value)
            push(rows, field.stop - base if is_range else -1)
            push(rows, field.place - base)
            if is_range and field.number != left:
                source.fetch(field.start - base, field.stop - base)
        if next == NULL:
            bad_at[0] = at - base
            return field.error
        at = next
    return OK


def nested_messages(const int64_t[:, ::1] fields, int64_t number):
    """The nested messages with a field number among `scan_fields`' fields, including one that is cut off.

    Returns:
        Three int64 of shape (n,): the row of the message around each, where it starts and where it stops.
    """
    cdef Growing owners = Growing(NULL, 0, 0), starts = Growing(NULL, 0, 0), stops = Growing(NULL, 0, 0)
    cdef int64_t row
    with nogil:
        for row in range(fields.shape[0]):
            if fields[row, FIELD_STOP] >= 0 and number in (fields[row, FIELD_NUMBER], -fields[row, FIELD_NUMBER]):
                push(&owners, fields[row, FIELD_MESSAGE])
                push(&starts, fields[row, FIELD_START])
                push(&stops, fields[row, FIELD_STOP])
    return as_column(&owners), as_column(&starts), as_column(&stops)


def last_fields(const int64_t[:, ::1] fields, int64_t number, int64_t column, int64_t[::1] values):
    """A column of each message's last complete field with a number.

    Args:
        values: int64 of shape (messages,), zeros; filled where a message has such a field.
    """
    cdef int64_t row
    if not 0 <= column < FIELD_WIDTH:
        raise IndexError("there is no such column")
    for row in range(fields.shape[0]):
        if fields[row, FIELD_NUMBER] == number:
            if not 0 <= fields[row, FIELD_MESSAGE] < values.shape[0]:
                raise IndexError("a field of no message")
            values[fields[row, FIELD_MESSAGE]] = fields[row, column]


def zero_table(int64_t rows, int64_t width):
    """int64 of shape (rows, width), zeros: a table for the loops here where there is no numpy yet."""
    cdef int64_t room = max(rows, 1)
    cdef int64_t* items
    cdef cython.view.array table
    if rows < 0 or width < 1:
        raise IndexError("there is no such table")
    items = <int64_t*>zeros(<size_t>(room * width), sizeof(int64_t))
    if items == NULL:
        raise MemoryError
    table = <int64_t[:room, :width]>items
    table.callback_free_data = free
    return table[:rows]


def join_tables(tables, int64_t width):
    """Tables of so many columns, one below the other: int64 of shape (rows of all, width)."""
    cdef Growing rows = Growing(NULL, 0, 0)
    cdef const int64_t[:, :] table
    cdef int64_t row, column
    for each in tables:
        table = each
        if table.shape[1] != width:
            raise IndexError("the tables have different columns")
        for row in range(table.shape[0]):
            for column in range(width):
                push(&rows, table[row, column])
    return as_table(&rows, width)
