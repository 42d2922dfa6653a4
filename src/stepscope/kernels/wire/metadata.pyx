"""The entries of the metadata maps."""

from libc.stdint cimport int64_t, uint8_t

from stepscope.kernels.growing cimport Growing, as_table, push
from stepscope.kernels.wire.fields cimport DELIMITED, OK, OVERRUN, VARINT, Field, read_field

cpdef enum:
    # Columns of `walk_metadata`'s `entries`, one row a metadata entry.
    META_ID
    META_NAME
    META_DISPLAY
    META_BAD_AT
    META_BAD_CODE
    META_WIDTH

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
