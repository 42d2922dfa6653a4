"""Threads that wait outside of Python.

A thread that Python knows is in `faulthandler`'s dumps, `sys._current_frames` and debuggers' lists all the time, also
when it only waits.  These are the system's threads, and Python's only while they call a function.  They block all
signals: a signal is for the threads of the program.  Only for Linux.

None of them lives while the program forks.  From Python 3.12 on `os.fork` warns where the process has a second thread,
and what such a thread holds at that moment - a lock, a file half written - the child has for ever.  `pause_waiters` ends
them before, and `resume_waiters` starts them again, each with what is left of its time.
"""

import sys

cdef extern from *:
    """
    #include <stdlib.h>
    #if !defined(__linux__)
    typedef struct { int unused; } stepscope_waiter;
    static stepscope_waiter *stepscope_make(PyObject *call, double seconds, int count, int *files, int wake) {
        return NULL;
    }
    static void stepscope_wake(stepscope_waiter *waiter, int stop) {}
    static void stepscope_forget(stepscope_waiter *waiter) {}
    static void stepscope_pause(double seconds) {}
    static void stepscope_resume(void) {}
    static void stepscope_lose(void) {}
    #else
    #include <errno.h>
    #include <poll.h>
    #include <pthread.h>
    #include <signal.h>
    #include <sys/stat.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>

    #define STEPSCOPE_MOST_FILES 8
    #define STEPSCOPE_MOST_PAUSED 64
    #define STEPSCOPE_FOR_EVER 1e9

    /* The limited API leaves these out; every CPython from 3.11 on exports them. */
    PyAPI_FUNC(void) PyThreadState_EnterTracing(PyThreadState *);
    PyAPI_FUNC(void) PyThreadState_LeaveTracing(PyThreadState *);

    typedef struct stepscope_waiter {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        int stopped, due, paused;   /* what is asked of its thread */
        int runs, rests, over;      /* has a thread; has lost it for a fork; makes no more calls */
        int owners;
        double until;               /* by the clock that knows no jumps */
        struct pollfd files[STEPSCOPE_MOST_FILES + 1];    /* a call is due when one of them can be read */
        int count, wake;            /* the first file is ours: what is written to `wake` can be read there */
        dev_t device;
        ino_t inode;
        pthread_t thread;
        pid_t number;
        PyObject *call;
        struct stepscope_waiter *next;
    } stepscope_waiter;

    static stepscope_waiter *stepscope_waiters;
    static pthread_mutex_t stepscope_list = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t stepscope_pausing = PTHREAD_MUTEX_INITIALIZER;
    static int stepscope_forks;   /* under way, of all threads; under the mutex of the list */

    static double stepscope_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    }

    static double stepscope_after(double seconds) {
        return stepscope_now() + (seconds < 0 || seconds > STEPSCOPE_FOR_EVER ? STEPSCOPE_FOR_EVER : seconds);
    }

    static void stepscope_forget(stepscope_waiter *waiter) {
        if (__atomic_sub_fetch(&waiter->owners, 1, __ATOMIC_ACQ_REL) != 0) return;
        pthread_mutex_lock(&stepscope_list);
        for (stepscope_waiter **at = &stepscope_waiters; *at != NULL; at = &(*at)->next)
            if (*at == waiter) { *at = waiter->next; break; }
        pthread_mutex_unlock(&stepscope_list);
        pthread_cond_destroy(&waiter->changed);
        pthread_mutex_destroy(&waiter->mutex);
        free(waiter);
    }

    /* With the mutex held: has its thread look at what is asked of it. */
    static void stepscope_tell(stepscope_waiter *waiter) {
        struct stat found;
        pthread_cond_broadcast(&waiter->changed);
        /* The program may have closed our file, and have one of its own under the number. */
        if (waiter->count && fstat(waiter->wake, &found) == 0
            && found.st_dev == waiter->device && found.st_ino == waiter->inode)
            while (write(waiter->wake, "x", 1) < 0 && errno == EINTR) {}
    }

    /* Waits for the next call, with the mutex held.  0 if there is to be none, 1 when it is due, 2 for a pause. */
    static int stepscope_wait(stepscope_waiter *waiter) {
        int status = 0;
        while (1) {
            if (waiter->paused) return 2;
            if (waiter->stopped) return 0;
            if (waiter->due || status == ETIMEDOUT) break;
            if (waiter->count) {
                double left = waiter->until - stepscope_now();
                int limit = left > 1e6 ? -1 : left < 0 ? 0 : (int)(left * 1e3) + 1, found, ours = 0, theirs = 0;
                pthread_mutex_unlock(&waiter->mutex);
                found = poll(waiter->files, waiter->count, limit);
                pthread_mutex_lock(&waiter->mutex);
                if (found < 0 && errno != EINTR) return 0;
                if (found == 0) status = ETIMEDOUT;
                for (int at = 0; found > 0 && at < waiter->count; at++) {
                    if (waiter->files[at].revents & (POLLNVAL | POLLERR)) return 0;   /* the program has closed it */
                    if (waiter->files[at].revents) { if (at) theirs = 1; else ours = 1; }
                }
                if (ours) {
                    char read_away[64];
                    while (read(waiter->files[0].fd, read_away, sizeof read_away) > 0) {}
                }
                if (theirs) waiter->due = 1;
            } else {
                struct timespec until;
                until.tv_sec = (time_t)waiter->until;
                until.tv_nsec = (long)((waiter->until - (double)until.tv_sec) * 1e9);
                status = pthread_cond_timedwait(&waiter->changed, &waiter->mutex, &until);
            }
        }
        waiter->due = 0;
        return 1;
    }

    static void *stepscope_run(void *argument) {
        stepscope_waiter *waiter = argument;
        int due;
        pthread_mutex_lock(&waiter->mutex);
        waiter->number = (pid_t)syscall(SYS_gettid);
        while (!waiter->over && (due = stepscope_wait(waiter)) != 2) {
            double seconds = -1;
            pthread_mutex_unlock(&waiter->mutex);
            if (!Py_IsInitialized()) {   /* the program has ended: whoever asked for the interpreter would crash */
                pthread_mutex_lock(&waiter->mutex);
                break;
            }
            PyGILState_STATE state = PyGILState_Ensure();
            PyThreadState_EnterTracing(PyThreadState_Get());   /* profilers of all threads do not see this one */
            PyObject *said = PyObject_CallFunction(waiter->call, "O", due ? Py_True : Py_False);
            if (said == NULL || said == Py_None) due = 0;
            else seconds = PyFloat_AsDouble(said);
            Py_XDECREF(said);
            PyErr_Clear();
            if (!due) Py_CLEAR(waiter->call);
            PyThreadState_LeaveTracing(PyThreadState_Get());
            PyGILState_Release(state);
            pthread_mutex_lock(&waiter->mutex);
            waiter->over = !due;
            waiter->until = stepscope_after(seconds);
        }
        waiter->runs = 0;
        if (!waiter->paused) pthread_detach(pthread_self());   /* whoever pauses it waits for the thread's end */
        pthread_mutex_unlock(&waiter->mutex);
        stepscope_forget(waiter);
        return NULL;
    }

    /* With the mutex held: gives it a thread. */
    static int stepscope_start(stepscope_waiter *waiter) {
        sigset_t all, before;
        int status;
        __atomic_add_fetch(&waiter->owners, 1, __ATOMIC_ACQ_REL);
        waiter->paused = 0;
        waiter->runs = 1;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        status = pthread_create(&waiter->thread, NULL, stepscope_run, waiter);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (status != 0) { __atomic_sub_fetch(&waiter->owners, 1, __ATOMIC_ACQ_REL); waiter->runs = 0; }
        return status == 0;
    }

    static stepscope_waiter *stepscope_make(PyObject *call, double seconds, int count, int *files, int wake) {
        stepscope_waiter *waiter = calloc(1, sizeof *waiter);
        struct stat ours;
        pthread_condattr_t kind;
        int started;
        if (waiter == NULL) return NULL;
        pthread_condattr_init(&kind);
        pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
        pthread_mutex_init(&waiter->mutex, NULL);
        pthread_cond_init(&waiter->changed, &kind);
        pthread_condattr_destroy(&kind);
        waiter->owners = 1;
        waiter->until = stepscope_after(seconds);
        waiter->count = count;
        waiter->wake = wake;
        if (count && fstat(wake, &ours) == 0) { waiter->device = ours.st_dev; waiter->inode = ours.st_ino; }
        for (int at = 0; at < count; at++) { waiter->files[at].fd = files[at]; waiter->files[at].events = POLLIN; }
        Py_INCREF(call);
        waiter->call = call;
        pthread_mutex_lock(&stepscope_list);
        waiter->next = stepscope_waiters;
        stepscope_waiters = waiter;
        pthread_mutex_unlock(&stepscope_list);
        pthread_mutex_lock(&waiter->mutex);
        started = stepscope_start(waiter);
        pthread_mutex_unlock(&waiter->mutex);
        if (started) return waiter;
        Py_CLEAR(waiter->call);
        stepscope_forget(waiter);
        return NULL;
    }

    static void stepscope_wake(stepscope_waiter *waiter, int stop) {
        pthread_mutex_lock(&waiter->mutex);
        if (stop) waiter->stopped = 1;
        else waiter->due = 1;
        stepscope_tell(waiter);
        pthread_mutex_unlock(&waiter->mutex);
    }

    /* Ends the threads that wait, and those that call a function once they have returned, if that is before the limit.
       Without the interpreter's lock, since such a call may need it. */
    static void stepscope_pause(double seconds) {
        stepscope_waiter *asked[STEPSCOPE_MOST_PAUSED];
        struct timespec until, moment = {0, 20000};
        int count = 0;
        double limit;
        pthread_mutex_lock(&stepscope_pausing);   /* of two that fork at once, one waits for the threads' ends */
        pthread_mutex_lock(&stepscope_list);
        stepscope_forks++;
        for (stepscope_waiter *waiter = stepscope_waiters; waiter != NULL; waiter = waiter->next) {
            pthread_mutex_lock(&waiter->mutex);
            if (waiter->runs && count < STEPSCOPE_MOST_PAUSED) {
                __atomic_add_fetch(&waiter->owners, 1, __ATOMIC_ACQ_REL);
                waiter->paused = 1;
                stepscope_tell(waiter);
                asked[count++] = waiter;
            }
            pthread_mutex_unlock(&waiter->mutex);
        }
        pthread_mutex_unlock(&stepscope_list);
        clock_gettime(CLOCK_REALTIME, &until);   /* the only clock of pthread_timedjoin_np */
        limit = (double)until.tv_sec + (double)until.tv_nsec * 1e-9 + seconds;
        until.tv_sec = (time_t)limit;
        until.tv_nsec = (long)((limit - (double)until.tv_sec) * 1e9);
        for (int at = 0; at < count; at++) {
            stepscope_waiter *waiter = asked[at];
            int ended = pthread_timedjoin_np(waiter->thread, NULL, &until) == 0;
            pthread_mutex_lock(&waiter->mutex);
            if (!ended && !waiter->runs) {   /* in this moment */
                pthread_join(waiter->thread, NULL);
                ended = 1;
            }
            waiter->paused = 0;
            waiter->rests = ended && !waiter->over;
            pthread_mutex_unlock(&waiter->mutex);
            /* The system counts a thread a little longer than its end can be waited for. */
            for (int tries = 0; ended && tries < 1000 && syscall(SYS_tgkill, getpid(), waiter->number, 0) == 0; tries++)
                nanosleep(&moment, NULL);
            stepscope_forget(waiter);
        }
        pthread_mutex_unlock(&stepscope_pausing);
    }

    static void stepscope_resume(void) {
        pthread_mutex_lock(&stepscope_list);
        stepscope_forks--;
        for (stepscope_waiter *waiter = stepscope_forks ? NULL : stepscope_waiters; waiter; waiter = waiter->next) {
            pthread_mutex_lock(&waiter->mutex);
            if (waiter->rests) {
                waiter->rests = 0;
                waiter->over = !stepscope_start(waiter);
            }
            pthread_mutex_unlock(&waiter->mutex);
        }
        pthread_mutex_unlock(&stepscope_list);
    }

    /* In a forked child, which has none of these threads. */
    static void stepscope_lose(void) {
        pthread_mutex_init(&stepscope_list, NULL);
        pthread_mutex_init(&stepscope_pausing, NULL);
        stepscope_waiters = NULL;
        stepscope_forks = 0;
    }
    #endif
    """
    ctypedef struct PyObject
    ctypedef struct stepscope_waiter
    stepscope_waiter* stepscope_make(PyObject* call, double seconds, int count, int* files, int wake)
    void stepscope_wake(stepscope_waiter*, int stop) nogil
    void stepscope_forget(stepscope_waiter*) nogil
    void stepscope_pause(double seconds) nogil
    void stepscope_resume() nogil
    void stepscope_lose() nogil

cdef extern from "Python.h":
    ctypedef int (*pending_call)(void *) noexcept
    int Py_AddPendingCall(pending_call, void *)
    ctypedef struct PyFrameObject
    PyFrameObject *PyEval_GetFrame()

cdef PyObject *forking_frame = NULL  # not owned: it is only compared
cdef int forking_at = -1
cdef int looks_left = 0
cdef int MOST_LOOKS = 10_000  # at whether `os.fork` has returned; each comes within some of the interpreter's instructions


cdef class Waiter:
    """A thread that waits, and calls a function now and then.

    Args:
        call: called with True when it is due, and with False as the last call, once there are to be no more.  It returns
            the seconds until the next call, below 0 for no limit; None for no more.
        seconds: until the first call.
        files: at most eight open files; a call is also due when one of them can be read.  One that is closed ends it.
        pipe: with files, the two ends of a pipe that does not block: it is how the thread is woken.

    Raises:
        RuntimeError: the system has no thread to give.
    """

    cdef stepscope_waiter* waiter

    def __init__(self, call, double seconds, files=(), pipe=(-1, -1)):
        cdef int[9] numbers
        cdef int count = 0
        for number in ((pipe[0], *files[:8]) if files else ()):
            numbers[count] = number
            count += 1
        self.waiter = stepscope_make(<PyObject*> call, seconds, count, numbers, pipe[1])
        if self.waiter == NULL:
            raise RuntimeError("can't start new thread")

    def wake(self):
        """A call is due now."""
        if self.waiter != NULL:
            stepscope_wake(self.waiter, 0)

    def stop(self):
        """There are to be no more calls but the last."""
        if self.waiter != NULL:
            stepscope_wake(self.waiter, 1)

    def __dealloc__(self):
        if self.waiter != NULL:
            stepscope_forget(self.waiter)


def pause_waiters(double seconds, frame):
    """Before a fork: ends the threads of all waiters, those that call a function once they have returned.

    Args:
        seconds: the most to wait for such a call; the thread of one that takes longer stays.
        frame: of the function that forks.
    """
    global forking_frame, forking_at
    forking_frame, forking_at = <PyObject *> frame, frame.f_lasti
    with nogil:
        stepscope_pause(seconds)


def resume_waiters(on_main_thread):
    """After a fork, in the parent: the waiters have threads again.  From Python 3.12 on, which may count the threads last
    of all and warn, only once `os.fork` has returned, if it was called on the main thread."""
    global looks_left
    looks_left = MOST_LOOKS
    if sys.version_info < (3, 12) or not on_main_thread or Py_AddPendingCall(resume_if_forked, NULL) != 0:
        stepscope_resume()


cdef int resume_if_forked(void *nothing) noexcept:
    global looks_left
    looks_left -= 1
    if looks_left < 0 or not is_forking() or Py_AddPendingCall(resume_if_forked, NULL) != 0:
        stepscope_resume()
    return 0


cdef bint is_forking():
    """Whether the main thread is still inside of the call that forks: in what somebody else has registered."""
    cdef PyObject *running = <PyObject *> PyEval_GetFrame()
    if running == NULL or running == forking_frame:
        return False
    frame = (<object> running).f_back
    while frame is not None:
        if <PyObject *> frame == forking_frame:
            return frame.f_lasti == forking_at
        frame = frame.f_back
    return False


def lose_waiters():
    """After a fork, in the child, which has none of the threads."""
    stepscope_lose()
