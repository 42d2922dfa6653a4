"""Reads small files of the system and gives no other thread the interpreter meanwhile.

`os.pread` releases it for some microseconds.  To get it back, a thread of ours waits for up to 5 ms, and then interrupts
the training thread once more.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, strtoll

from stepscope.kernels.noted cimport Noted, note, thread_ns

cdef extern from *:
    """
    #if defined(_WIN32)
    static Py_ssize_t stepscope_read_start(int handle, char *to, size_t most) { return -1; }
    #else
    #include <unistd.h>
    static Py_ssize_t stepscope_read_start(int handle, char *to, size_t most) { return pread(handle, to, most, 0); }
    #endif
    """
    Py_ssize_t stepscope_read_start(int handle, char *to, size_t most)

cdef enum:
    MOST = 256  # bytes, which contain everything that is needed


def read_start(int handle):
    """The first 256 bytes of an open file; none if it cannot be read.  For files that the system makes anew for each
    read: one on a disk would keep the interpreter waiting."""
    cdef char start[MOST]
    cdef Py_ssize_t size = stepscope_read_start(handle, start, MOST)
    return start[:size] if size > 0 else b""


cdef class Meter:
    """What one thread has used, as the system counts it: readings, until they are taken.

    Args:
        name: of the thread.
        number: the system's number of it.
        handle: its `schedstat`, open; -1 once that is closed.

    Attributes:
        last_ns: when it was read last.
    """

    cdef readonly str name
    cdef readonly int number
    cdef public int handle
    cdef readonly int64_t last_ns
    cdef Noted readings  # each three numbers

    def __init__(self, str name, int number, int handle):
        self.name, self.number, self.handle = name, number, handle

    def __dealloc__(self):
        free(self.readings.items)

    def __len__(self):
        return self.readings.size // 3

    def read(self, int64_t now_ns):
        """Takes a reading; none once the thread has ended."""
        cdef char start[MOST + 1]
        cdef char* rest
        cdef int64_t ran = thread_ns(self.number)
        cdef Py_ssize_t size = stepscope_read_start(self.handle, start, MOST)
        if ran < 0 or size <= 0:
            return
        self.last_ns = now_ns
        start[size] = 0
        strtoll(start, &rest, 10)  # how long it ran, without the time since it was last set going
        note(&self.readings, now_ns)  # no object is made: other threads read, too
        note(&self.readings, ran)
        note(&self.readings, strtoll(rest, NULL, 10))

    def take(self):
        """The readings since the last time: of each the time, how long the thread has run, and for how long it was ready
        and did not run; all in ns."""
        cdef Noted taken = self.readings
        cdef int64_t at
        self.readings.items, self.readings.size, self.readings.room = NULL, 0, 0
        try:
            return [(taken.items[at], taken.items[at + 1], taken.items[at + 2]) for at in range(0, taken.size, 3)]
        finally:
            free(taken.items)
