"""The bytes of a file, of which only what is asked for is in memory, at their places: positions are those in the file.

Nearly all of a profile are its lines, which are gone through twice, in order: in a window that stays in the caches they
cost less than in memory that the system clears first.  What else there is, such as names, is fetched to its place.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap
from posix.unistd cimport close, dup, pread

cdef extern from *:
    """
    #include <sys/mman.h>
    /* Little of it is used, here and there: a page of 2 MB for each such place would be most of it. */
    static void stepscope_prefer_small_pages(void* memory, size_t size) {
    #if defined(MADV_NOHUGEPAGE)
        madvise(memory, size, MADV_NOHUGEPAGE);
    #else
        (void)memory; (void)size;
    #endif
    }
    """
    void prefer_small_pages "stepscope_prefer_small_pages"(void* memory, size_t size) noexcept nogil

cdef enum:
    _BLOCK_BYTES = 64 << 10
    _WINDOW_BYTES = 256 << 10


cdef class Source:
    """The bytes of a file or of a buffer.  Of a file that becomes shorter, zeros are read for what is gone.

    Args:
        content: a buffer; None for a file.
        file: the number of an open file, which may be closed afterwards; size: how many of its bytes count.

    Attributes:
        size: how many bytes there are.

    Raises:
        OSError: a file cannot be read.
        MemoryError: there is no room for so many bytes.
    """

    def __cinit__(self, content=None, int file=-1, int64_t size=0):
        cdef const uint8_t[::1] view
        cdef void* place
        self.file = -1
        if content is not None:
            self.content = memoryview(content)
            view = self.content
            self.size = view.shape[0]
            self.start = &view[0] if self.size else NULL
            return
        self.size = max(size, 0)
        self.is_there = <uint8_t*>calloc(<size_t>(self.size // _BLOCK_BYTES + 1), 1)
        place = mmap(NULL, <size_t>max(self.size, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if self.is_there == NULL or place == MAP_FAILED:
            raise MemoryError
        prefer_small_pages(place, <size_t>max(self.size, 1))
        self.start = self.room = <uint8_t*>place
        self.file = dup(file)
        if self.file < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        if self.room != NULL:
            munmap(self.room, <size_t>max(self.size, 1))
        free(self.is_there)
        if self.file >= 0:
            close(self.file)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, <void*>self.start, self.size, 1, flags)

    def view(self):
        """All bytes at their places; of a file only those that were fetched are there."""
        return self.content if self.content is not None else memoryview(self)

    def take(self, int64_t size):
        """The first bytes as a source of their own."""
        return Source(self.content[:size]) if self.content is not None else Source(None, self.file, min(size, self.size))

    def head(self, int64_t size):
        """The first bytes."""
        with nogil:
            self.fetch(0, size)
        return bytes(self.view()[:size])

    def read(self, int64_t first, int64_t stop, uint8_t[::1] room):
        """The bytes of a range: those of the buffer itself, or read from the file to the start of some room."""
        if not 0 <= first <= stop <= self.size:
            raise IndexError(f"no part of {self.size} bytes: {first} to {stop}")
        if self.content is not None:
            return self.content[first:stop]
        if room.shape[0] < stop - first:
            raise IndexError("the bytes have no room")
        if first < stop:
            with nogil:
                self.read_at(&room[0], first, stop)
        return memoryview(room)[:stop - first]

    cdef int fetch(self, int64_t first, int64_t stop) except -1 nogil:
        """Has a range at its place; what lies outside is ignored."""
        cdef int64_t block, begin
        if self.is_there == NULL:
            return 0
        first, stop = max(first, 0), min(stop, self.size)
        if first >= stop:
            return 0
        for block in range(first // _BLOCK_BYTES, (stop - 1) // _BLOCK_BYTES + 1):
            if not self.is_there[block]:
                begin = block * _BLOCK_BYTES
                self.read_at(self.room + begin, begin, min(begin + _BLOCK_BYTES, self.size))
                self.is_there[block] = 1
        return 0

    cdef int read_at(self, uint8_t* into, int64_t first, int64_t stop) except -1 nogil:
        cdef Py_ssize_t count
        while first < stop:
            count = pread(self.file, into, <size_t>(stop - first), first)
            if count < 0 and errno == EINTR:
                continue
            if count < 0:
                with gil:
                    PyErr_SetFromErrno(OSError)
            if count == 0:
                memset(into, 0, <size_t>(stop - first))
                break
            into += count
            first += count
        return 0

    cdef int look(self, Window* window, int64_t at) except -1 nogil:
        """Moves a window so that the head of the field at a place is there."""
        if self.is_there == NULL:
            window.base = self.start
        elif at < window.start or (at + LONGEST_HEAD > window.stop and window.stop < self.size):
            if window.room == NULL:
                window.room = <uint8_t*>malloc(_WINDOW_BYTES)
                if window.room == NULL:
                    with gil:
                        raise MemoryError
            window.base, window.start, window.stop = window.room - at, at, min(at + _WINDOW_BYTES, self.size)
            self.read_at(window.room, at, window.stop)
        return 0
