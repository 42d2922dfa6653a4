"""Large blocks of memory in files, so that a process keeps within a set size.

The module is also a library that is loaded before all others (`LD_PRELOAD`).  Then its `malloc` is that of the whole
process: of numpy, of the loops here, and of Python.  Until `start` is called it passes everything on.  From then on a
block of a megabyte or more is a file that has no name and is mapped into memory.  Whenever the process takes more memory
than it may, such blocks leave it; what they hold stays in the system's cache of files or on the disk, and comes back when
it is touched.  No analysis knows of this, so results are the same.

Works with glibc on Linux; elsewhere `is_possible` says no.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #if defined(__linux__) && defined(__GLIBC__)
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <pthread.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/resource.h>
    #include <sys/stat.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    #ifndef O_TMPFILE
    #define O_TMPFILE (020000000 | 0200000)
    #endif
    extern void* __libc_malloc(size_t);
    extern void* __libc_calloc(size_t, size_t);
    extern void* __libc_realloc(void*, size_t);
    extern void __libc_free(void*);

    #define SPILL_EXPORT __attribute__((visibility("default")))
    enum { SPILL_PAGE = 4096, SPILL_LEAST = 1 << 20, SPILL_LOOK_US = 5000, SPILL_CLOSE_LOOK_US = 500,
           SPILL_RESERVE = 256 << 20 };

    /* Lies in the page before the memory that the caller gets. */
    typedef struct spill_block {
        struct spill_block *next, *previous;
        size_t mapped;  /* bytes, with this page */
        size_t wanted;
        int file;
    } spill_block;

    static pthread_mutex_t spill_lock = PTHREAD_MUTEX_INITIALIZER;
    static spill_block spill_all = {&spill_all, &spill_all, 0, 0, -1};    /* in use, the newest first */
    static spill_block spill_spare = {&spill_spare, &spill_spare, 0, 0, -1};  /* freed, to be used again */
    static volatile int spill_on = 0, spill_used = 0, spill_watched = 0;
    static char spill_folder[4096];
    static size_t spill_limit = 0;
    static size_t spill_seen = 0;  /* bytes in memory at the last look */
    static volatile long long spill_bytes = 0, spill_evictions = 0;
    static size_t spill_spare_bytes = 0;

    static size_t spill_rounded(size_t size) {
        return (size + 2 * SPILL_PAGE - 1) & ~(size_t)(SPILL_PAGE - 1);
    }

    static void spill_link(spill_block* list, spill_block* block) {
        block->next = list->next;
        block->previous = list;
        list->next->previous = block;
        list->next = block;
    }

    static void spill_unlink(spill_block* block) {
        block->previous->next = block->next;
        block->next->previous = block->previous;
    }

    static void spill_enter(spill_block* block) {
        pthread_mutex_lock(&spill_lock);
        spill_link(&spill_all, block);
        spill_bytes += block->mapped;
        pthread_mutex_unlock(&spill_lock);
    }

    static void spill_leave(spill_block* block) {
        spill_unlink(block);
        spill_bytes -= block->mapped;
    }

    /* The block of an address, taken out of the list; NULL for memory of the C library. */
    static spill_block* spill_take(void* memory) {
        spill_block* at;
        if (!spill_used || !memory || ((uintptr_t)memory & (SPILL_PAGE - 1)))
            return NULL;
        pthread_mutex_lock(&spill_lock);
        for (at = spill_all.next; at != &spill_all; at = at->next)
            if ((char*)at + SPILL_PAGE == (char*)memory) {
                spill_leave(at);
                pthread_mutex_unlock(&spill_lock);
                return at;
            }
        pthread_mutex_unlock(&spill_lock);
        return NULL;
    }

    /* The memory of this process in bytes. */
    static size_t spill_resident(void) {
        char text[128];
        long long total = 0, resident = 0;
        int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
        if (file >= 0)
            close(file);
        if (got <= 0)
            return 0;
        text[got] = 0;
        if (sscanf(text, "%lld %lld", &total, &resident) != 2)
            return 0;
        return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
    }

    static size_t spill_evict_from(spill_block* list, size_t resident, size_t goal) {
        spill_block* at;
        for (at = list->previous; at != list && resident > goal; at = at->previous) {
            madvise((char*)at + SPILL_PAGE, at->mapped - SPILL_PAGE, MADV_DONTNEED);
            resident = spill_resident();
        }
        return resident;
    }

    /* The oldest blocks first: young ones are what an analysis works on, and to write to them costs much more if they
       come back page by page. */
    static void spill_evict(size_t resident, size_t goal) {
        pthread_mutex_lock(&spill_lock);
        resident = spill_evict_from(&spill_all, resident, goal);
        spill_evict_from(&spill_spare, resident, goal);
        spill_evictions += 1;
        pthread_mutex_unlock(&spill_lock);
    }

    /* It grows until the next look, so what is kept is less.  A loop that reads here and there brings back 64 KB with
       each page that it touches: 300 MB in 5 ms were seen. */
    static void spill_keep(void) {
        size_t reserve = spill_limit / 2 < SPILL_RESERVE ? spill_limit / 2 : SPILL_RESERVE;
        size_t most = spill_limit - (reserve < spill_limit / 4 ? spill_limit / 4 : reserve);
        spill_seen = spill_resident();
        if (spill_seen > most)
            spill_evict(spill_seen, most / 3 * 2);
    }

    /* A freed block of about that size.  Its pages are there, so it costs a fraction of a new file; an analysis makes
       and frees columns of the same few sizes all the time. */
    static spill_block* spill_reuse(size_t mapped) {
        spill_block* at;
        pthread_mutex_lock(&spill_lock);
        for (at = spill_spare.next; at != &spill_spare; at = at->next)
            if (at->mapped >= mapped && at->mapped - mapped <= mapped / 8) {
                spill_unlink(at);
                spill_spare_bytes -= at->mapped;
                pthread_mutex_unlock(&spill_lock);
                return at;
            }
        pthread_mutex_unlock(&spill_lock);
        return NULL;
    }

    static void* spill_new(size_t size, int zeros) {
        size_t mapped = spill_rounded(size);
        spill_block* block;
        int file;
        if (mapped < size)
            return NULL;
        spill_keep();
        block = spill_reuse(mapped);
        if (block) {
            block->wanted = size;
            spill_enter(block);
            return zeros ? memset((char*)block + SPILL_PAGE, 0, size) : (char*)block + SPILL_PAGE;
        }
        file = open(spill_folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0)
            return NULL;
        /* Space is reserved: where the disk is full later, touching a page would end the process. */
        if (posix_fallocate(file, 0, (off_t)mapped)) {
            close(file);
            return NULL;
        }
        block = (spill_block*)mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (block == MAP_FAILED) {
            close(file);
            return NULL;
        }
        block->mapped = mapped;
        block->wanted = size;
        block->file = file;
        spill_used = 1;
        spill_enter(block);
        return (char*)block + SPILL_PAGE;
    }

    static void spill_drop(spill_block* block) {
        int file = block->file;
        munmap(block, block->mapped);
        close(file);
    }

    /* Keeps a freed block for later; the oldest make room for it. */
    static void spill_put_aside(spill_block* block) {
        size_t most = spill_limit / 4;
        spill_block dropped = {&dropped, &dropped, 0, 0, -1}, *at;
        if (!spill_on || block->mapped > most) {
            spill_drop(block);
            return;
        }
        pthread_mutex_lock(&spill_lock);
        spill_link(&spill_spare, block);
        spill_spare_bytes += block->mapped;
        while (spill_spare_bytes > most) {
            at = spill_spare.previous;
            spill_unlink(at);
            spill_spare_bytes -= at->mapped;
            spill_link(&dropped, at);
        }
        pthread_mutex_unlock(&spill_lock);
        while (dropped.next != &dropped) {
            at = dropped.next;
            spill_unlink(at);
            spill_drop(at);
        }
    }

    /* A file that is there already, to be read: nothing of it is copied, and its pages leave as those of others do. */
    static void* spill_view(int file, size_t size) {
        size_t mapped = spill_rounded(size);
        spill_block* block = (spill_block*)mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (block == MAP_FAILED)
            return NULL;
        if (mmap((char*)block + SPILL_PAGE, size, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
            munmap(block, mapped);
            return NULL;
        }
        block->mapped = mapped;
        block->wanted = size;
        block->file = -1;
        spill_used = 1;
        spill_enter(block);
        return (char*)block + SPILL_PAGE;
    }

    static void spill_end_view(void* memory) {
        spill_block* block = spill_take(memory);
        if (block)
            munmap(block, block->mapped);
    }

    static volatile int spill_probing = 0, spill_probed = 0;

    SPILL_EXPORT void* malloc(size_t size) {
        if (spill_probing)
            spill_probed = 1;
        void* memory = spill_on && size >= SPILL_LEAST ? spill_new(size, 0) : NULL;
        return memory ? memory : __libc_malloc(size);
    }

    SPILL_EXPORT void* calloc(size_t count, size_t size) {
        void* memory = NULL;
        if (spill_on && size && count <= (size_t)PTRDIFF_MAX / size && count * size >= SPILL_LEAST)
            memory = spill_new(count * size, 1);
        return memory ? memory : __libc_calloc(count, size);
    }

    SPILL_EXPORT void free(void* memory) {
        int kept = errno;
        spill_block* block = spill_take(memory);
        if (block)
            spill_put_aside(block);
        else
            __libc_free(memory);
        errno = kept;
    }

    static void* spill_grow(spill_block* block, size_t size) {
        size_t mapped = spill_rounded(size);
        void* moved;
        if (mapped >= size && mapped <= block->mapped) {
            block->wanted = size;
            return block;
        }
        if (mapped < size || posix_fallocate(block->file, 0, (off_t)mapped))
            return NULL;
        moved = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, block->file, 0);  /* the same file, larger */
        if (moved == MAP_FAILED)
            return NULL;
        munmap(block, block->mapped);
        block = (spill_block*)moved;
        block->mapped = mapped;
        block->wanted = size;
        return block;
    }

    SPILL_EXPORT void* realloc(void* memory, size_t size) {
        spill_block *block = spill_take(memory), *moved;
        void* copied;
        if (!block) {
            if (!(spill_on && size >= SPILL_LEAST))
                return __libc_realloc(memory, size);
            /* The C library alone knows how much of its block there is to copy: it grows it, and then it is moved. */
            copied = spill_new(size, 0);
            if (!copied)
                return __libc_realloc(memory, size);
            if (memory) {
                void* grown = __libc_realloc(memory, size);
                if (!grown) {
                    free(copied);
                    return NULL;
                }
                memcpy(copied, grown, size);
                __libc_free(grown);
            }
            return copied;
        }
        if (size >= SPILL_LEAST) {
            moved = (spill_block*)spill_grow(block, size);
            spill_enter(moved ? moved : block);
            if (moved)
                return (char*)moved + SPILL_PAGE;
            errno = ENOMEM;
            return NULL;
        }
        copied = size ? __libc_malloc(size) : NULL;
        if (size && !copied) {
            spill_enter(block);
            return NULL;
        }
        if (size)
            memcpy(copied, (char*)block + SPILL_PAGE, size < block->wanted ? size : block->wanted);
        spill_put_aside(block);
        return copied;
    }

    static void* spill_watch(void* nothing) {
        (void)nothing;
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20);  /* where that is allowed */
        for (;;) {
            usleep(spill_seen > spill_limit / 4 ? SPILL_CLOSE_LOOK_US : SPILL_LOOK_US);
            if (spill_used)
                spill_keep();
        }
        return NULL;
    }

    /* Whether the C library, and so everything else, calls the malloc above. */
    static int spill_is_first(void) {
        char* copy;
        spill_probed = 0;
        spill_probing = 1;
        copy = strdup(spill_folder);
        spill_probing = 0;
        free(copy);  /* by whichever library made it */
        return spill_probed;
    }

    static int spill_start(const char* folder, long long limit) {
        pthread_t thread;
        if (!spill_is_first() || strlen(folder) >= sizeof spill_folder)
            return 0;
        strcpy(spill_folder, folder);
        spill_limit = (size_t)limit;
        if (!spill_watched) {
            if (pthread_create(&thread, NULL, spill_watch, NULL))
                return 0;
            pthread_detach(thread);
            spill_watched = 1;
        }
        spill_on = 1;
        return 1;
    }

    static void spill_stop(void) { spill_on = 0; }
    static int spill_is_on(void) { return spill_on; }
    static int spill_possible(void) { return 1; }
    #else
    static long long spill_bytes = 0, spill_evictions = 0;
    static int spill_is_first(void) { return 0; }
    static int spill_start(const char* folder, long long limit) { (void)folder; (void)limit; return 0; }
    static void spill_stop(void) {}
    static int spill_is_on(void) { return 0; }
    static void* spill_view(int file, size_t size) { (void)file; (void)size; return NULL; }
    static void spill_end_view(void* memory) { (void)memory; }
    static int spill_possible(void) { return 0; }
    #endif
    """
    const long long spill_bytes
    const long long spill_evictions
    bint spill_is_first() noexcept
    bint spill_start(const char* folder, long long limit) noexcept
    void spill_stop() noexcept
    bint spill_is_on() noexcept
    void* spill_view(int file, size_t size) noexcept
    void spill_end_view(void* memory) noexcept
    bint spill_possible() noexcept


def is_possible():
    """Whether this system can do it at all."""
    return spill_possible()


def is_loaded():
    """Whether this process was started with the library, so that `start` works."""
    return spill_is_first()


def start(folder, int64_t limit):
    """Puts large blocks into files from now on.

    Args:
        folder: on a disk; a file system in memory would save nothing.
        limit: the memory of the process in bytes above which these blocks leave it.

    Returns:
        False if this process was not started with the library.
    """
    return spill_start(folder.encode("utf-8", "surrogateescape"), limit)


def stop():
    """Takes large blocks from memory again; those in files stay there until they are freed."""
    spill_stop()


def is_on():
    """Whether large blocks go into files now."""
    return spill_is_on()


@cython.final
cdef class FileView:
    """The bytes of a file, read-only, while blocks go into files; a buffer.  Nobody may shorten the file meanwhile.

    Args:
        file: the number of the open file; it may be closed afterwards.
        size: its bytes; at least one.

    Raises:
        OSError: the file cannot be mapped into memory.
    """

    cdef void* start
    cdef Py_ssize_t size

    def __cinit__(self, int file, Py_ssize_t size):
        self.size = size
        self.start = spill_view(file, <size_t>size)
        if self.start == NULL:
            raise OSError("the file cannot be mapped into memory")

    def __dealloc__(self):
        if self.start != NULL:
            spill_end_view(self.start)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.size, 1, flags)


def figures():
    """The bytes that lie in files now, and how often blocks had to leave the process."""
    return spill_bytes, spill_evictions
