"""Texts of serialized XLA programs by what they say."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from stepscope.kernels.growing cimport Growing, as_table, push
from stepscope.kernels.wire.texts cimport Interner, Text, hash_text


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
