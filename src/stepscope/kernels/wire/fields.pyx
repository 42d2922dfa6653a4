"""Lists the fields of messages."""

from libc.stdint cimport int64_t, uint8_t

from stepscope.kernels.growing cimport Growing, as_table, push


def scan_fields(
    const uint8_t[::1] buf, const int64_t[::1] begins, const int64_t[::1] ends, int64_t[::1] bad_at,
    int64_t[::1] bad_code,
):
    """Lists the fields of messages.

    Args:
        buf: uint8 of shape (bytes,).
        begins, ends: int64 of shape (messages,), the messages' ranges, which lie in `buf`.
        bad_at, bad_code: int64 of shape (messages,), filled with the position of the damage or -1, and what it is.

    Returns:
        int64 of shape (fields, FIELD_WIDTH), see the FIELD_ columns: the fields, a last length-delimited one that runs
        over the end included.
    """
    cdef Growing rows = Growing(NULL, 0, 0)
    cdef const uint8_t* base
    cdef int64_t message
    if buf.shape[0]:
        base = &buf[0]
        with nogil:
            for message in range(begins.shape[0]):
                bad_at[message] = -1
                if 0 <= begins[message] <= ends[message] <= buf.shape[0]:
                    bad_code[message] = _scan(
                        base, base + begins[message], base + ends[message], message, &rows, &bad_at[message]
                    )
    return as_table(&rows, FIELD_WIDTH)


cdef int _scan(
    const uint8_t* base, const uint8_t* at, const uint8_t* end, int64_t message, Growing* rows, int64_t* bad_at
) except -1 nogil:
    """Lists the fields of one message.  Returns what ends it."""
    cdef Field field
    cdef const uint8_t* next
    cdef bint is_range
    while at < end:
        next = read_field(at, end, &field)
        is_range = field.wire == DELIMITED
        if next != NULL or (is_range and field.error == OVERRUN):
            push(rows, message)
            push(rows, field.number if next != NULL else -field.number)
            push(rows, field.start - base if is_range else field.value)
            push(rows, field.stop - base if is_range else -1)
            push(rows, field.place - base)
        if next == NULL:
            bad_at[0] = at - base
            return field.error
        at = next
    return OK
