"""The entries of the metadata maps."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport qsort

from stepscope.kernels.growing cimport Growing, as_table, grown, push
from stepscope.kernels.memory cimport free
from stepscope.kernels.wire.fields cimport DELIMITED, OK, OVERRUN, VARINT, Field, read_field

cpdef enum:
    # Columns of `walk_metadata`'s result, one row a stat: the row of its entry, and its range.
    STAT_ENTRY
    STAT_START
    STAT_STOP
    STAT_WIDTH


cdef struct _Entry:
    int64_t row
    int64_t id
    const uint8_t* name
    const uint8_t* display
    const uint8_t* start  # of the metadata inside the map's entry
    const uint8_t* stop
    bint has_key
    const uint8_t* bad
    int error


def walk_metadata(const uint8_t[::1] buf, const int64_t[::1] begins, const int64_t[::1] ends, int64_t[:, ::1] entries):
    """Reads map entries of event or stat metadata, one a range.

    Args:
        begins, ends: int64 of shape (entries,), the ranges, which lie in `buf`.
        entries: int64 of shape (entries, META_WIDTH), filled; see the META_ columns.  Names are told by their place.

    Returns:
        int64 of shape (stats, STAT_WIDTH): the stats of all entries, see the STAT_ columns.
    """
    cdef Growing stats = Growing(NULL, 0, 0)
    cdef const uint8_t* base
    cdef int64_t row
    if buf.shape[0]:
        base = &buf[0]
        with nogil:
            for row in range(begins.shape[0]):
                if 0 <= begins[row] <= ends[row] <= buf.shape[0]:
                    _read_entry(base, base + begins[row], base + ends[row], row, &stats, &entries[row, 0])
    return as_table(&stats, STAT_WIDTH)


cdef int _read_entry(
    const uint8_t* base, const uint8_t* at, const uint8_t* end, int64_t row, Growing* stats, int64_t* out
) except -1 nogil:
    cdef _Entry entry = _Entry(row, 0, NULL, NULL, NULL, NULL, False, NULL, OK)
    _read_map_entry(at, end, &entry)
    if entry.start != NULL:
        _read_metadata(base, &entry, stats)
    out[META_ID] = entry.id
    out[META_NAME] = entry.name - base if entry.name != NULL else 0
    out[META_DISPLAY] = entry.display - base if entry.display != NULL else 0
    out[META_BAD_AT] = entry.bad - base if entry.bad != NULL else -1
    out[META_BAD_CODE] = entry.error
    return 0


cdef void _read_map_entry(const uint8_t* at, const uint8_t* end, _Entry* entry) noexcept nogil:
    """Reads the key and finds the metadata, of which a part may be there."""
    cdef Field field
    cdef const uint8_t* next
    while at < end:
        next = read_field(at, end, &field)
        if field.wire == DELIMITED and field.number == 2 and (next != NULL or field.error == OVERRUN):
            entry.start, entry.stop = field.start, field.stop
        elif next != NULL and field.wire == VARINT and field.number == 1:
            entry.id = field.value
            entry.has_key = True
        if next == NULL:
            entry.bad, entry.error = at, field.error
            return
        at = next


cdef int _read_metadata(const uint8_t* base, _Entry* entry, Growing* stats) except -1 nogil:
    cdef Field field
    cdef const uint8_t* at = entry.start
    cdef const uint8_t* next
    while at < entry.stop:
        next = read_field(at, entry.stop, &field)
        if next == NULL:
            entry.bad, entry.error = at, field.error
            return 0
        if field.wire == VARINT and field.number == 1 and not entry.has_key:
            entry.id = field.value
        elif field.wire == DELIMITED and field.number == 2:
            entry.name = field.place
        elif field.wire == DELIMITED and field.number == 4:
            entry.display = field.place
        elif field.wire == DELIMITED and field.number == 5:
            push(stats, entry.row)
            push(stats, field.start - base)
            push(stats, field.stop - base)
        at = next
    return 0


# -- the entries that count ---------------------------------------------------------------------------------------

cpdef enum:
    # Columns of `last_entries`' result, one row a choice: the entry's row, and the row of the message around it.
    CHOSEN_ROW
    CHOSEN_OWNER
    CHOSEN_WIDTH


cdef struct _Key:
    int64_t owner
    int64_t id
    int64_t row


def last_entries(const int64_t[::1] owners, const int64_t[:, ::1] entries):
    """The entries that count, in order: those with a name that are the last with their id, since in a map a later entry
    replaces an earlier one.

    Args:
        owners: int64 of shape (entries,), the row of the message around each, ascending.
        entries: int64 of shape (entries, META_WIDTH), from `walk_metadata`.

    Returns:
        int64 of shape (entries that count, CHOSEN_WIDTH), see the CHOSEN_ columns.
    """
    cdef Growing chosen = Growing(NULL, 0, 0)
    cdef int64_t row, n = 0, count = owners.shape[0]
    cdef _Key* keys
    if entries.shape[0] != count or entries.shape[1] != META_WIDTH:
        raise IndexError("every entry has an owner")
    keys = <_Key*>grown(NULL, max(count, 1), sizeof(_Key))
    try:
        with nogil:
            for row in range(count):
                if entries[row, META_BAD_AT] < 0 or entries[row, META_NAME] > 0:
                    keys[n] = _Key(owners[row], entries[row, META_ID], row)
                    n += 1
            n = _drop_earlier(keys, n)
            for row in range(n):
                push(&chosen, keys[row].row)
                push(&chosen, keys[row].owner)
        return as_table(&chosen, CHOSEN_WIDTH)
    finally:
        free(keys)


cdef int64_t _drop_earlier(_Key* keys, int64_t n) noexcept nogil:
    """Keeps the last of equal keys, in the order of their rows; returns how many are left."""
    cdef int64_t at, kept = 0
    for at in range(1, n):
        if _compare_keys(&keys[at - 1], &keys[at]) >= 0:
            break
    else:
        return n  # ids ascend, as most writers have it
    qsort(keys, <size_t>n, sizeof(_Key), _compare_keys_and_rows)
    for at in range(n):
        if at + 1 == n or _compare_keys(&keys[at], &keys[at + 1]) != 0:
            keys[kept] = keys[at]
            kept += 1
    qsort(keys, <size_t>kept, sizeof(_Key), _compare_rows)
    return kept


cdef int _compare_keys(const void* one, const void* other) noexcept nogil:
    cdef const _Key* a = <const _Key*>one
    cdef const _Key* b = <const _Key*>other
    if a.owner != b.owner:
        return 1 if a.owner > b.owner else -1
    return (a.id > b.id) - (a.id < b.id)


cdef int _compare_rows(const void* one, const void* other) noexcept nogil:
    cdef int64_t a = (<const _Key*>one).row, b = (<const _Key*>other).row
    return (a > b) - (a < b)


cdef int _compare_keys_and_rows(const void* one, const void* other) noexcept nogil:
    cdef int order = _compare_keys(one, other)
    return order if order else _compare_rows(one, other)


def take_entries(const int64_t[:, ::1] entries, const int64_t[:, ::1] chosen):
    """The entries with the rows of `last_entries`: int64 of shape (chosen, META_WIDTH)."""
    cdef Growing rows = Growing(NULL, 0, 0)
    cdef int64_t at
    cdef int column
    for at in range(chosen.shape[0]):
        if not 0 <= chosen[at, CHOSEN_ROW] < entries.shape[0]:
            raise IndexError("there is no such entry")
        for column in range(META_WIDTH):
            push(&rows, entries[chosen[at, CHOSEN_ROW], column])
    return as_table(&rows, META_WIDTH)


def take_stats(const int64_t[:, ::1] stats, const int64_t[:, ::1] chosen):
    """The stats of chosen entries, whose entry is its place among those: int64 of shape (stats of these, STAT_WIDTH).

    Args:
        stats: int64 of shape (stats, STAT_WIDTH), from `walk_metadata`; their entries ascend.
    """
    cdef Growing rows = Growing(NULL, 0, 0)
    cdef int64_t row, at = 0
    for row in range(stats.shape[0]):
        while at < chosen.shape[0] and chosen[at, CHOSEN_ROW] < stats[row, STAT_ENTRY]:
            at += 1
        if at < chosen.shape[0] and chosen[at, CHOSEN_ROW] == stats[row, STAT_ENTRY]:
            push(&rows, at)
            push(&rows, stats[row, STAT_START])
            push(&rows, stats[row, STAT_STOP])
    return as_table(&rows, STAT_WIDTH)
