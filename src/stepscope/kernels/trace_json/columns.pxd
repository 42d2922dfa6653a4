"""The columns of events and stats, which grow as they are filled."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from stepscope.kernels.growing cimport prefer_large_pages
from stepscope.kernels.memory cimport resize


cdef struct Rows:
    # One row an event.  Texts are ids; `us` and `frac_ps` add up to the time; `flow` is an `id` that is a whole number,
    # or the id of its text; `stat_end` is the row after the event's last stat.
    uint8_t *phase
    uint8_t *flags
    int32_t *cat
    int32_t *name
    int32_t *pid
    int32_t *tid
    int64_t *us
    int32_t *frac_ps
    int64_t *duration_us
    int32_t *duration_frac_ps
    int64_t *flow
    int64_t *stat_end
    int64_t count
    int64_t room


cdef struct Stats:
    # One row a stat; a double's value is its bits.  `slow` holds (row, begin, end) of the numbers that need a careful
    # conversion.
    int32_t *name
    uint8_t *tag
    int64_t *value
    int64_t count
    int64_t room
    int64_t *slow
    int64_t slow_count
    int64_t slow_room


cdef inline bint resized(void **column, int64_t count, int64_t item_bytes) noexcept nogil:
    """A column with room for so many items.  False if there is no memory; then it is as it was."""
    cdef void *larger = resize(column[0], count * item_bytes)
    if larger != NULL:
        column[0] = larger
        prefer_large_pages(larger, count * item_bytes)
    return larger != NULL


cdef inline bint make_room_for_rows(Rows *rows, int64_t count) noexcept nogil:
    """Room for so many rows more.  Pages that nothing was written to take no memory."""
    cdef int64_t room = rows.room if rows.room else 1 << 10
    if rows.count + count <= rows.room:
        return True
    while room < rows.count + count:
        room *= 2
    if not (
        resized(<void **>&rows.phase, room, 1)
        and resized(<void **>&rows.flags, room, 1)
        and resized(<void **>&rows.cat, room, 4)
        and resized(<void **>&rows.name, room, 4)
        and resized(<void **>&rows.pid, room, 4)
        and resized(<void **>&rows.tid, room, 4)
        and resized(<void **>&rows.us, room, 8)
        and resized(<void **>&rows.frac_ps, room, 4)
        and resized(<void **>&rows.duration_us, room, 8)
        and resized(<void **>&rows.duration_frac_ps, room, 4)
        and resized(<void **>&rows.flow, room, 8)
        and resized(<void **>&rows.stat_end, room, 8)
    ):
        return False
    rows.room = room
    return True


cdef inline bint make_room_for_stats(Stats *stats, int64_t count) noexcept nogil:
    """Room for so many stats in all."""
    cdef int64_t room = stats.room if stats.room else 1 << 12
    if count <= stats.room:
        return True
    while room < count:
        room *= 2
    if not (
        resized(<void **>&stats.name, room, 4)
        and resized(<void **>&stats.tag, room, 1)
        and resized(<void **>&stats.value, room, 8)
    ):
        return False
    stats.room = room
    return True


cdef inline bint make_room_for_slow(Stats *stats, int64_t count) noexcept nogil:
    """Room for so many slow numbers in all."""
    cdef int64_t room = stats.slow_room * 2 if stats.slow_room else 1 << 6
    if count <= stats.slow_room:
        return True
    if not resized(<void **>&stats.slow, room, 24):
        return False
    stats.slow_room = room
    return True
