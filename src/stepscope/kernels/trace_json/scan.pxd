"""The columns and texts of a trace, for loops of other formats that fill them."""

from libc.stdint cimport int32_t, int64_t

from stepscope.kernels.trace_json.events cimport Scan


cdef class Scanner:
    cdef Scan _scan
    cdef int32_t *_became  # of an absorbed scanner: its texts as those of the one that absorbed it
    cdef int64_t _became_count
    cdef int64_t _became_room
    cdef readonly int64_t at
    cdef readonly bint recovering
    cdef readonly int64_t damaged
    cdef readonly int64_t damaged_at

    cdef _convert_slow(self)
