"""How this process gets its memory from the system."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdlib cimport free

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #if defined(__linux__)
    #include <limits.h>
    #include <malloc.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #endif

    static void* stepscope_large_pages(size_t size) {
        void* memory = malloc(size);
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        uintptr_t first = ((uintptr_t)memory + 4095) & ~(uintptr_t)4095;
        if (memory && size >= (1u << 22))
            madvise((void*)first, size - (first - (uintptr_t)memory), MADV_HUGEPAGE);
    #endif
        return memory;
    }

    static void stepscope_give_back(char* first, char* stop) {
    #if defined(__linux__) && defined(MADV_DONTNEED)
        uintptr_t from = ((uintptr_t)first + 4095) & ~(uintptr_t)4095;
        uintptr_t to = (uintptr_t)stop & ~(uintptr_t)4095;
        if (from < to)
            madvise((void*)from, to - from, MADV_DONTNEED);
    #else
        (void)first; (void)stop;
    #endif
    }

    static int stepscope_keep_heap(size_t room) {
    #if defined(__linux__) && defined(__GLIBC__) && defined(MADV_HUGEPAGE)
        enum { SMALL = 1 << 20, USUAL_PAD = 128 << 10, PAGE = 4095 };
        uintptr_t first, stop;
        void* start;
        int done = 0;
        if (!mallopt(M_MMAP_MAX, 0) || !mallopt(M_TRIM_THRESHOLD, INT_MAX) || !mallopt(M_ARENA_MAX, 1)
                || !mallopt(M_TOP_PAD, (int)room))
            return 0;
        start = malloc(SMALL);  /* lets the heap grow by the room; nothing of it is touched */
        mallopt(M_TOP_PAD, USUAL_PAD);
        first = ((uintptr_t)start + PAGE) & ~(uintptr_t)PAGE;
        stop = (uintptr_t)sbrk(0) & ~(uintptr_t)PAGE;
        if (start && first < stop && stop - first <= 2 * room)
            done = !madvise((void*)first, stop - first, MADV_HUGEPAGE);
        free(start);
        return done;
    #else
        (void)room;
        return 0;
    #endif
    }
    """
    void give_back "stepscope_give_back"(char* first, char* stop) noexcept nogil
    bint keep_heap "stepscope_keep_heap"(size_t room) noexcept nogil
    void* large_pages "stepscope_large_pages"(size_t size) noexcept nogil

cdef enum:
    _ROOM_BYTES = 1 << 30  # addresses, not memory; a million events and their file need a quarter of it
    _TABLE_BYTES = 12 << 20  # columns of a million events; with the 32 MB that glibc allows the peak is 5 % higher


def prefer_large_heap():
    """Lets everything be in one heap, in pages of 2 MB, that keeps what is freed.

    What the file was read into then becomes the tables of the analysis, which makes and frees tables of some megabytes
    all the time.  Asking the system for memory anew each time took a fifth of the time of a command, and more in a
    virtual machine whose free memory goes back to its host.

    For a process of our own, before it makes other threads: it changes the memory of all that runs in it.

    Returns:
        False if the system cannot do that; nothing is lost then.
    """
    return keep_heap(_ROOM_BYTES)


def prefer_heap():
    """Lets tables of some megabytes be in the heap, where what is freed becomes the next ones.

    The C library of Linux takes each of them from the system and gives it back, until a process has freed a larger one:
    this frees one, to which nothing was written.  A third of the page faults of a first overview go.
    """
    with nogil:
        free(large_pages(_TABLE_BYTES))


@cython.final
cdef class Memory:
    """Bytes to which nothing has been written yet, in large pages; a buffer.  Raises MemoryError.

    Args:
        size: how many.
    """

    cdef void* start
    cdef Py_ssize_t size

    def __cinit__(self, Py_ssize_t size):
        self.size = max(size, 0)
        self.start = large_pages(<size_t>max(size, 1))
        if self.start == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.start)

    def release(self, Py_ssize_t first, Py_ssize_t stop):
        """Gives the pages within a range of bytes back to the system, where it can do that.

        What they held is lost.  Raises IndexError if the range is not inside.
        """
        if not 0 <= first <= stop <= self.size:
            raise IndexError(f"no part of {self.size} bytes: {first} to {stop}")
        with nogil:
            give_back(<char*>self.start + first, <char*>self.start + stop)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.size, 0, flags)
