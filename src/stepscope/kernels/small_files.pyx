"""Reads small files of the system and gives no other thread the interpreter meanwhile.

`os.pread` releases it for some microseconds.  To get it back, a thread of ours waits for up to 5 ms, and then interrupts
the training thread once more.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc, strtoll

cdef extern from *:
    """
    #if defined(_WIN32)
    static Py_ssize_t stepscope_read_start(int handle, char *to, size_t most) { return -1; }
    #else
    #include <unistd.h>
    static Py_ssize_t stepscope_read_start(int handle, char *to, size_t most) { return pread(handle, to, most, 0); }
    #endif
    #if defined(__linux__)
    #include <time.h>
    /* The ns that a thread has run, by the system's number of it: 6 is the clock of one thread.  -1 if it is none. */
    static int64_t stepscope_thread_ns(int number) {
        struct timespec used;
        if (number <= 0 || clock_gettime((clockid_t)(~number << 3 | 6), &used) != 0) return -1;
        return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
    }
    #else
    static int64_t stepscope_thread_ns(int number) { return -1; }
    #endif
    """
    Py_ssize_t stepscope_read_start(int handle, char *to, size_t most)
    int64_t stepscope_thread_ns(int number)

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
    cdef int64_t* readings  # each three numbers
    cdef int64_t size, room

    def __init__(self, str name, int number, int handle):
        self.name, self.number, self.handle = name, number, handle

    def __dealloc__(self):
        free(self.readings)

    def __len__(self):
        return self.size

    def read(self, int64_t now_ns):
        """Takes a reading; none once the thread has ended."""
        cdef char start[MOST + 1]
        cdef char* rest
        cdef int64_t ran = stepscope_thread_ns(self.number)
        cdef Py_ssize_t size = stepscope_read_start(self.handle, start, MOST)
        cdef void* moved
        if ran < 0 or size <= 0:
            return
        self.last_ns = now_ns
        start[size] = 0
        strtoll(start, &rest, 10)  # how long it ran, without the time since it was last set going
        if self.size == self.room:
            moved = realloc(self.readings, <size_t> (2 * self.room + 64) * 3 * sizeof(int64_t))
            if moved == NULL:
                raise MemoryError
            self.readings, self.room = <int64_t*> moved, 2 * self.room + 64
        self.readings[3 * self.size] = now_ns
        self.readings[3 * self.size + 1] = ran
        self.readings[3 * self.size + 2] = strtoll(rest, NULL, 10)
        self.size += 1

    def take(self):
        """The readings since the last time: of each the time, how long the thread has run, and for how long it was ready
        and did not run; all in ns."""
        cdef int64_t* taken = self.readings
        cdef int64_t size = self.size, row
        self.readings, self.size, self.room = NULL, 0, 0
        try:
            return [(taken[3 * row], taken[3 * row + 1], taken[3 * row + 2]) for row in range(size)]
        finally:
            free(taken)
