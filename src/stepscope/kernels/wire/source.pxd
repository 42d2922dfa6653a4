"""The bytes of a file, for loops that follow positions in it; see `source.pyx`."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    LONGEST_HEAD = 32  # bytes of a field before its content, or all of a field that has none

cdef struct Window:
    # Some bytes of a file that a loop goes through in order.
    const uint8_t* base  # where the file's first byte would be
    int64_t start  # of the bytes that are there
    int64_t stop
    uint8_t* room  # for the bytes; NULL where all of the file is there

cdef class Source:
    cdef object content
    cdef const uint8_t* start
    cdef uint8_t* room
    cdef uint8_t* is_there
    cdef int file
    cdef readonly int64_t size

    cdef int fetch(self, int64_t first, int64_t stop) except -1 nogil
    cdef int read_at(self, uint8_t* into, int64_t first, int64_t stop) except -1 nogil
    cdef int look(self, Window* window, int64_t at) except -1 nogil
