"""Columns of events from other columns in one pass.  What numpy makes of them on the way, an index of eight bytes for
each event above all, is not made here."""

from libc.stdint cimport int32_t, int64_t, uint8_t


def look_up(const uint8_t[::1] table, const uint8_t[::1] index, uint8_t[::1] out):
    """The entry of each index.

    Args:
        table: uint8 or bool of shape (256,); index, out: uint8 of shape (n,).
    """
    cdef int64_t at
    if table.shape[0] < 256 or index.shape[0] != out.shape[0]:
        raise IndexError("the table has not an entry for each byte, or the columns are not of one length")
    with nogil:
        for at in range(out.shape[0]):
            out[at] = table[index[at]]


def look_up_rows(const uint8_t[::1] table, const int32_t[::1] index, uint8_t[::1] out):
    """The entry of each row of another table.

    Args:
        table: uint8 or bool of shape (rows,); index: int32 of shape (n,); out: uint8 of shape (n,).
    """
    cdef int64_t at, rows = table.shape[0]
    if index.shape[0] != out.shape[0]:
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(out.shape[0]):
            if not 0 <= index[at] < rows:
                with gil:
                    raise IndexError("there is no such row")
            out[at] = table[index[at]]


def mark(const int32_t[::1] index, uint8_t[::1] marks):
    """Sets the mark of each row of another table that an index uses.  `marks`: of shape (rows,), changed in place."""
    cdef int64_t at, rows = marks.shape[0]
    with nogil:
        for at in range(index.shape[0]):
            if not 0 <= index[at] < rows:
                with gil:
                    raise IndexError("there is no such row")
            marks[index[at]] = 1


def order_by(const uint8_t[::1] values, int64_t[::1] offsets, int32_t[::1] out):
    """The rows of each value, ascending.

    Args:
        values: uint8 of shape (n,).
        offsets: int64 of shape (257,), receives where the rows of each value begin, and n.
        out: int32 of shape (n,), receives the rows, those of the lowest value first.
    """
    cdef int64_t at, place[256], counts[256]
    if offsets.shape[0] < 257 or values.shape[0] != out.shape[0]:
        raise IndexError("there is no room for all values, or the columns are not of one length")
    with nogil:
        for at in range(256):
            counts[at] = 0
        for at in range(values.shape[0]):
            counts[values[at]] += 1
        offsets[0] = 0
        for at in range(256):
            place[at] = offsets[at]
            offsets[at + 1] = offsets[at] + counts[at]
        for at in range(values.shape[0]):
            out[place[values[at]]] = <int32_t>at
            place[values[at]] += 1


def common_divisor(const int64_t[::1] values):
    """The greatest common divisor of values; 0 if all are 0.  Nearly all of them cost one division."""
    cdef int64_t at, low, high, found = 0
    with nogil:
        for at in range(values.shape[0]):
            if found == 1:
                break
            if found and values[at] % found == 0:
                continue
            low, high = values[at], found
            while low:
                low, high = high % low, low
            found = -high if high < 0 else high
    return found


def latest_end(const int64_t[::1] start, const int64_t[::1] duration):
    """The latest of the ends; of nothing the lowest number that there is."""
    cdef int64_t at, latest = -0x7FFFFFFFFFFFFFFF - 1
    if start.shape[0] != duration.shape[0]:
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(start.shape[0]):
            latest = max(latest, start[at] + duration[at])
    return latest


def extent(const int64_t[::1] start, const int64_t[::1] duration, const uint8_t[::1] chosen):
    """The first start and the last end of the chosen ones, bool of shape (n,); of none, the end comes first."""
    cdef int64_t at, first = 0x7FFFFFFFFFFFFFFF, last = -0x7FFFFFFFFFFFFFFF - 1
    if not start.shape[0] == duration.shape[0] == chosen.shape[0]:
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(start.shape[0]):
            if chosen[at]:
                first, last = min(first, start[at]), max(last, start[at] + duration[at])
    return first, last
