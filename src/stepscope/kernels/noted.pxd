"""Numbers that are noted while a program runs: in memory of the C library alone, so that nothing else is loaded there.

`growing.pxd` is for tables of an analysis, whose memory may lie in files.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

cdef struct Noted:
    int64_t* items
    int64_t size
    int64_t room


cdef inline int note(Noted* into, int64_t item) except -1:
    """Appends a number.  Whoever makes a `Noted` (all zeros) frees its `items`.  Raises MemoryError."""
    cdef void* moved
    if into.size == into.room:
        moved = realloc(into.items, <size_t> (2 * into.room + 64) * sizeof(int64_t))
        if moved == NULL:
            raise MemoryError
        into.items, into.room = <int64_t*> moved, 2 * into.room + 64
    into.items[into.size] = item
    into.size += 1
    return 0
