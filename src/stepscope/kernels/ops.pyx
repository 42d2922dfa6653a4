"""Loops over device work: climbing to the op that launched it, numbering pairs, adding up groups."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from stepscope.kernels.growing cimport Growing, as_table, push
from stepscope.kernels.memory cimport free, zeros

cdef enum:
    # Causes lead back in time, so there is no circle in a sound trace; in a damaged one this ends the walk.
    _LONGEST_CLIMB = 4096
    _FIRST_ROOM = 1024  # pairs


def climb(
    const int64_t[::1] start, const int32_t[::1] parent, const int32_t[::1] cause, const uint8_t[::1] kind,
    const uint8_t[::1] level, uint8_t top, int64_t[::1] out,
):
    """The best event around each start: of the highest level, among equals the nearest.

    The way leads through the enclosing events and, if none of them has a level, on through what caused the outermost.

    Args:
        start: int64 of shape (n,), rows to begin at, which count themselves; -1 has no answer.
        parent, cause: int32 of shape (events,), row or -1.
        kind: uint8 of shape (events,).
        level: uint8 of shape (256,), the level of each kind, 0 for those that are no answer.
        top: the highest level; nothing further is looked for where it is found.
        out: int64 of shape (n,), receives the row or -1.
    """
    cdef int64_t i, event, best, steps
    cdef uint8_t best_level
    with nogil:
        for i in range(start.shape[0]):
            event, best, best_level, steps = start[i], -1, 0, 0
            while event >= 0 and steps < _LONGEST_CLIMB:
                if level[kind[event]] > best_level:
                    best = event
                    best_level = level[kind[event]]
                    if best_level == top:
                        break
                if parent[event] >= 0:
                    event = parent[event]
                elif best >= 0:
                    break
                else:
                    event = cause[event]
                steps += 1
            out[i] = best


cdef inline uint64_t _mixed(int64_t a, int64_t b) noexcept nogil:
    cdef uint64_t mixed = <uint64_t>a * <uint64_t>0x9E3779B97F4A7C15 + <uint64_t>b
    mixed = (mixed ^ (mixed >> 31)) * <uint64_t>0xBF58476D1CE4E5B9
    return mixed ^ (mixed >> 29)


cdef struct Pair:
    int64_t a
    int64_t b
    int64_t number  # plus one; 0 is a free place


cdef inline int64_t _number_at(const uint8_t* column, int width, int64_t place) noexcept nogil:
    return (<const int64_t*>column)[place] if width == 8 else (<const int32_t*>column)[place]


cdef inline Pair* _place_of(Pair* slots, int64_t room, int64_t a, int64_t b) noexcept nogil:
    """Where a pair is, or would be."""
    cdef uint64_t at = _mixed(a, b) & <uint64_t>(room - 1)
    while slots[at].number and (slots[at].a != a or slots[at].b != b):
        at = (at + 1) & <uint64_t>(room - 1)
    return &slots[at]


cdef Pair* _twice_the_room(Pair* slots, int64_t room) except NULL nogil:
    """The pairs of a table in one with twice as many places.  Raises MemoryError."""
    cdef Pair* larger = <Pair*>zeros(<size_t>(2 * room), sizeof(Pair))
    cdef int64_t at
    if larger == NULL:
        with gil:
            raise MemoryError
    for at in range(room):
        if slots[at].number:
            _place_of(larger, 2 * room, slots[at].a, slots[at].b)[0] = slots[at]
    free(slots)
    return larger


def number_pairs(const uint8_t[::1] a, const uint8_t[::1] b, int width_a, int width_b, int32_t[::1] out):
    """Numbers the different pairs in the order in which they first appear.

    The table of pairs grows with what is different, which is little in most traces, so that it stays in the caches.

    Args:
        a, b: the bytes of two columns of shape (n,), whose numbers take `width_a` and `width_b` bytes: 4 or 8.
        out: int32 of shape (n,), receives the numbers.

    Returns:
        int64 of shape (different pairs, 1): the place of the first of each number.
    """
    cdef Growing first
    cdef Pair* slots = <Pair*>zeros(_FIRST_ROOM, sizeof(Pair))
    cdef Pair* found
    cdef int64_t i, one, other, last_one = 0, last_other = 0, room = _FIRST_ROOM, count = out.shape[0]
    first.items, first.size, first.room = NULL, 0, 0
    if slots == NULL:
        raise MemoryError
    try:
        if a.shape[0] != count * width_a or b.shape[0] != count * width_b or {width_a, width_b} - {4, 8}:
            raise ValueError("the columns have not the length that they should have")
        with nogil:
            for i in range(count):
                one, other = _number_at(&a[0], width_a, i), _number_at(&b[0], width_b, i)
                if i > 0 and one == last_one and other == last_other:  # equal pairs often stand together
                    out[i] = out[i - 1]
                    continue
                last_one, last_other = one, other
                found = _place_of(slots, room, one, other)
                if found.number:
                    out[i] = <int32_t>(found.number - 1)
                    continue
                push(&first, i)
                found.a, found.b, found.number = one, other, first.size
                out[i] = <int32_t>(first.size - 1)
                if 2 * first.size > room:
                    slots = _twice_the_room(slots, room)
                    room *= 2
        return as_table(&first, 1)
    finally:
        free(slots)
        free(first.items)


def add_up(
    const int32_t[::1] group, const int64_t[::1] value, int64_t[::1] count, int64_t[::1] total, int64_t[::1] low,
    int64_t[::1] high,
):
    """Count, sum, smallest and largest value of each group.

    Args:
        group: int32 of shape (n,); value: int64 of shape (n,), not negative.
        count, total, low, high: int64 of shape (groups,), zeros; receive the results.
    """
    cdef int64_t i, v
    cdef int32_t g
    with nogil:
        for i in range(group.shape[0]):
            g, v = group[i], value[i]
            if count[g] == 0 or v < low[g]:
                low[g] = v
            if v > high[g]:
                high[g] = v
            count[g] += 1
            total[g] += v


def sum_by_pair(
    const int64_t[::1] row, const uint8_t[::1] column, const int64_t[::1] value, int64_t[:, ::1] out
):
    """Adds values to the cells of a table.

    Args:
        row: int64 of shape (n,); column: uint8 of shape (n,); value: int64 of shape (n,).
        out: int64 of shape (rows, columns), changed in place.

    Raises:
        IndexError: a value is for a cell that the table does not have.
    """
    cdef int64_t i, count = row.shape[0], rows = out.shape[0], columns = out.shape[1]
    if not count == column.shape[0] == value.shape[0]:
        raise IndexError("the columns are not of one length")
    with nogil:
        for i in range(count):
            if not (0 <= row[i] < rows and column[i] < columns):
                with gil:
                    raise IndexError("there is no such cell")
            out[row[i], column[i]] += value[i]


def hash_runs(const int64_t[::1] begin, const int64_t[::1] end, const int64_t[::1] value, uint64_t[::1] out):
    """A hash of each run of values, in which their order counts.

    Args:
        begin, end: int64 of shape (runs,), places in `value`.
        value: int64 of shape (n,).
        out: uint64 of shape (runs,), receives the hashes.
    """
    cdef int64_t run, at
    with nogil:
        for run in range(begin.shape[0]):
            out[run] = <uint64_t>(end[run] - begin[run])
            for at in range(begin[run], end[run]):
                out[run] = _chained(out[run], <uint64_t>value[at])


cdef inline uint64_t _chained(uint64_t before, uint64_t value) noexcept nogil:
    cdef uint64_t mixed = (before ^ value) * <uint64_t>0xFF51AFD7ED558CCD
    return mixed ^ (mixed >> 32)


cdef inline bint _is_word(uint8_t byte) noexcept nogil:
    return c"a" <= byte <= c"z" or c"A" <= byte <= c"Z" or c"0" <= byte <= c"9" or byte == c"_"


cdef inline bint _is_in_path(uint8_t byte) noexcept nogil:
    return _is_word(byte) or byte == c"/" or byte == c"." or byte == c"-" or byte == c">"


def find_types(
    const uint8_t[::1] blob, const int64_t[::1] offsets, const int64_t[::1] rows, int32_t[::1] colon, int32_t[::1] slash,
):
    """Where texts of the form `scope/name:Type`, as TensorFlow names the ops of graphs, have their parts.

    Args:
        blob, offsets: the texts, as in Strings.
        rows: int64 of shape (n,), which of them.
        colon, slash: int32 of shape (n,), receive the places of the colon, -1 in a text of another form, and of the last
            slash, -1 without one.
    """
    cdef int64_t i, begin, end, at
    with nogil:
        for i in range(rows.shape[0]):
            colon[i] = slash[i] = -1
            if not 0 <= rows[i] < offsets.shape[0] - 1:
                with gil:
                    raise IndexError("there is no such text")
            begin = at = offsets[rows[i]]
            end = offsets[rows[i] + 1]
            if at == end or not _is_in_path(blob[at]) or blob[at] in b"_/->":
                continue
            while at < end and _is_in_path(blob[at]):
                if blob[at] == c"/":
                    slash[i] = <int32_t>(at - begin)
                at += 1
            if at == end or blob[at] != c":" or blob[at - 1] == c"/":
                continue
            colon[i] = <int32_t>(at - begin)
            at += 1
            if at < end and blob[at] == c"_":
                at += 1
            if at == end or not c"A" <= blob[at] <= c"Z":
                colon[i] = -1
            while at < end:
                if not _is_word(blob[at]):
                    colon[i] = -1
                at += 1


def texts(const uint8_t[::1] blob, const int64_t[::1] offsets, const int64_t[::1] rows):
    """Some texts of a table as a list; bytes that are not UTF-8 are replaced.

    Args:
        blob: uint8 of shape (bytes,); offsets: int64 of shape (texts + 1,), where each text is in them.
        rows: int64 of shape (n,); -1 for the empty text.
    """
    cdef int64_t at, begin, size
    cdef list found = [""] * rows.shape[0]
    for at in range(rows.shape[0]):
        if rows[at] == -1:
            continue
        if not 0 <= rows[at] < offsets.shape[0] - 1:
            raise IndexError("there is no such text")
        begin, size = offsets[rows[at]], offsets[rows[at] + 1] - offsets[rows[at]]
        if not 0 <= begin <= begin + size <= blob.shape[0]:
            raise IndexError("the text is not in the table")
        if size > 0:
            found[at] = PyUnicode_DecodeUTF8(<const char*>&blob[begin], size, "replace")
    return found
