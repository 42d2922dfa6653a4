"""Threads that wait outside of Python.

A thread that Python knows is in `faulthandler`'s dumps, `sys._current_frames` and debuggers' lists all the time, also
when it only waits.  These are the system's threads, and Python's only while they call a function.  They block all
signals: a signal is for the threads of the program.  Only for Linux.
"""

cdef extern from *:
    """
    #include <stdlib.h>
    #if !defined(__linux__)
    typedef struct { int unused; } stepscope_waiter;
    static stepscope_waiter *stepscope_start(PyObject *call, double seconds, int count, int *files) { return NULL; }
    static void stepscope_stop(stepscope_waiter *waiter) {}
    static void stepscope_forget(stepscope_waiter *waiter) {}
    #else
    #include <errno.h>
    #include <poll.h>
    #include <pthread.h>
    #include <signal.h>
    #include <time.h>

    #define STEPSCOPE_MOST_FILES 8

    /* The limited API leaves these out; every CPython from 3.11 on exports them. */
    PyAPI_FUNC(void) PyThreadState_EnterTracing(PyThreadState *);
    PyAPI_FUNC(void) PyThreadState_LeaveTracing(PyThreadState *);

    typedef struct {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        int stopped, owners, count;
        double seconds;                               /* until the next call; below 0 for no limit */
        struct pollfd files[STEPSCOPE_MOST_FILES];    /* a call is due when one of them can be read */
        PyObject *call;
    } stepscope_waiter;

    static void stepscope_forget(stepscope_waiter *waiter) {
        if (__atomic_sub_fetch(&waiter->owners, 1, __ATOMIC_ACQ_REL) == 0) {
            pthread_cond_destroy(&waiter->changed);
            pthread_mutex_destroy(&waiter->mutex);
            free(waiter);
        }
    }

    /* Waits for the next call.  False if there is to be none. */
    static int stepscope_wait(stepscope_waiter *waiter) {
        if (waiter->count) {
            int limit = waiter->seconds < 0 ? -1 : waiter->seconds > 1e6 ? 1000000000 : (int)(waiter->seconds * 1e3) + 1;
            while (poll(waiter->files, waiter->count, limit) < 0)
                if (errno != EINTR) return 0;
            for (int at = 0; at < waiter->count; at++)
                if (waiter->files[at].revents & (POLLNVAL | POLLERR)) return 0;   /* the program has closed it */
            return !waiter->stopped;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        double seconds = waiter->seconds < 0 || waiter->seconds > 1e9 ? 1e9 : waiter->seconds;
        until.tv_sec += (time_t)seconds;
        until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
        if (until.tv_nsec >= 1000000000L) { until.tv_sec++; until.tv_nsec -= 1000000000L; }
        pthread_mutex_lock(&waiter->mutex);
        int status = 0;
        while (!waiter->stopped && status != ETIMEDOUT)
            status = pthread_cond_timedwait(&waiter->changed, &waiter->mutex, &until);
        int stopped = waiter->stopped;
        pthread_mutex_unlock(&waiter->mutex);
        return !stopped;
    }

    static void *stepscope_run(void *argument) {
        stepscope_waiter *waiter = argument;
        int goes_on = 1;
        while (goes_on) {
            goes_on = stepscope_wait(waiter);
            PyGILState_STATE state = PyGILState_Ensure();
            PyThreadState_EnterTracing(PyThreadState_Get());   /* profilers of all threads do not see this one */
            PyObject *said = goes_on ? PyObject_CallFunction(waiter->call, "O", Py_True)
                                     : PyObject_CallFunction(waiter->call, "O", Py_False);
            double seconds = -1;
            if (said == NULL || said == Py_None) goes_on = 0;
            else seconds = PyFloat_AsDouble(said);
            Py_XDECREF(said);
            PyErr_Clear();
            if (!goes_on) Py_CLEAR(waiter->call);
            PyThreadState_LeaveTracing(PyThreadState_Get());
            PyGILState_Release(state);
            waiter->seconds = seconds;
        }
        stepscope_forget(waiter);
        return NULL;
    }

    static stepscope_waiter *stepscope_start(PyObject *call, double seconds, int count, int *files) {
        stepscope_waiter *waiter = calloc(1, sizeof *waiter);
        if (waiter == NULL) return NULL;
        pthread_condattr_t kind;
        pthread_condattr_init(&kind);
        pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
        pthread_mutex_init(&waiter->mutex, NULL);
        pthread_cond_init(&waiter->changed, &kind);
        pthread_condattr_destroy(&kind);
        waiter->owners = 2;
        waiter->seconds = seconds;
        waiter->count = count;
        for (int at = 0; at < count; at++) { waiter->files[at].fd = files[at]; waiter->files[at].events = POLLIN; }
        Py_INCREF(call);
        waiter->call = call;
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_attr_t how;
        pthread_attr_init(&how);
        pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
        pthread_t thread;
        int status = pthread_create(&thread, &how, stepscope_run, waiter);
        pthread_attr_destroy(&how);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (status == 0) return waiter;
        Py_CLEAR(waiter->call);
        stepscope_forget(waiter);
        stepscope_forget(waiter);
        return NULL;
    }

    static void stepscope_stop(stepscope_waiter *waiter) {
        pthread_mutex_lock(&waiter->mutex);
        waiter->stopped = 1;
        pthread_cond_broadcast(&waiter->changed);
        pthread_mutex_unlock(&waiter->mutex);
    }
    #endif
    """
    ctypedef struct PyObject
    ctypedef struct stepscope_waiter
    stepscope_waiter* stepscope_start(PyObject* call, double seconds, int count, int* files)
    void stepscope_stop(stepscope_waiter*) nogil
    void stepscope_forget(stepscope_waiter*) nogil


cdef class Waiter:
    """A thread that waits, and calls a function now and then.

    Args:
        call: called with True when it is due, and with False as the last call, once there are to be no more.  It returns
            the seconds until the next call, below 0 for no limit; None for no more.
        seconds: until the first call.
        files: at most eight open files; a call is also due when one of them can be read.  One that is closed ends it.

    Raises:
        RuntimeError: the system has no thread to give.
    """

    cdef stepscope_waiter* waiter

    def __init__(self, call, double seconds, files=()):
        cdef int[8] numbers
        cdef int count = 0
        for number in files[:8]:
            numbers[count] = number
            count += 1
        self.waiter = stepscope_start(<PyObject*> call, seconds, count, numbers)
        if self.waiter == NULL:
            raise RuntimeError("can't start new thread")

    def stop(self):
        """There are to be no more calls but the last.  One that waits for files has to be woken by one of them."""
        if self.waiter != NULL:
            stepscope_stop(self.waiter)

    def __dealloc__(self):
        if self.waiter != NULL:
            stepscope_forget(self.waiter)
