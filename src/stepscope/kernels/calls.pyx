"""Records the calls of Python functions on one thread, at a tenth of what Python code costs at every call and return.

    enter f | enter g | leave g | leave f        the open calls are a stack; a call is kept when it has ended

The interpreter calls the hook here itself.  It is given no object, so `sys.getprofile()` of the program is None, and
`sys.monitoring` has all of its tools for the program.
"""

import sys
import threading
import time

from libc.stdint cimport int64_t
from libc.stdlib cimport free

from stepscope.kernels.noted cimport Noted, note

cdef extern from *:
    """
    #include <time.h>
    /* The limited API leaves out these, which every CPython exports. */
    typedef int (*stepscope_hook)(PyObject *, PyFrameObject *, int, PyObject *);
    PyAPI_FUNC(void) PyEval_SetProfile(stepscope_hook, PyObject *);
    PyAPI_FUNC(PyFrameObject *) PyFrame_GetBack(PyFrameObject *);
    PyAPI_FUNC(void) PyThreadState_EnterTracing(PyThreadState *);
    PyAPI_FUNC(void) PyThreadState_LeaveTracing(PyThreadState *);
    #if defined(_MSC_VER)
    static __declspec(thread) PyObject *stepscope_log = NULL;
    #else
    static __thread PyObject *stepscope_log = NULL;  /* of this thread; a reference is held */
    #endif
    static int64_t stepscope_now(void) {
    #if defined(__linux__)
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    #else
        return -1;
    #endif
    }
    """
    ctypedef struct PyObject
    ctypedef struct PyThreadState
    PyThreadState* PyThreadState_Get()
    void PyThreadState_EnterTracing(PyThreadState*)
    void PyThreadState_LeaveTracing(PyThreadState*)
    ctypedef struct PyFrameObject
    ctypedef int (*Hook)(PyObject*, PyFrameObject*, int, PyObject*) noexcept
    void PyEval_SetProfile(Hook hook, PyObject* argument)
    void* PyFrame_GetCode(PyFrameObject* frame)
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame)
    void Py_IncRef(PyObject* thing)
    void Py_DecRef(PyObject* thing)
    PyObject* log_of_thread "stepscope_log"
    int Py_AddPendingCall(int (*call)(void*) except -1, void* argument)
    int64_t now_of_system "stepscope_now"()

cdef enum:
    CALL = 0  # PyTrace_CALL
    RETURN = 3  # PyTrace_RETURN
    C_CALL = 4  # PyTrace_C_CALL

# Functions of the interpreter, which live as long as that.
set_profile_of_all = getattr(sys, "_setprofileallthreads", None)  # from Python 3.12 on
cdef PyObject* SET_PROFILE = <PyObject*> sys.setprofile
cdef PyObject* SET_PROFILE_OF_ALL = <PyObject*> set_profile_of_all
cdef PyObject* LATER_THREADS = <PyObject*> threading.setprofile.__code__ if set_profile_of_all else NULL


cdef class CallLog:
    """The calls of one thread.  Only that thread enters and leaves; any may `take`.

    Args:
        clock: as `time.perf_counter_ns`, which is read without calling it where that can be done.
        least_ns: shorter calls are not kept.
        most_depth: calls nested deeper are not kept.

    Attributes:
        recording: False ends the recording; the interpreter's hook then removes itself at its next call.
        calls: how many started, kept or not.
    """

    cdef public bint recording
    cdef readonly int64_t calls
    cdef object clock
    cdef bint reads_system
    cdef int64_t least_ns, most_depth
    cdef Noted code, start  # the open calls, innermost last; a code object lives as long as its call
    cdef Noted begin, end  # the calls that are kept
    cdef list codes

    def __init__(self, clock, int64_t least_ns, int64_t most_depth):
        self.recording = True
        self.clock = clock
        self.reads_system = clock is time.perf_counter_ns and now_of_system() >= 0
        self.least_ns, self.most_depth = least_ns, most_depth
        self.codes = []

    def __dealloc__(self):
        free(self.code.items)
        free(self.start.items)
        free(self.begin.items)
        free(self.end.items)

    def __len__(self):
        return len(self.codes)

    def install(self):
        """Makes the interpreter note the calls of the calling thread here."""
        global log_of_thread
        remove_hook()
        Py_IncRef(<PyObject*> self)
        log_of_thread = <PyObject*> self
        PyEval_SetProfile(on_event, NULL)

    @staticmethod
    def uninstall():
        """Ends that for the calling thread, unless the program has set a hook of its own since."""
        if log_of_thread != NULL and sys.getprofile() is None:
            remove_hook()

    def enter(self, code):
        """A call starts, or goes on."""
        self.open_call(<PyObject*> code)

    def leave(self, code):
        """A call ends, or pauses."""
        self.end_call(<PyObject*> code)

    def take(self):
        """The calls that have ended since the last time: code objects, and two lists of starts and ends in ns."""
        cdef list codes, fresh = []  # made first: with any new object the collector may run, code of the program in that,
        cdef Noted begin, end  # and other threads meanwhile, whose calls end
        cdef int64_t row
        codes, begin, end = self.codes, self.begin, self.end
        self.codes = fresh
        self.begin.items = self.end.items = NULL
        self.begin.size = self.end.size = self.begin.room = self.end.room = 0
        try:
            return codes, [begin.items[row] for row in range(begin.size)], [end.items[row] for row in range(end.size)]
        finally:
            free(begin.items)
            free(end.items)

    cdef int64_t now(self) except -1:
        return now_of_system() if self.reads_system else self.clock()

    cdef int open_call(self, PyObject* code) except -1:
        self.calls += 1
        note(&self.code, <int64_t> code)
        note(&self.start, self.now())
        return 0

    cdef int end_call(self, PyObject* code) except -1:
        cdef int64_t end = self.now(), begin
        # Above it are calls whose ends were missed while a hook was off for a moment; without it all are.
        while self.code.size and self.code.items[self.code.size - 1] != <int64_t> code:
            self.code.size -= 1
        self.start.size = self.code.size
        if not self.code.size:
            return 0
        self.code.size -= 1
        self.start.size -= 1
        begin = self.start.items[self.start.size]
        if end - begin >= self.least_ns and self.code.size < self.most_depth and self.recording:
            note(&self.begin, begin)
            note(&self.end, end)
            self.codes.append(<object> code)
        return 0


cdef void remove_hook() noexcept:
    global log_of_thread
    cdef PyObject* before = log_of_thread
    log_of_thread = NULL
    PyEval_SetProfile(NULL, NULL)
    if before != NULL:
        Py_DecRef(before)


cdef void give_way() noexcept:
    """The program is about to set a profiler of its own.

    From Python 3.12 on, a hook of any thread makes all code tell of its calls, so that the program's would hear of the
    return from a call that began before it was set, such as the one that sets it in a new thread: all hooks go.
    """
    remove_hook()
    if set_profile_of_all is not None:
        try:
            set_profile_of_all(None)
        except BaseException:  # an audit hook of the program refuses, as it may refuse the program's own call
            pass


cdef int skip_this_return() noexcept:
    """On the main thread the program's profiler would be told of the return from the function that sets it, since a
    hook saw the call; so no tool is called until the next instruction, at which pending calls are made."""
    if threading.get_ident() != threading.main_thread().ident:
        return 0
    PyThreadState_EnterTracing(PyThreadState_Get())
    if Py_AddPendingCall(leave_tracing, NULL) != 0:
        PyThreadState_LeaveTracing(PyThreadState_Get())
    return 0


cdef int leave_tracing(void* _argument) except -1:
    PyThreadState_LeaveTracing(PyThreadState_Get())
    return 0


cdef int on_event(PyObject* _argument, PyFrameObject* frame, int event, PyObject* what) noexcept:
    """What the interpreter calls.  An exception here must not end up in the program: the hook goes."""
    if event == C_CALL and (what == SET_PROFILE or what == SET_PROFILE_OF_ALL):
        give_way()
        return skip_this_return()
    if event != CALL and event != RETURN:
        return 0
    if log_of_thread == NULL:
        PyEval_SetProfile(NULL, NULL)
        return 0
    log = <CallLog> log_of_thread
    if not log.recording:
        remove_hook()
        return 0
    cdef PyObject* code = <PyObject*> PyFrame_GetCode(frame)
    try:
        if event == CALL and code == LATER_THREADS:
            give_way()
        elif event == CALL:
            log.open_call(code)
        else:
            log.end_call(code)
            if not log.code.size and is_outermost(frame) and not is_of_start(code):
                remove_hook()
    except BaseException:
        log.recording = False
    finally:
        Py_DecRef(code)
    return 0


cdef bint is_of_start(PyObject* code) except -1:
    """Whether it is the interpreter that calls this on its own before the program, as imports of `site`; `runpy` is what
    runs the program with `-m`."""
    cdef str file = (<object> code).co_filename
    return file.startswith("<frozen ") and file != "<frozen runpy>"


cdef bint is_outermost(PyFrameObject* frame) noexcept:
    """Whether no Python called this: when it ends, so does the program, or its thread.

    The interpreter may go on then with an exception that nobody handles, as after `sys.exit` with a number that is too
    large, and no hook may be called while it does.
    """
    cdef PyFrameObject* caller = PyFrame_GetBack(frame)
    if caller == NULL:
        return True
    Py_DecRef(<PyObject*> caller)
    return False


def call_on_main_thread(call):
    """Has the main thread call a function between two instructions of its Python code.

    No signal is sent, so nothing that it waits for ends early.  False if the interpreter has no room for such a call.
    """
    Py_IncRef(<PyObject*> call)
    if Py_AddPendingCall(make_call, <void*> call) == 0:
        return True
    Py_DecRef(<PyObject*> call)
    return False


cdef int make_call(void* argument) except -1:
    """An exception is passed on to the code that runs: SystemExit is to end the program."""
    cdef PyThreadState* state = PyThreadState_Get()
    call = <object> (<PyObject*> argument)
    Py_DecRef(<PyObject*> argument)
    PyThreadState_EnterTracing(state)
    try:
        call()
    finally:
        PyThreadState_LeaveTracing(state)
    return 0
