"""Fields of many serialized messages at once, as columns.

Everything stays inside the range of the message that it belongs to.  A message that is cut or damaged keeps the fields
before the damage and counts as damaged; unknown fields are skipped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.model.arrays import I64, U8, Mask, offsets_of, run_rows
from stepscope.records import dataclass

_MOST_VARINT_BYTES = 10
_NO_FIELD = 0xFFFF  # no message here has a field of a number as large


@dataclass(frozen=True)
class Fields:
    """The fields of some messages, those of one number together, in the order of the messages.

    Attributes:
        buf: uint8 of shape (bytes,), what the messages lie in.
        count: how many messages there are.
        number: uint16 of shape (fields,), ascending: the field's number.
        table: int64 of shape (fields, FIELD_WIDTH), see `stepscope.kernels.wire`.
        damaged: bool of shape (messages,), messages that could not be read to their end.
    """

    buf: U8
    count: int
    number: NDArray[np.uint16]
    table: I64
    damaged: Mask

    def _decode_number(self, number: int) -> tuple[I64, I64, I64]:
        """Message, start and stop of each field with a number; of a number its value, and -1."""
        low, high = np.searchsorted(self.number, np.array([number, number + 1], np.uint16))
        rows, wire = self.table[low:high], kernels.wire
        return rows[:, wire.FIELD_MESSAGE], rows[:, wire.FIELD_START], rows[:, wire.FIELD_STOP]

    def scalar(self, number: int, missing: int = 0) -> I64:
        """A number of each message: int64 of shape (messages,).  The last one counts where it is repeated."""
        message, value, stop = self._decode_number(number)
        out = np.full(self.count, missing, np.int64)
        out[message[stop < 0]] = value[stop < 0]
        return out

    def range(self, number: int) -> tuple[I64, I64]:
        """Start and stop of a text or message of each message: two int64 of shape (messages,), 0 where it has none."""
        message, starts, stops = self.ranges(number)
        start, stop = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        start[message], stop[message] = starts, stops
        return start, stop

    def ranges(self, number: int) -> tuple[I64, I64, I64]:
        """Message, start and stop of every text or message of a repeated field: three int64 of shape (hits,)."""
        message, start, stop = self._decode_number(number)
        return message[stop >= 0], start[stop >= 0], stop[stop >= 0]

    def numbers(self, number: int) -> tuple[I64, I64]:
        """A repeated number, packed or not: offsets, int64 of shape (messages + 1,), and values in their order."""
        message, start, stop = self._decode_number(number)
        packed = np.flatnonzero(stop >= 0)
        owner, values = _varints(self.buf, start[packed], stop[packed])
        place = np.concatenate([np.flatnonzero(stop < 0), packed[owner]])
        values = np.concatenate([start[stop < 0], values])
        order = np.argsort(place, kind="stable")
        counts = np.bincount(message[place], minlength=self.count)
        return offsets_of(counts), values[order]


def fields_of(buf: U8, starts: I64, stops: I64) -> Fields:
    """The fields of the messages in some ranges.

    Args:
        buf: uint8 of shape (bytes,).
        starts, stops: int64 of shape (messages,), within `buf`.
    """
    starts, stops = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(stops, np.int64)
    bad_at = np.full(len(starts), -1, np.int64)
    table = np.asarray(
        kernels.wire.scan_fields(kernels.wire.Source(buf), starts, stops, 0, bad_at, np.zeros(len(starts), np.int64))
    )
    # Negative is the number of a field that is cut by its message's end.
    number = np.minimum(np.abs(table[:, kernels.wire.FIELD_NUMBER]), _NO_FIELD).astype(np.uint16)
    order = np.argsort(number, kind="stable")
    return Fields(buf, len(starts), number[order], table[order], bad_at >= 0)


def _varints(buf: U8, start: I64, stop: I64) -> tuple[I64, I64]:
    """The numbers in ranges of packed ones: the range of each and its value, two int64 of shape (numbers,).

    A number that its range cuts is left out, and so is what a number has beyond 64 bits.
    """
    length = stop - start
    data = buf[run_rows(start, length)].astype(np.int64)
    owner = np.repeat(np.arange(len(start)), length)
    last = np.flatnonzero(data < 0x80)
    if not len(last):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first = np.concatenate([[0], last[:-1] + 1])
    # A number that a range cuts would go on in the next range: it starts where its last byte's range starts.
    first = np.maximum(first, (np.cumsum(length) - length)[owner[last]])
    values = np.zeros(len(last), np.int64)
    for byte in range(_MOST_VARINT_BYTES):
        at = first + byte
        inside = at <= last
        if not inside.any():
            break
        values[inside] |= (data[at[inside]] & 0x7F) << np.int64(7 * byte)
    return owner[last], values
