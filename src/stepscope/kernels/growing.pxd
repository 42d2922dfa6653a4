"""A list of integers that grows: stacks whose depth and tables whose length are not known before."""

cimport cython
from libc.stdint cimport int64_t

from stepscope.kernels.memory cimport free, resize

cdef struct Growing:
    int64_t* items
    int64_t size
    int64_t room


cdef extern from *:
    """
    #if defined(__linux__)
    #include <stdint.h>
    #include <sys/mman.h>
    #endif
    /* Asks for large pages, without which a third of the time of filling a large table goes to the kernel. */
    static void stepscope_prefer_large_pages(void* memory, size_t bytes) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        uintptr_t first = ((uintptr_t)memory + 4095) & ~(uintptr_t)4095;
        if (bytes >= (1u << 22))
            madvise((void*)first, bytes - (first - (uintptr_t)memory), MADV_HUGEPAGE);
    #else
        (void)memory; (void)bytes;
    #endif
    }
    """
    void prefer_large_pages "stepscope_prefer_large_pages"(void* memory, size_t size) noexcept nogil


cdef inline void* grown(void* items, int64_t room, size_t width) except NULL nogil:
    """Memory with room for so many items, and what was in it before.  Raises MemoryError."""
    cdef void* moved = resize(items, <size_t>room * width)
    if moved == NULL:
        with gil:
            raise MemoryError
    prefer_large_pages(moved, <size_t>room * width)
    return moved


cdef inline int push(Growing* into, int64_t item) except -1 nogil:
    """Appends an item.  Whoever makes a `Growing` (all zeros) frees its `items`.  Raises MemoryError."""
    if into.size == into.room:
        into.room = 2 * into.room if into.room else 64
        into.items = <int64_t*>grown(into.items, into.room, sizeof(int64_t))
    into.items[into.size] = item
    into.size += 1
    return 0


cdef inline int push_row(Growing* columns, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) except -1 nogil:
    """Appends a row to five columns."""
    push(&columns[0], a)
    push(&columns[1], b)
    push(&columns[2], c)
    push(&columns[3], d)
    push(&columns[4], e)
    return 0


cdef inline object as_table(Growing* rows, int64_t width):
    """The items as an array of shape (n, width), which owns their memory now."""
    cdef cython.view.array table
    rows.room = max(rows.size, width)
    rows.items = <int64_t*>grown(rows.items, rows.room, sizeof(int64_t))
    table = <int64_t[:rows.room // width, :width]>rows.items
    table.callback_free_data = free
    rows.items = NULL
    return table[:rows.size // width]


cdef inline object as_column(Growing* rows):
    """The items as an array of shape (n,), which owns their memory now."""
    cdef int64_t size = rows.size
    cdef cython.view.array column
    rows.room = max(size, 1)
    rows.items = <int64_t*>grown(rows.items, rows.room, sizeof(int64_t))
    column = <int64_t[:rows.room]>rows.items
    column.callback_free_data = free
    rows.items = NULL
    return column[:size]
