"""Encodes millions of protobuf messages: columns in, bytes out, no Python object per message.

`Messages` describes many messages of one type at once, field by field.  Their sizes are known as soon as a field is
added, so that each byte is then written once, to its final place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.model import Strings
from stepscope.model.arrays import I32, I64, U8, Mask, offsets_of

Out = U8

_VARINT, _FIXED64, _DELIMITED = 0, 1, 2
_SHORT_TEXT = 256  # bytes; longer texts are copied one by one, shorter ones together
_TEXTS_AT_ONCE = 1 << 16


class Messages:
    """Messages of one type.

    Attributes:
        sizes: int64 of shape (messages,), bytes of each without its tag and length.
    """

    def __init__(self, count: int) -> None:
        self.sizes = np.zeros(count, np.int64)
        self._fields: list[tuple[I64, I64, Callable[[Out, I64], None]]] = []  # rows, sizes, what puts them

    def numbers(self, field: int, values: I64, where: Mask | None = None) -> Messages:
        """Adds a number to all messages, or only `where` the mask is True."""
        rows = self._select_rows(where)
        values = values[rows]

        def put(out: Out, at: I64) -> None:
            put_varints(out, _put_tag(out, at, field, _VARINT), values)

        return self._add(rows, _tag_size(field) + varint_sizes(values), put)

    def doubles(self, field: int, bits: I64, where: Mask) -> Messages:
        """Adds a double, given as its bits."""
        rows = self._select_rows(where)
        octets = bits[rows].astype("<i8").view(np.uint8).reshape(-1, 8)

        def put(out: Out, at: I64) -> None:
            out[_put_tag(out, at, field, _FIXED64)[:, None] + np.arange(8)] = octets

        return self._add(rows, np.full(len(rows), _tag_size(field) + 8), put)

    def fixed_lists(self, field: int, values: I64, offsets: I64) -> Messages:
        """Adds lists of 64-bit numbers of fixed size: message `i` gets `values[offsets[i]:offsets[i + 1]]`."""
        counts, size = np.diff(offsets), _tag_size(field) + 8
        rows = np.flatnonzero(counts)
        octets = values[offsets[0] : offsets[-1]].astype("<i8").view(np.uint8).reshape(-1, 8)
        within = np.arange(len(octets)) - np.repeat(offsets[rows] - offsets[0], counts[rows])

        def put(out: Out, at: I64) -> None:
            each = np.repeat(at, counts[rows]) + within * size
            out[_put_tag(out, each, field, _FIXED64)[:, None] + np.arange(8)] = octets

        return self._add(rows, counts[rows] * size, put)

    def texts(self, field: int, strings: Strings, texts: I64 | I32, where: Mask | None = None) -> Messages:
        """Adds a text, given as its row in the string table."""
        rows = self._select_rows(where)
        begins = strings.offsets[texts[rows]]
        lengths = strings.offsets[texts[rows] + 1] - begins

        def put(out: Out, at: I64) -> None:
            put_texts(out, put_heads(out, at, field, lengths), strings.blob, begins, lengths)

        return self._add(rows, field_sizes(lengths, field), put)

    def children(self, field: int, child: Messages, offsets: I64) -> Messages:
        """Adds nested messages: message `i` gets the rows `offsets[i]:offsets[i + 1]` of `child`."""
        ends = offsets_of(field_sizes(child.sizes, field))
        first = ends[offsets[:-1]]
        counts = np.diff(offsets)

        def put(out: Out, at: I64) -> None:
            starts = ends[offsets[0] : offsets[-1]] + np.repeat(at - first, counts)
            child.put(out, put_heads(out, starts, field, child.sizes))

        return self._add(self._select_rows(None), ends[offsets[1:]] - first, put)

    def put(self, out: Out, at: I64) -> None:
        """Writes message `i` to the bytes from `at[i]` on."""
        at = at.copy()
        for rows, sizes, put in self._fields:
            put(out, at[rows])
            at[rows] += sizes

    def encode(self, field: int) -> bytes:
        """All messages, one after the other, as values of `field`."""
        return encode_children(field, self)[0]

    def _select_rows(self, where: Mask | None) -> I64:
        return np.arange(len(self.sizes)) if where is None else np.flatnonzero(where)

    def _add(self, rows: I64, sizes: I64, put: Callable[[Out, I64], None]) -> Messages:
        if len(rows):
            self.sizes[rows] += sizes
            self._fields.append((rows, sizes, put))
        return self


def encode_children(field: int, messages: Messages) -> tuple[bytes, I64]:
    """Messages, one after the other, as values of `field`, and the size of each in bytes."""
    sizes = field_sizes(messages.sizes, field)
    ends = np.cumsum(sizes)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    messages.put(out, put_heads(out, ends - sizes, field, messages.sizes))
    return out.tobytes(), sizes


# -- single numbers ----------------------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """A number in protobuf's encoding: seven bits per byte, negative ones as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited_head(field: int, length: int) -> bytes:
    """The bytes before a text or message: the field's tag and the length."""
    return varint(field << 3 | _DELIMITED) + varint(length)


# -- columns of numbers ------------------------------------------------------------------------------------------------


def varint_sizes(values: I64) -> I64:
    """The size of each number in bytes."""
    bits = values.astype(np.int64).view(np.uint64)
    sizes = np.ones(len(bits), np.int64)
    widest = int(bits.max()) if len(bits) else 0
    for k in range(7, widest.bit_length(), 7):
        sizes += bits >= np.uint64(1 << k)
    return sizes


def field_sizes(lengths: I64, field: int = 1) -> I64:
    """The sizes of length-delimited fields in bytes, with tag and length."""
    return _tag_size(field) + varint_sizes(lengths) + lengths


def put_varints(out: Out, at: I64, values: I64) -> None:
    """Writes numbers to their places."""
    bits = values.astype(np.int64).view(np.uint64)
    while len(bits):
        more = bits > 0x7F
        out[at] = (bits & np.uint64(0x7F)).astype(np.uint8) | (more.view(np.uint8) << 7)
        at, bits = at[more] + 1, bits[more] >> np.uint64(7)


def put_heads(out: Out, at: I64, field: int, lengths: I64) -> I64:
    """Writes tag and length of length-delimited fields; returns the places of their contents."""
    at = _put_tag(out, at, field, _DELIMITED)
    put_varints(out, at, lengths)
    return at + varint_sizes(lengths)


def _tag_size(field: int) -> int:
    return 1 if field < 16 else 2  # none of our messages has a field above 2047


def _put_tag(out: Out, at: I64, field: int, wire_type: int) -> I64:
    """Writes the tag of a field to its places; returns the places of the values."""
    tag = field << 3 | wire_type
    if field < 16:
        out[at] = tag
        return at + 1
    out[at], out[at + 1] = tag & 0x7F | 0x80, tag >> 7
    return at + 2


def put_texts(out: Out, at: I64, blob: U8, begins: I64, lengths: I64) -> None:
    """Copies ranges of `blob` to their places."""
    long = lengths > _SHORT_TEXT
    for to, begin, length in zip(at[long].tolist(), begins[long].tolist(), lengths[long].tolist(), strict=True):
        out[to : to + length] = blob[begin : begin + length]
    short = np.flatnonzero(~long)
    for first in range(0, len(short), _TEXTS_AT_ONCE):
        rows = short[first : first + _TEXTS_AT_ONCE]
        ends = np.cumsum(lengths[rows])
        within = np.arange(ends[-1]) - np.repeat(ends - lengths[rows], lengths[rows])
        out[np.repeat(at[rows], lengths[rows]) + within] = blob[np.repeat(begins[rows], lengths[rows]) + within]
