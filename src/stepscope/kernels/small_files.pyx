"""Reads small files of the system and gives no other thread the interpreter meanwhile.

`os.pread` releases it for some microseconds.  To get it back, a thread of ours waits for up to 5 ms, and then interrupts
the training thread once more.
"""

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
