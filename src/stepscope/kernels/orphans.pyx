"""Starts a program that is none of this process's children.

A child's end is a signal to this process, and `os.wait` returns it: to a program that counts its own children.  So
another process starts it and ends at once.  That one sends no signal either and is waited for by nobody but us, and has
the memory of this process instead of a copy, while the calling thread waits.  Only for Linux.
"""

cdef extern from *:
    """
    #if !defined(__linux__)
    static int stepscope_start_orphan(char **words, char **environment, int *files) { return -1; }
    #else
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <sched.h>
    #include <signal.h>
    #include <spawn.h>
    #include <sys/mman.h>
    #include <sys/wait.h>

    #define STEPSCOPE_STACK (256 * 1024)

    typedef struct {
        char **words, **environment;
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        pid_t number;
        int error;
    } stepscope_orphan;

    static int stepscope_spawn(void *argument) {
        stepscope_orphan *orphan = argument;
        orphan->error = posix_spawn(&orphan->number, orphan->words[0], &orphan->files, &orphan->attributes,
                                    orphan->words, orphan->environment);
        return 0;
    }

    /* The number of the process, or an error's below 0. */
    static int stepscope_start_orphan(char **words, char **environment, int *files) {
        stepscope_orphan orphan = {words, environment};
        sigset_t all, none, before;
        pid_t between;
        char *stack = mmap(NULL, STEPSCOPE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (stack == MAP_FAILED) return -errno;
        sigfillset(&all);
        sigemptyset(&none);
        posix_spawn_file_actions_init(&orphan.files);
        for (int at = 0; at < 3; at++) posix_spawn_file_actions_adddup2(&orphan.files, files[at], at);
        posix_spawnattr_init(&orphan.attributes);
        posix_spawnattr_setflags(&orphan.attributes,
                                 POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&orphan.attributes, &none);
        posix_spawnattr_setsigdefault(&orphan.attributes, &all);
        orphan.error = EAGAIN;
        pthread_sigmask(SIG_SETMASK, &all, &before);   /* no handler of the program may run in between */
        between = clone(stepscope_spawn, stack + STEPSCOPE_STACK, CLONE_VM | CLONE_VFORK, &orphan);
        if (between < 0) orphan.error = errno;
        else while (waitpid(between, NULL, __WCLONE) < 0 && errno == EINTR) {}
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        posix_spawnattr_destroy(&orphan.attributes);
        posix_spawn_file_actions_destroy(&orphan.files);
        munmap(stack, STEPSCOPE_STACK);
        return orphan.error ? -orphan.error : orphan.number;
    }
    #endif
    """
    int stepscope_start_orphan(char **words, char **environment, int *files) nogil

import os

from libc.stdlib cimport calloc, free


def start_orphan(list words, list environment, files):
    """Starts a program in a session of its own, with no signal blocked or ignored; returns the number of its process.

    Args:
        words: bytes, the first of them its path.
        environment: bytes, `name=value`.
        files: three open files above 2, its standard streams.

    Raises:
        OSError: it could not be started.
    """
    cdef char **texts = <char **> calloc(len(words) + len(environment) + 2, sizeof(char *))
    cdef char **variables = texts + len(words) + 1
    cdef int[3] numbers = files
    cdef int number
    if texts == NULL:
        raise MemoryError
    for at, word in enumerate(words):
        texts[at] = word
    for at, variable in enumerate(environment):
        variables[at] = variable
    with nogil:
        number = stepscope_start_orphan(texts, variables, numbers)
    free(texts)
    if number < 0:
        raise OSError(-number, os.strerror(-number))
    return number
