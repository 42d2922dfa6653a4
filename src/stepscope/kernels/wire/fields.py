"""Fields of messages: numbers, ranges, and what is wrong with them."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled

# Why a range could not be read to its end.
OK, BAD_VARINT, BAD_TAG, OVERRUN = 0, 1, 2, 3

# Columns of scan_fields' `fields`, one row a field: the row of its message; its number, negative if it runs over the
# end; for a length-delimited field its range and place, for others the value and -1.
FIELD_MESSAGE, FIELD_NUMBER, FIELD_START, FIELD_STOP, FIELD_PLACE, FIELD_WIDTH = range(6)


@compiled(inline="always")
def byte_at(buf, pos):  # type: ignore[no-untyped-def]
    """One byte as int64.  The position is read as unsigned, which saves the test for an index from the end."""
    return np.int64(buf[np.uint64(pos)])


@compiled(inline="always")
def read_varint(buf, pos, end):  # type: ignore[no-untyped-def]
    """Value (as int64 bits) and the position after it, -1 if there is none before `end`.

    It reads first, never past the buffer, and checks after.
    """
    last = len(buf) - 1
    byte = np.int64(buf[np.uint64(min(pos, last))])
    pos += 1
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80 and shift < 70:
        byte = np.int64(buf[np.uint64(min(pos, last))])
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if pos > end or byte >= 0x80:
        pos = np.int64(-1)
    return value, pos


@compiled(inline="always")
def read_fixed(buf, pos, width):  # type: ignore[no-untyped-def]
    """The little-endian number in `width` bytes, as int64 bits."""
    value = np.uint64(0)
    for k in range(width):
        value |= np.uint64(buf[np.uint64(pos + k)]) << np.uint64(8 * k)
    return np.int64(value)


@compiled
def read_field(buf, pos, end):  # type: ignore[no-untyped-def]
    """One field: (number, wire type, value or start, end or -1, next position or -1, error, place).

    The place of a length-delimited field is the position of its length; texts go by it.  A group counts as one field
    without a value.
    """
    none = np.int64(-1)
    depth = 0
    while True:
        tag, place = read_varint(buf, pos, end)
        if place < 0:
            return 0, 0, none, none, none, OVERRUN if end - pos < 10 else BAD_VARINT, none
        number = tag >> 3
        wire = tag & 7
        if number <= 0 or number > 0x1FFFFFFF or wire > 5:
            return 0, 0, none, none, none, BAD_TAG, none
        value = np.int64(0)
        stop = none
        nxt = place
        if wire == 0 or wire == 2:
            value, nxt = read_varint(buf, place, end)
            if nxt < 0:
                return number, wire, end, end, none, OVERRUN if end - place < 10 else BAD_VARINT, place
            if wire == 2:
                if value < 0 or value > end - nxt:
                    return number, wire, nxt, end, none, OVERRUN, place
                stop = nxt + value
                value = nxt
                nxt = stop
        elif wire == 1 or wire == 5:
            width = 8 if wire == 1 else 4
            if width > end - place:
                return number, wire, none, none, none, OVERRUN, place
            value = read_fixed(buf, place, width)
            nxt = place + width
        else:
            depth += 1 if wire == 3 else -1
            if depth < 0:
                return 0, 0, none, none, none, BAD_TAG, none
        if depth == 0:
            return number, wire, value, stop, nxt, OK, place
        pos = nxt


@compiled
def scan_fields(buf, begins, ends, fields, bad_at, bad_code):  # type: ignore[no-untyped-def]
    """Lists the fields of messages.

    Args:
        buf: uint8 of shape (bytes,).
        begins, ends: int64 of shape (messages,), the messages' ranges.
        fields: int64 of shape (room, FIELD_WIDTH), filled as far as there is room; see the FIELD_ columns.
        bad_at, bad_code: int64 of shape (messages,), filled with the position of the damage or -1, and what it is.

    Returns:
        fields seen, a last length-delimited one that runs over the end included.
    """
    count = 0
    for message in range(len(begins)):
        pos = begins[message]
        end = ends[message]
        bad_at[message] = -1
        while pos < end:
            number, wire, start, stop, nxt, error, place = read_field(buf, pos, end)
            if error == OK or (error == OVERRUN and wire == 2):
                if count < len(fields):
                    fields[count, FIELD_MESSAGE] = message
                    fields[count, FIELD_NUMBER] = number if error == OK else -number
                    fields[count, FIELD_START] = start
                    fields[count, FIELD_STOP] = stop
                    fields[count, FIELD_PLACE] = place
                count += 1
            if error != OK:
                bad_at[message] = pos
                bad_code[message] = error
                break
            pos = nxt
    return count
