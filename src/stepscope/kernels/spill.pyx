"""Large blocks of memory that go into files where needed, so that a process keeps within a set size.

The module is also a library that is loaded before all others (`LD_PRELOAD`).  Then its `malloc` is that of the whole
process: of numpy, of the loops here, and of Python.  Until `start` is called it passes everything on.  From then on a
block of a megabyte or more is memory of its own.  Whenever the process takes more than it may, chunks of the oldest
blocks are written to a file that has no name, which is mapped in their place; what they hold stays in the system's cache
of files or on the disk, and comes back when it is touched.  No analysis knows of this, so results are the same.

Most blocks are freed before they have to leave and never cost a file.  To put every block into a file from the start took
two thirds of a command's processor time: the file system is asked for each page of 4 KB that is written to for the first
time, and memory comes in pages of 2 MB.

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
    #include <signal.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/resource.h>
    #include <sys/socket.h>
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
    enum { SPILL_PAGE = 4096, SPILL_LARGE_PAGE = 2 << 20, SPILL_LEAST = 1 << 20, SPILL_PIECE = 1 << 20,
           SPILL_LEAST_CHUNK = 8 << 20, SPILL_MOST_CHUNKS = 3900, SPILL_LOOK_US = 5000, SPILL_CLOSE_LOOK_US = 500,
           SPILL_RESERVE = 256 << 20 };

    /* Lies in the page before the memory that the caller gets.  A chunk is what is written to the file at once; its place
       in the file is that in the block. */
    typedef struct spill_block {
        struct spill_block *next, *previous;
        size_t mapped;  /* bytes, with this page */
        size_t wanted;
        size_t chunk;
        size_t in_file;  /* bytes of chunks that lie in the file */
        int file;  /* -1 until a chunk has to leave */
        int is_view;
        unsigned char has_left[SPILL_MOST_CHUNKS];  /* whether a chunk lies in the file */
    } spill_block;
    _Static_assert(sizeof(spill_block) <= SPILL_PAGE, "a page has room for what is known of a block");

    static pthread_mutex_t spill_lock = PTHREAD_MUTEX_INITIALIZER;
    static spill_block spill_all = {&spill_all, &spill_all};        /* in use, the newest first */
    static spill_block spill_spare = {&spill_spare, &spill_spare};  /* freed, to be used again; nothing of them has left */
    static volatile int spill_on = 0, spill_used = 0, spill_watched = 0;
    static char spill_folder[4096];
    static size_t spill_limit = 0;
    static size_t spill_seen = 0;  /* bytes in memory at the last look */
    static volatile long long spill_bytes = 0, spill_evictions = 0;
    static size_t spill_spare_bytes = 0;
    static struct sigaction spill_usual;  /* what else happens when memory may not be touched */

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
        spill_bytes += block->in_file;
        pthread_mutex_unlock(&spill_lock);
    }

    static void spill_leave(spill_block* block) {
        spill_unlink(block);
        spill_bytes -= block->in_file;
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

    /* Where a chunk starts; that of the first is behind the page with the block. */
    static char* spill_chunk(spill_block* block, size_t number) {
        size_t at = number * block->chunk;
        return (char*)block + (at < SPILL_PAGE ? SPILL_PAGE : at > block->mapped ? block->mapped : at);
    }

    static size_t spill_chunks(spill_block* block) {
        return (block->mapped + block->chunk - 1) / block->chunk;
    }

    /* ---- a chunk leaves ---- */

    static void spill_evict_files(size_t resident, size_t goal);

    /* Whether anything was ever written to up to a piece of memory.  `pages` is the file in which the system says so,
       also of pages that were swapped out; without it everything counts. */
    static int spill_is_there(int pages, char* start, size_t size) {
        enum { SWAPPED_OR_PRESENT = 62 };
        uint64_t known[SPILL_PIECE / SPILL_PAGE + 1];
        size_t page, count = (size + SPILL_PAGE - 1) / SPILL_PAGE;
        if (pread(pages, known, count * 8, (off_t)((uintptr_t)start / SPILL_PAGE * 8)) != (ssize_t)(count * 8))
            return 1;
        for (page = 0; page < count; page++)
            if (known[page] >> SWAPPED_OR_PRESENT)
                return 1;
        return 0;
    }

    static size_t spill_piece(char* at, char* stop) {
        return stop - at < SPILL_PIECE ? (size_t)(stop - at) : SPILL_PIECE;
    }

    static int spill_write(spill_block* block, char* at, char* stop) {
        ssize_t done;
        for (; at < stop; at += done) {
            done = pwrite(block->file, at, (size_t)(stop - at), at - (char*)block);
            if (done <= 0 && errno != EINTR)
                return 0;
            done = done < 0 ? 0 : done;
        }
        return 1;
    }

    /* Space is reserved: where the disk is full later, touching a page would end the process. */
    static int spill_open(spill_block* block) {
        if (block->file >= 0)
            return 1;
        block->file = open(spill_folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
        if (block->file < 0)
            return 0;
        if (!posix_fallocate(block->file, 0, (off_t)block->mapped))
            return 1;
        close(block->file);
        block->file = -1;
        return 0;
    }

    /* Writes a chunk to the file and maps the file in its place.  Who writes to the chunk meanwhile waits for the lock
       in `spill_fault`.  A full file cache makes writing slow; what others touch of files meanwhile leaves again.
       A chunk without an end is being filled, and stays unless `even_filling`: the rest would be written to the file
       page by page. */
    static int spill_move(spill_block* block, size_t number, int even_filling) {
        char *start = spill_chunk(block, number), *stop = spill_chunk(block, number + 1), *at;
        int pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), whole = 1;
        for (at = start; at < stop && !spill_is_there(pages, at, spill_piece(at, stop)); at += spill_piece(at, stop))
            ;
        if (at == stop || (!even_filling && stop - start > SPILL_PIECE
                           && !spill_is_there(pages, stop - SPILL_PIECE, SPILL_PIECE)) || !spill_open(block) || mprotect(start, (size_t)(stop - start), PROT_READ)) {
            close(pages);
            return 0;
        }
        for (at = start; at < stop && whole; at += spill_piece(at, stop)) {
            if (spill_is_there(pages, at, spill_piece(at, stop)))
                whole = spill_write(block, at, at + spill_piece(at, stop));
            spill_evict_files(spill_resident(), spill_limit - spill_limit / 8);
        }
        close(pages);
        if (!whole || mmap(start, (size_t)(stop - start), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block->file,
                           start - (char*)block) == MAP_FAILED) {
            mprotect(start, (size_t)(stop - start), PROT_READ | PROT_WRITE);
            return 0;
        }
        block->has_left[number] = 1;
        block->in_file += (size_t)(stop - start);
        spill_bytes += stop - start;
        return 1;
    }

    /* Whether somebody writes to a block of ours, of which a chunk has just been moved.  Then it works the second time. */
    static int spill_was_moved(const void* memory) {
        spill_block* at;
        int found = 0;
        if (!spill_used)
            return 0;
        pthread_mutex_lock(&spill_lock);
        for (at = spill_all.next; at != &spill_all && !found; at = at->next)
            found = !at->is_view && (char*)memory >= (char*)at && (char*)memory < (char*)at + at->mapped;
        pthread_mutex_unlock(&spill_lock);
        return found;
    }

    /* A fault of another kind comes again after this, first to whoever else takes it, who may give it back. */
    static void spill_fault(int number, siginfo_t* info, void* context) {
        static volatile int given_up = 0;
        struct sigaction end;
        int kept = errno;
        (void)context;
        if (info->si_code <= 0 || !spill_was_moved(info->si_addr)) {
            memset(&end, 0, sizeof end);
            end.sa_handler = SIG_DFL;
            sigaction(number, given_up ? &end : &spill_usual, NULL);
            given_up = 1;
        }
        errno = kept;
    }

    /* Others may have asked for the signal since the last time. */
    static void spill_expect_faults(void) {
        struct sigaction now;
        if (sigaction(SIGSEGV, NULL, &now) || now.sa_sigaction == spill_fault)
            return;
        spill_usual = now;
        memset(&now, 0, sizeof now);
        now.sa_sigaction = spill_fault;
        now.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        sigaction(SIGSEGV, &now, NULL);
    }

    /* ---- the oldest blocks leave ---- */

    static size_t spill_evict_block(spill_block* block, size_t resident, size_t goal, int moves) {
        size_t first, stop, count = spill_chunks(block);
        for (first = 0; first < count && resident > goal; first = stop) {
            for (stop = first; stop < count && (block->is_view || block->has_left[stop]); stop++)
                ;
            if (stop > first)
                madvise(spill_chunk(block, first), (size_t)(spill_chunk(block, stop) - spill_chunk(block, first)),
                        MADV_DONTNEED);
            else if (!(moves && spill_move(block, stop++, moves > 1))) {
                stop = first + 1;
                continue;
            }
            resident = spill_resident();
        }
        return resident;
    }

    /* `moves`: 0 lets only pages of files leave, 1 also chunks that are full, 2 all. */
    static size_t spill_evict_all(size_t resident, size_t goal, int moves) {
        spill_block* at;
        for (at = spill_all.previous; at != &spill_all && resident > goal; at = at->previous)
            resident = spill_evict_block(at, resident, goal, moves);
        return resident;
    }

    static void spill_evict_files(size_t resident, size_t goal) {
        if (resident > goal)
            spill_evict_all(resident, goal, 0);
    }

    static void spill_drop(spill_block* block) {
        int file = block->file;
        munmap(block, block->mapped);
        if (file >= 0)
            close(file);
    }

    static void spill_drop_oldest_spare(void) {
        spill_block* at = spill_spare.previous;
        spill_unlink(at);
        spill_spare_bytes -= at->mapped;
        spill_drop(at);
    }

    static void spill_drop_spares(size_t most) {
        while (spill_spare_bytes > most)
            spill_drop_oldest_spare();
    }

    /* The oldest blocks first: young ones are what an analysis works on, and to write to them costs much more if they
       come back page by page.  Freed blocks are as young: the next columns are made of them, and pages that the system
       has to clear cost more than to write an old column once. */
    static void spill_evict(size_t goal) {
        size_t resident;
        pthread_mutex_lock(&spill_lock);
        spill_expect_faults();
        resident = spill_resident();
        if (resident > goal) {
            spill_drop_spares(goal / 2);
            spill_evict_all(spill_resident(), goal, 1);
            spill_evict_all(spill_resident(), goal, 2);
        }
        if (spill_spare_bytes && spill_resident() > goal)
            spill_drop_spares(0);
        spill_evictions += 1;
        pthread_mutex_unlock(&spill_lock);
    }

    /* It grows until the next look, so what is kept is less.  A loop that reads here and there brings back 64 KB with
       each page that it touches: 300 MB in 5 ms were seen. */
    static void spill_keep(size_t coming) {
        size_t reserve = spill_limit / 2 < SPILL_RESERVE ? spill_limit / 2 : SPILL_RESERVE;
        size_t most = spill_limit - (reserve < spill_limit / 8 ? spill_limit / 8 : reserve);
        size_t goal = most / 6 * 5;
        if (coming > most / 6)
            goal = coming < most / 3 * 2 ? most - coming : most / 3;
        spill_seen = spill_resident();
        if (spill_seen + (coming < most ? coming : most) > most && spill_seen > goal)
            spill_evict(goal);
    }

    /* ---- blocks ---- */

    /* The freed block that fits best.  Its pages are there, so it costs a fraction of new ones, which the system clears;
       an analysis makes and frees columns of the same few sizes all the time. */
    static spill_block* spill_reuse(size_t mapped) {
        spill_block *at, *found = NULL;
        pthread_mutex_lock(&spill_lock);
        for (at = spill_spare.next; at != &spill_spare; at = at->next)
            if (at->mapped >= mapped && at->mapped - mapped <= mapped / 2 && (!found || at->mapped < found->mapped))
                found = at;
        if (found) {
            spill_unlink(found);
            spill_spare_bytes -= found->mapped;
        }
        pthread_mutex_unlock(&spill_lock);
        return found;
    }

    /* Memory that starts with a large page, as its place in a file does, so that large pages of the file fit as well. */
    static char* spill_map(size_t mapped) {
        size_t slack = mapped < SPILL_LARGE_PAGE ? 0 : SPILL_LARGE_PAGE, before;
        char* start = (char*)mmap(NULL, mapped + slack, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start == (char*)MAP_FAILED)
            return NULL;
        if (!slack)
            return start;
        before = -(uintptr_t)start & (SPILL_LARGE_PAGE - 1);
        if (before)
            munmap(start, before);
        munmap(start + before + mapped, slack - before);
        madvise(start + before, mapped, MADV_HUGEPAGE);
        return start + before;
    }

    static void* spill_new(size_t size, int zeros) {
        size_t mapped = spill_rounded(size);
        spill_block* block;
        if (mapped < size)
            return NULL;
        block = spill_reuse(mapped);
        if (block) {
            block->wanted = size;
            spill_enter(block);
            return zeros ? memset((char*)block + SPILL_PAGE, 0, size) : (char*)block + SPILL_PAGE;
        }
        spill_keep(size);
        block = (spill_block*)spill_map(mapped);
        if (!block)
            return NULL;
        block->mapped = mapped;
        block->wanted = size;
        block->file = -1;
        for (block->chunk = SPILL_LEAST_CHUNK; spill_chunks(block) > SPILL_MOST_CHUNKS / 2; block->chunk *= 2)
            ;
        spill_used = 1;
        spill_enter(block);
        return (char*)block + SPILL_PAGE;
    }

    /* Keeps a freed block for later; the oldest make room for it.  One with a file is no faster than a new one. */
    static void spill_put_aside(spill_block* block) {
        size_t most = spill_limit / 2;
        if (!spill_on || block->mapped > most || block->file >= 0) {
            spill_drop(block);
            return;
        }
        pthread_mutex_lock(&spill_lock);
        spill_link(&spill_spare, block);
        spill_spare_bytes += block->mapped;
        spill_drop_spares(most);
        pthread_mutex_unlock(&spill_lock);
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
        block->is_view = 1;
        block->chunk = mapped;
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

    static int spill_map_at(char* start, size_t size) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
        return mmap(start, size, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
    }

    /* Moves a part of a block, all of it in the file or nothing, to another address: its pages, or where the system
       refuses that, its bytes.  Returns whether it was the pages. */
    static int spill_carry(char* from, char* to, size_t size, int as_bytes) {
        if (!as_bytes && mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
            return 1;
        if (!spill_map_at(to, size))
            abort();  /* the block is in two places by now */
        memcpy(to, from, size);
        munmap(from, size);
        return 0;
    }

    /* Moves a block to where it has more room, by runs of chunks that are alike.  The last chunk becomes longer, so it
       must not be in the file. */
    static void spill_carry_all(spill_block* block, char* room) {
        size_t first, stop, at, size, count = spill_chunks(block), chunk = block->chunk;
        spill_block known = *block, *moved = (spill_block*)room;
        char *start, *end;
        spill_carry((char*)block, room, SPILL_PAGE, 1);
        for (first = 0; first < count; first = stop) {
            for (stop = first + 1; stop < count - 1 && known.has_left[stop] == known.has_left[first]; stop++)
                ;
            start = (char*)block + (first ? first * chunk : SPILL_PAGE);
            end = (char*)block + (stop < count ? stop * chunk : known.mapped);
            size = (size_t)(end - start);
            if (spill_carry(start, room + (start - (char*)block), size, known.has_left[first] && stop == count)
                    || !known.has_left[first])
                continue;
            for (at = first; at < stop; at++)
                moved->has_left[at] = 0;
            moved->in_file -= size;
        }
    }

    static spill_block* spill_grow(spill_block* block, size_t size) {
        size_t mapped = spill_rounded(size);
        char* room;
        if (mapped >= size && mapped <= block->mapped) {
            block->wanted = size;
            return block;
        }
        if (mapped < size || (mapped + block->chunk - 1) / block->chunk > SPILL_MOST_CHUNKS
                || (block->file >= 0 && posix_fallocate(block->file, 0, (off_t)mapped)))
            return NULL;
        spill_keep(size - block->wanted);
        room = spill_map(mapped);
        if (!room)
            return NULL;
        if (block->file >= 0
                || mremap(block, block->mapped, mapped, MREMAP_MAYMOVE | MREMAP_FIXED, room) == MAP_FAILED) {
            if (!spill_map_at(room, mapped))  /* a move that failed may have taken it */
                return NULL;
            spill_carry_all(block, room);
        }
        block = (spill_block*)room;
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
            moved = spill_grow(block, size);
            spill_enter(moved ? moved : block);
            if (moved)
                return (char*)moved + SPILL_PAGE;
            copied = malloc(size);  /* the disk is full, or this is too long for one file */
            if (!copied)
                return NULL;
            memcpy(copied, memory, size < block->wanted ? size : block->wanted);
            free(memory);
            return copied;
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

    /* The system refuses to write to a chunk that is being moved, and sends no signal. */
    #define SPILL_TRY_AGAIN(call, memory) \
        ssize_t got; \
        do \
            got = (call); \
        while (got < 0 && errno == EFAULT && spill_was_moved(memory)); \
        return got;

    SPILL_EXPORT ssize_t read(int file, void* memory, size_t size) {
        SPILL_TRY_AGAIN(syscall(SYS_read, file, memory, size), memory)
    }

    /* The headers may have given one of these names to the other. */
    SPILL_EXPORT ssize_t spill_pread64(int, void*, size_t, int64_t) __asm__("pread64");
    SPILL_EXPORT ssize_t spill_pread64(int file, void* memory, size_t size, int64_t at) {
        SPILL_TRY_AGAIN(syscall(SYS_pread64, file, memory, size, at), memory)
    }

    SPILL_EXPORT ssize_t spill_pread(int, void*, size_t, off_t) __asm__("pread");
    SPILL_EXPORT ssize_t spill_pread(int file, void* memory, size_t size, off_t at) {
        return spill_pread64(file, memory, size, at);
    }

    SPILL_EXPORT ssize_t recv(int socket, void* memory, size_t size, int flags) {
        SPILL_TRY_AGAIN(syscall(SYS_recvfrom, socket, memory, size, flags, NULL, NULL), memory)
    }

    static void* spill_watch(void* nothing) {
        (void)nothing;
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20);  /* where that is allowed */
        for (;;) {
            usleep(spill_seen > spill_limit / 4 ? SPILL_CLOSE_LOOK_US : SPILL_LOOK_US);
            if (spill_used)
                spill_keep(0);
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
