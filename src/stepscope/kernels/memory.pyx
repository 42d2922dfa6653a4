"""How this process gets its memory from the system."""

cdef extern from *:
    """
    #if defined(__linux__) && defined(__GLIBC__)
    #include <malloc.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #endif

    static int stepscope_keep_heap(size_t kept, size_t mapped_from) {
    #if defined(__linux__) && defined(__GLIBC__) && defined(MADV_HUGEPAGE)
        enum { SMALL = 1 << 20, USUAL_PAD = 128 << 10, PAGE = 4095 };
        uintptr_t first, stop;
        void* start;
        int done = 0;
        if (!mallopt(M_MMAP_THRESHOLD, (int)mapped_from) || !mallopt(M_TRIM_THRESHOLD, (int)(2 * kept))
                || !mallopt(M_ARENA_MAX, 1) || !mallopt(M_TOP_PAD, (int)kept))
            return 0;
        start = malloc(SMALL);  /* lets the heap grow by all that is kept; nothing of it is touched */
        mallopt(M_TOP_PAD, USUAL_PAD);
        first = ((uintptr_t)start + PAGE) & ~(uintptr_t)PAGE;
        stop = (uintptr_t)sbrk(0) & ~(uintptr_t)PAGE;
        if (start && first < stop && stop - first <= 2 * kept)
            done = !madvise((void*)first, stop - first, MADV_HUGEPAGE);
        free(start);
        return done;
    #else
        (void)kept; (void)mapped_from;
        return 0;
    #endif
    }
    """
    bint keep_heap "stepscope_keep_heap"(size_t kept, size_t mapped_from) noexcept nogil


def prefer_large_heap():
    """Lets the heap keep what is freed, in pages of 2 MB: an analysis makes and frees tables of some megabytes all the
    time, and asking the system for pages of 4 KB anew took a tenth of the time of a command.

    For a process of our own, before it makes other threads: it changes the memory of all that runs in it.

    Returns:
        False if the system cannot do that; nothing is lost then.
    """
    return keep_heap(96 << 20, 12 << 20)
