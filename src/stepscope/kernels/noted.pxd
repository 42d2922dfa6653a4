"""Numbers that are noted while a program runs: in memory of the C library alone, so that nothing else is loaded there;
and one of them, how long a thread has run.

`growing.pxd` is for tables of an analysis, whose memory may lie in files.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

cdef extern from *:
    """
    #if defined(__linux__)
    #include <time.h>
    /* The ns that a thread has run, by the system's number of it: 6 is the clock of one thread.  -1 if it is none. */
    static int64_t stepscope_thread_ns(int64_t number) {
        struct timespec used;
        if (number <= 0 || number > INT_MAX || clock_gettime((clockid_t)(~(int)number << 3 | 6), &used) != 0) return -1;
        return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
    }
    #else
    static int64_t stepscope_thread_ns(int64_t number) { return -1; }
    #endif
    """
    int64_t thread_ns "stepscope_thread_ns"(int64_t number)

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
