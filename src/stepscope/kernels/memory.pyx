"""How this process gets its memory from the system: in large pages, and above a set size from files.

Once `keep_within` is called, blocks of a megabyte or more that would take the process above its size are files without a
name, which are mapped: what they hold stays in the system's cache of files or on the disk, and comes back when it is
touched.  Blocks are numpy's arrays, by the handler that numpy offers for that, and the tables of the loops here, by
`resize` and `free` of `memory.pxd`.  No analysis knows of this, so results are the same.

A program that calls the API keeps its memory as it is: an `ArrayPool` lends the memory of a file to the arrays of one
analysis.

To put every block into a file took two thirds of a command's processor time, since the file system is asked for each page
of 4 KB that is written to for the first time; so memory is used first.  Files need Linux.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #if defined(__linux__) && !defined(_GNU_SOURCE)
    #define _GNU_SOURCE
    #endif
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #include <pythread.h>
    #if defined(__linux__)
    #include <errno.h>
    #include <fcntl.h>
    #include <limits.h>
    #include <malloc.h>
    #include <pthread.h>
    #include <stdio.h>
    #include <sys/mman.h>
    #include <sys/resource.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    #ifndef O_TMPFILE
    #define O_TMPFILE (020000000 | 0200000)
    #endif
    #endif

    /* Asks for large pages for what was not written to yet. */
    static void* stepscope_in_large_pages(void* memory, size_t size) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        uintptr_t first = ((uintptr_t)memory + 4095) & ~(uintptr_t)4095;
        if (memory && size >= (1u << 22))
            madvise((void*)first, size - (first - (uintptr_t)memory), MADV_HUGEPAGE);
    #endif
        return memory;
    }

    static void* stepscope_large_pages(size_t size) {
        return stepscope_in_large_pages(malloc(size), size);
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

    /* ---- blocks that are files ---- */

    typedef struct {  /* where numpy gets memory: `PyDataMem_Handler` in its C API */
        char name[127];
        uint8_t version;
        void* context;
        void* (*malloc)(void*, size_t);
        void* (*calloc)(void*, size_t, size_t);
        void* (*realloc)(void*, void*, size_t);
        void (*free)(void*, void*, size_t);
    } numpy_handler;

    #if defined(__linux__)
    enum { BLOCK_ALIGNED = 4096, BLOCK_LEAST = 1 << 20, BLOCK_LOOK_US = 5000, BLOCK_NO_FILE = -1, BLOCK_VIEW = -2 };

    typedef struct block {
        struct block *next, *previous;
        char* start;
        size_t size;
        int file;
    } block;

    static pthread_mutex_t block_lock = PTHREAD_MUTEX_INITIALIZER;
    static block blocks = {&blocks, &blocks};  /* the newest first */
    static volatile int blocks_may_be_files = 0;
    static char block_folder[4096];
    static size_t block_limit = 0, block_room = 0;  /* for the process, and of it for blocks in memory */
    static volatile size_t block_held = 0;  /* bytes of blocks in memory */
    static volatile int64_t block_bytes = 0, block_trims = 0;

    static void block_enter(block* at, int sign) {
        if (at->file == BLOCK_NO_FILE)
            block_held += sign < 0 ? (size_t)0 - at->size : at->size;
        else if (at->file >= 0)
            block_bytes += sign * (int64_t)at->size;
    }

    static void block_link(block* at) {
        pthread_mutex_lock(&block_lock);
        at->next = blocks.next;
        at->previous = &blocks;
        blocks.next->previous = at;
        blocks.next = at;
        block_enter(at, 1);
        pthread_mutex_unlock(&block_lock);
    }

    /* The block that an address lies in; NULL for memory of the C library.  With the lock. */
    static block* block_find(const void* memory) {
        block* at;
        for (at = blocks.next; at != &blocks; at = at->next)
            if ((char*)memory >= at->start && (char*)memory < at->start + at->size)
                return at;
        return NULL;
    }

    /* The block that starts at an address, taken out of the list. */
    static block* block_take(void* memory) {
        block* at = NULL;
        if (!blocks_may_be_files || !memory || ((uintptr_t)memory & (BLOCK_ALIGNED - 1)))
            return NULL;
        pthread_mutex_lock(&block_lock);
        at = block_find(memory);
        if (at) {
            at->previous->next = at->next;
            at->next->previous = at->previous;
            block_enter(at, -1);
        }
        pthread_mutex_unlock(&block_lock);
        return at;
    }

    static void block_drop(block* at) {
        munmap(at->start, at->size);
        if (at->file >= 0)
            close(at->file);
        free(at);
    }

    static void* block_map(int file, size_t size, int rights, int flags) {
        block* at = (block*)malloc(sizeof(block));
        if (at)
            at->start = (char*)mmap(NULL, size, rights, flags, file, 0);
        if (!at || at->start == MAP_FAILED) {
            free(at);
            return NULL;
        }
        at->size = size;
        at->file = rights & PROT_WRITE ? file : BLOCK_VIEW;
        block_link(at);
        return at->start;
    }

    /* Space is reserved: where the disk is full later, touching a page would end the process.  BLOCK_NO_FILE if the disk is
       full now. */
    static int block_open(size_t size) {
        int file = open(block_folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 && posix_fallocate(file, 0, (off_t)size)) {
            close(file);
            file = BLOCK_NO_FILE;
        }
        return file;
    }

    /* Zeros. */
    static void* block_new(size_t size) {
        int file = block_held + size > block_room ? block_open(size) : BLOCK_NO_FILE;
        char* start;
        size = (size + BLOCK_ALIGNED - 1) & ~(size_t)(BLOCK_ALIGNED - 1);
        if (file >= 0)
            return block_map(file, size, PROT_READ | PROT_WRITE, MAP_SHARED);
        start = (char*)block_map(BLOCK_NO_FILE, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
        if (start && size >= (4u << 20))
            madvise(start, size, MADV_HUGEPAGE);
        return start;
    }

    static void* block_get(size_t size) {
        return blocks_may_be_files && size >= BLOCK_LEAST ? block_new(size) : stepscope_large_pages(size ? size : 1);
    }

    static void* block_zeros(size_t count, size_t width) {
        int is_large = width && count >= BLOCK_LEAST / width && count <= (size_t)PTRDIFF_MAX / width;
        if (blocks_may_be_files && is_large)
            return block_new(count * width);
        /* What overflows gets no memory, and asks for nothing. */
        return stepscope_in_large_pages(calloc(count ? count : 1, width ? width : 1), count * width);
    }

    static void block_put(void* memory) {
        block* at = block_take(memory);
        if (at)
            block_drop(at);
        else
            free(memory);
    }

    static int block_write(int file, const char* at, size_t size, size_t place) {
        while (size) {
            ssize_t done = pwrite(file, at, size, (off_t)place);
            if (done <= 0 && errno != EINTR)
                return 0;
            done = done < 0 ? 0 : done;
            at += done;
            place += (size_t)done;
            size -= (size_t)done;
        }
        return 1;
    }

    /* Writes to a part of a block.  Many pages of a file are written much faster so than by touching each. */
    static void block_fill(void* memory, size_t place, const void* from, size_t size) {
        int done = 0;
        if (blocks_may_be_files && size >= BLOCK_ALIGNED) {
            pthread_mutex_lock(&block_lock);
            block* at = block_find(memory);
            done = at && at->file >= 0 && block_write(at->file, (const char*)from, size, place);
            pthread_mutex_unlock(&block_lock);
        }
        if (!done)
            memcpy((char*)memory + place, from, size);
    }

    /* Puts the block that an address lies in into a file, at the same address.  Nobody may write to it meanwhile.  What
       lasts leaves the memory to what an analysis makes on its way, which costs less there. */
    static void block_settle(const void* memory) {
        block* at;
        int file;
        pthread_mutex_lock(&block_lock);
        at = block_held > block_room / 2 ? block_find(memory) : NULL;  /* else there is room for all that comes */
        file = at && at->file == BLOCK_NO_FILE ? block_open(at->size) : BLOCK_NO_FILE;
        if (file >= 0 && block_write(file, at->start, at->size, 0)
                && mmap(at->start, at->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED) {
            block_enter(at, -1);
            at->file = file;
            block_enter(at, 1);
        } else if (file >= 0)
            close(file);
        pthread_mutex_unlock(&block_lock);
    }

    /* Makes a block longer; 0 if the system refuses. */
    static int block_grow(block* at, size_t size) {
        void* moved;
        size = (size + BLOCK_ALIGNED - 1) & ~(size_t)(BLOCK_ALIGNED - 1);
        if (size <= at->size)
            return 1;
        if (at->file >= 0 ? posix_fallocate(at->file, 0, (off_t)size) : block_held + size > block_room)
            return 0;
        moved = mremap(at->start, at->size, size, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED)
            return 0;
        at->start = (char*)moved;
        at->size = size;
        return 1;
    }

    /* Memory that grows beyond its room moves into a file. */
    static void* block_resize(void* memory, size_t size) {
        block* at = block_take(memory);
        size_t old = at ? at->size : memory ? malloc_usable_size(memory) : 0;
        int grown = at && block_grow(at, size);
        void* copied;
        if (at)
            block_link(at);
        if (grown)
            return at->start;
        if (!at && !(blocks_may_be_files && size >= BLOCK_LEAST))
            return realloc(memory, size ? size : 1);
        copied = block_get(size);
        if (copied && memory) {
            block_fill(copied, 0, memory, old < size ? old : size);
            block_put(memory);
        }
        return copied;
    }

    /* The memory of this process in bytes. */
    static size_t block_resident(void) {
        char text[128];
        long long total = 0, resident = 0;
        int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
        if (file >= 0)
            close(file);
        text[got > 0 ? got : 0] = 0;
        return sscanf(text, "%lld %lld", &total, &resident) == 2 ? (size_t)resident * (size_t)sysconf(_SC_PAGESIZE) : 0;
    }

    /* Pages of files leave the process, those of the oldest first; what they hold stays in the files.  A loop that reads
       here and there brings back 64 KB with each page that it touches, so it grows quickly until the next look. */
    static void block_trim(void) {
        block* at;
        if (block_resident() < block_limit / 8 * 7)
            return;
        pthread_mutex_lock(&block_lock);
        block_trims += 1;
        for (at = blocks.previous; at != &blocks && block_resident() > block_limit / 8 * 5; at = at->previous)
            if (at->file != BLOCK_NO_FILE)
                madvise(at->start, at->size, MADV_DONTNEED);
        pthread_mutex_unlock(&block_lock);
    }

    static void* block_watch(void* nothing) {
        (void)nothing;
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20);  /* where that is allowed */
        for (;;) {
            usleep(BLOCK_LOOK_US);
            block_trim();
        }
        return NULL;
    }

    /* A file that is there already, to be read: nothing of it is copied. */
    static void* block_view(int file, size_t size) {
        return blocks_may_be_files ? block_map(file, size, PROT_READ, MAP_SHARED) : NULL;
    }

    static int block_keep_within(const char* folder, size_t limit) {
        size_t used = block_resident();
        pthread_t thread;
        if (blocks_may_be_files)
            return 1;
        if (strlen(folder) >= sizeof block_folder || pthread_create(&thread, NULL, block_watch, NULL))
            return 0;
        pthread_detach(thread);
    #if defined(__GLIBC__)
        mallopt(M_MMAP_MAX, 1 << 16);  /* what is freed does not stay in the heap, as it does by keep_heap */
        mallopt(M_MMAP_THRESHOLD, BLOCK_LEAST);
        mallopt(M_TRIM_THRESHOLD, BLOCK_LEAST);
    #endif
        strcpy(block_folder, folder);
        block_limit = limit;
        block_room = limit / 8 * 5 > used ? limit / 8 * 5 - used : 0;
        blocks_may_be_files = 1;
        return 1;
    }
    #else
    static int blocks_may_be_files = 0;
    static int64_t block_bytes = 0, block_trims = 0;
    static void* block_get(size_t size) { return malloc(size ? size : 1); }
    static void* block_zeros(size_t count, size_t width) { return calloc(count ? count : 1, width ? width : 1); }
    static void* block_resize(void* memory, size_t size) { return realloc(memory, size ? size : 1); }
    static void block_fill(void* memory, size_t place, const void* from, size_t size) { memcpy((char*)memory + place, from, size); }
    static void block_settle(const void* memory) { (void)memory; }
    static void block_put(void* memory) { free(memory); }
    static int block_keep_within(const char* folder, size_t limit) { (void)folder; (void)limit; return 0; }
    static void* block_view(int file, size_t size) { (void)file; (void)size; return NULL; }
    #endif

    /* ---- arrays in what a file was read into ---- */

    /* Bytes.  Smaller arrays cost the C library little; only larger ones are worth to trim for. */
    enum { PIECE_HEAD = 64, PIECE_LEAST = 1 << 16, TRIM_LEAST = 1 << 22, LARGE_PAGE = 1 << 21 };
    enum { NUMPY_SET_HANDLER = 304, NUMPY_GET_HANDLER = 305 };  /* `PyDataMem_...` in numpy's table, since 1.22 */

    typedef struct piece {  /* of the pool's memory, in front of its bytes; those in use have no next */
        size_t size;
        struct piece* next;
    } piece;

    typedef struct {
        numpy_handler handler;
        PyThread_type_lock lock;
        char *start, *stop;  /* of the memory */
        piece* unused;  /* by address, no two of them side by side */
        int is_closed;
    } array_pool;

    static int pool_owns(const array_pool* pool, const void* memory) {
        return (char*)memory >= pool->start && (char*)memory < pool->stop;
    }

    static void pool_add(array_pool* pool, piece* added) {
        piece *before = NULL, *after = pool->unused;
        while (after && after < added) {
            before = after;
            after = after->next;
        }
        added->next = after;
        if (after && (char*)added + added->size == (char*)after) {
            added->size += after->size;
            added->next = after->next;
        }
        if (!before)
            pool->unused = added;
        else if ((char*)before + before->size == (char*)added) {
            before->size += added->size;
            before->next = added->next;
        } else
            before->next = added;
    }

    /* Pages of what is unused leave the memory of this process, whole ones of a size.  With the lock. */
    static void pool_trim(array_pool* pool, size_t page) {
        const uintptr_t within = page - 1;
        piece* at;
        for (at = pool->unused; at; at = at->next)
            stepscope_give_back(
                (char*)(((uintptr_t)at + PIECE_HEAD + within) & ~within),
                (char*)(((uintptr_t)at + at->size) & ~within));
    }

    /* The smallest piece that is large enough.  NULL if there is none: what is needed elsewhere then is saved here. */
    static void* pool_take(array_pool* pool, size_t size) {
        size_t wanted = (size + 2 * PIECE_HEAD - 1) & ~(size_t)(PIECE_HEAD - 1);
        piece **at, **best = NULL, *found, *rest;
        if (size < PIECE_LEAST || size > (size_t)PTRDIFF_MAX || !pool->start)
            return NULL;
        PyThread_acquire_lock(pool->lock, WAIT_LOCK);
        for (at = &pool->unused; *at; at = &(*at)->next)
            if ((*at)->size >= wanted && (!best || (*at)->size < (*best)->size))
                best = at;
        found = best ? *best : NULL;
        if (found && found->size - wanted >= PIECE_LEAST) {
            rest = (piece*)((char*)found + wanted);
            rest->size = found->size - wanted;
            rest->next = found->next;
            found->size = wanted;
            *best = rest;
        } else if (found)
            *best = found->next;
        else if (size >= TRIM_LEAST)
            pool_trim(pool, LARGE_PAGE);  /* smaller ones would come back one by one */
        PyThread_release_lock(pool->lock);
        return found ? (char*)found + PIECE_HEAD : NULL;
    }

    static void* pool_malloc(void* pool, size_t size) {
        void* found = pool_take((array_pool*)pool, size);
        return found ? found : block_get(size);
    }

    static void* pool_calloc(void* pool, size_t count, size_t width) {
        void* found = width && count > (size_t)PTRDIFF_MAX / width ? NULL : pool_take((array_pool*)pool, count * width);
        return found ? memset(found, 0, count * width) : block_zeros(count, width);
    }

    static void pool_free(void* context, void* memory, size_t size) {
        array_pool* pool = (array_pool*)context;
        piece* freed = (piece*)((char*)memory - PIECE_HEAD);
        (void)size;
        if (!memory || !pool_owns(pool, memory)) {
            block_put(memory);
            return;
        }
        if (pool->is_closed)
            stepscope_give_back((char*)memory, (char*)freed + freed->size);
        PyThread_acquire_lock(pool->lock, WAIT_LOCK);
        pool_add(pool, freed);
        PyThread_release_lock(pool->lock);
    }

    static void* pool_realloc(void* context, void* memory, size_t size) {
        size_t old = 0;
        void* moved;
        if (!memory || !pool_owns((array_pool*)context, memory))
            return block_resize(memory, size);
        old = ((piece*)((char*)memory - PIECE_HEAD))->size - PIECE_HEAD;
        moved = size <= old ? memory : block_get(size);
        if (moved && moved != memory) {
            memcpy(moved, memory, old);
            pool_free(context, memory, old);
        }
        return moved;
    }

    /* The pool may use a block from `block_get`, and gives it back at its end. */
    static void pool_receive(array_pool* pool, void* memory, size_t size) {
        piece* whole = (piece*)(((uintptr_t)memory + PIECE_HEAD - 1) & ~(uintptr_t)(PIECE_HEAD - 1));
        char* stop = (char*)memory + (size & ~(size_t)(PIECE_HEAD - 1)) - PIECE_HEAD;
        if (pool->start || size < PIECE_LEAST || pool->is_closed) {
            block_put(memory);
            return;
        }
        whole->size = (size_t)(stop - (char*)whole);
        whole->next = NULL;
        PyThread_acquire_lock(pool->lock, WAIT_LOCK);
        pool->unused = whole;
        pool->stop = stop;
        pool->start = (char*)memory;
        PyThread_release_lock(pool->lock);
    }

    /* From now on arrays that are freed leave the memory of this process. */
    static void pool_close(array_pool* pool) {
        PyThread_acquire_lock(pool->lock, WAIT_LOCK);
        pool->is_closed = 1;
        pool_trim(pool, 1);
        PyThread_release_lock(pool->lock);
    }

    /* Numpy's arrays hold the capsule, so the memory goes back with the last of them. */
    static void pool_end(PyObject* capsule) {
        array_pool* pool = (array_pool*)PyCapsule_GetPointer(capsule, "mem_handler");
        if (pool->start)
            block_put(pool->start);
        PyThread_free_lock(pool->lock);
        free(pool);
    }

    static PyObject* pool_new(void) {
        array_pool* pool = (array_pool*)calloc(1, sizeof(array_pool));
        if (!pool || !(pool->lock = PyThread_allocate_lock())) {
            free(pool);
            return PyErr_NoMemory();
        }
        strcpy(pool->handler.name, "stepscope_pool");
        pool->handler.version = 1;
        pool->handler.context = pool;
        pool->handler.malloc = pool_malloc;
        pool->handler.calloc = pool_calloc;
        pool->handler.realloc = pool_realloc;
        pool->handler.free = pool_free;
        return PyCapsule_New(pool, "mem_handler", pool_end);
    }

    static array_pool* pool_of(PyObject* capsule) { return (array_pool*)PyCapsule_GetPointer(capsule, "mem_handler"); }

    /* Sets numpy's handler of the current context; returns the one before. */
    static PyObject* set_numpy_handler(PyObject* table, PyObject* handler) {
        void** functions = (void**)PyCapsule_GetPointer(table, NULL);
        return functions ? ((PyObject* (*)(PyObject*))functions[NUMPY_SET_HANDLER])(handler) : NULL;
    }

    static void* numpy_malloc(void* context, size_t size) { (void)context; return block_get(size); }
    static void* numpy_calloc(void* context, size_t count, size_t width) { (void)context; return block_zeros(count, width); }
    static void* numpy_realloc(void* context, void* memory, size_t size) { (void)context; return block_resize(memory, size); }
    static void numpy_free(void* context, void* memory, size_t size) { (void)context; (void)size; block_put(memory); }

    /* Numpy's arrays are blocks from now on, on every thread: a handler of our own would serve the context of one alone.
       Arrays that are there have memory of the C library, which is known here.  0 with an exception set. */
    static int block_serve_numpy(PyObject* table) {
        void** functions = (void**)PyCapsule_GetPointer(table, NULL);
        PyObject* capsule = functions ? ((PyObject* (*)(void))functions[NUMPY_GET_HANDLER])() : NULL;
        numpy_handler* handler = capsule ? (numpy_handler*)PyCapsule_GetPointer(capsule, "mem_handler") : NULL;
        if (handler) {
            handler->malloc = numpy_malloc;
            handler->calloc = numpy_calloc;
            handler->realloc = numpy_realloc;
            handler->free = numpy_free;
        }
        Py_XDECREF(capsule);
        return handler != NULL;
    }
    """
    void* large_pages "stepscope_large_pages"(size_t size) noexcept nogil
    bint keep_heap "stepscope_keep_heap"(size_t room) noexcept nogil
    const int blocks_may_be_files
    const int64_t block_bytes
    const int64_t block_trims
    void* block_get(size_t size) noexcept nogil
    void* block_zeros(size_t count, size_t width) noexcept nogil
    void* block_resize(void* memory, size_t size) noexcept nogil
    void block_fill(void* memory, size_t place, const void* source, size_t size) noexcept nogil
    void block_settle(const void* memory) noexcept nogil
    void block_put(void* memory) noexcept nogil
    void* block_view(int file, size_t size) noexcept nogil
    bint block_keep_within(const char* folder, size_t limit) noexcept
    bint block_serve_numpy(object table) except False
    ctypedef struct array_pool:
        pass
    object pool_new()
    array_pool* pool_of(object capsule) except NULL
    void pool_receive(array_pool* pool, void* memory, size_t size) noexcept nogil
    void pool_close(array_pool* pool) noexcept nogil
    object set_numpy_handler(object table, object handler)


cdef void* resize(void* memory, size_t size) noexcept nogil:
    """A block with room for so many bytes, and what was in it before; NULL if there is no memory, and it is as it was."""
    return block_resize(memory, size)


cdef void* zeros(size_t count, size_t width) noexcept nogil:
    """A block of so many items that are zero; NULL if there is no memory."""
    return block_zeros(count, width)


cdef void fill(void* memory, size_t place, const void* source, size_t size) noexcept nogil:
    """Copies bytes into a block that `resize` gave."""
    block_fill(memory, place, source, size)


cdef void free(void* memory) noexcept nogil:
    """Gives a block back."""
    block_put(memory)


def keep_within(folder, int64_t limit):
    """From now on large blocks that do not fit into a size of memory are files.

    For a process of our own: numpy's arrays are such blocks, whoever makes them.  Only the first call counts.

    Args:
        folder: on a disk; a file system in memory would save nothing.
        limit: the memory of this process in bytes.

    Returns:
        False if the system cannot do that.
    """
    return block_keep_within(folder.encode("utf-8", "surrogateescape"), <size_t>limit) and block_serve_numpy(
        _numpy_functions()
    )


def _numpy_functions():
    """Numpy's table of C functions, in a capsule."""
    import numpy

    return (getattr(numpy, "_core", None) or numpy.core)._multiarray_umath._ARRAY_API


def is_limited():
    """Whether `keep_within` was called."""
    return bool(blocks_may_be_files)


def settle(size_t address):
    """Puts a block that nobody writes to any more into a file, where blocks may be files; it stays where it is.

    Args:
        address: of a byte in it; nothing happens where that is no block.
    """
    block_settle(<const void*>address)


def figures():
    """The bytes of blocks that are files now, and how often their pages had to leave the process."""
    return block_bytes, block_trims

cdef enum:
    _ROOM_BYTES = 1 << 30  # addresses, not memory; a million events and their file need a quarter of it


cdef bint _keeps_heap = False


def prefer_large_heap():
    """Lets everything be in one heap, in pages of 2 MB, that keeps what is freed.

    What the file was read into then becomes the tables of the analysis, which makes and frees tables of some megabytes
    all the time.  Asking the system for memory anew each time took a fifth of the time of a command, and more in a
    virtual machine whose free memory goes back to its host.

    For a process of our own, before it makes other threads: it changes the memory of all that runs in it.

    Returns:
        False if the system cannot do that; nothing is lost then.
    """
    global _keeps_heap
    _keeps_heap = keep_heap(_ROOM_BYTES)
    return _keeps_heap


@cython.final
@cython.no_gc  # a capsule belongs to no cycle
cdef class Memory:
    """Bytes to which nothing has been written yet, in large pages; a buffer.  Raises MemoryError.

    Args:
        size: how many.
        file: the number of an open file with at least so many bytes: where blocks are files, they are its bytes and may
            only be read.  Nobody may shorten it meanwhile; it may be closed.

    Attributes:
        is_file: whether the bytes are those of the file.
    """

    cdef void* start
    cdef Py_ssize_t size
    cdef object pool
    cdef readonly bint is_file

    def __cinit__(self, Py_ssize_t size, int file=-1):
        self.size = max(size, 0)
        self.start = block_view(file, <size_t>size) if file >= 0 and size >= 1 << 20 else NULL
        self.is_file = self.start != NULL
        if not self.is_file:
            self.start = block_get(<size_t>max(size, 1))
        if self.start == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.pool is None:
            free(self.start)
        else:
            pool_receive(pool_of(self.pool), self.start, <size_t>self.size)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.size, self.is_file, flags)


@cython.final
@cython.no_gc
cdef class ArrayPool:
    """A context in which numpy's larger arrays lie in memory that a file was read into, once that is dropped.

    New memory would be cleared by the system page by page, and a program that calls the API keeps no heap as a command
    does.  Only arrays that the context makes are concerned, wherever they are used and however long: what is free of the
    memory goes back when this object is dropped, the rest with each of them.
    """

    cdef object capsule, before

    def __cinit__(self):
        self.capsule = pool_new()

    def __dealloc__(self):
        pool_close(pool_of(self.capsule))

    def receive(self, buffer):
        """Takes over a buffer's bytes as soon as it is dropped: only those of a `Memory`, and only where the process
        does not keep them anyway."""
        memory = getattr(buffer, "obj", None)
        if isinstance(memory, Memory) and not (_keeps_heap or blocks_may_be_files):
            (<Memory>memory).pool = self.capsule

    def reserve(self, Py_ssize_t size):
        """Takes memory that nothing was written to yet, where the process does not keep its memory anyway."""
        cdef Memory memory
        if not (_keeps_heap or blocks_may_be_files):
            memory = Memory(size)
            memory.pool = self.capsule

    def __enter__(self):
        self.before = set_numpy_handler(_numpy_functions(), self.capsule)
        return self

    def __exit__(self, *error):
        set_numpy_handler(_numpy_functions(), self.before)
