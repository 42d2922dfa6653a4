"""Reads the Python stacks of all threads in one go, and picks among all objects.

Python code that walks from frame to frame lets other threads run between two of its instructions.  The frames that it
holds then end while it looks at them, and CPython 3.11 reads freed memory when it asks such a frame for its caller: the
program ends with a segmentation fault.  Compiled code lets no other thread run until it returns.  It must not run
Python code either, so the collector, which may call finalizers, rests meanwhile.  A frame that is handed out must not be
asked for its caller.

The list of all objects that the collector knows holds unfinished ones, too: a tuple that another thread makes can no
longer grow once somebody else refers to it, and what that thread lets go of would end here.  So that list is gone
before another thread runs.
"""

import gc
import sys

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcmp

from stepscope.kernels.noted cimport Noted, note, thread_ns

cdef extern from *:
    """
    /* The limited API leaves these out; every CPython exports them. */
    PyAPI_FUNC(PyFrameObject *) PyFrame_GetBack(PyFrameObject *);
    PyAPI_FUNC(int) PyFrame_GetLasti(PyFrameObject *);
    #define stepscope_code(frame) ((PyObject *)PyFrame_GetCode((PyFrameObject *)(frame)))
    #define stepscope_back(frame) ((PyObject *)PyFrame_GetBack((PyFrameObject *)(frame)))
    #define stepscope_place(frame) PyFrame_GetLasti((PyFrameObject *)(frame))
    #define stepscope_line(frame) PyFrame_GetLineNumber((PyFrameObject *)(frame))
    PyAPI_FUNC(PyInterpreterState *) PyInterpreterState_Head(void);
    PyAPI_FUNC(PyInterpreterState *) PyInterpreterState_Next(PyInterpreterState *);
    """
    ctypedef struct PyInterpreterState
    ctypedef struct PyObject
    PyObject* PyFrame_GetCode "stepscope_code"(PyObject* frame)
    PyObject* PyFrame_GetBack "stepscope_back"(PyObject* frame)
    int place_of "stepscope_place"(PyObject* frame)  # as `f_lasti`, which is found by its name
    int line_of "stepscope_line"(PyObject* frame)  # 0 or less where the instruction has none
    void Py_DecRef(PyObject*)
    object PyLong_FromVoidPtr(void*)
    object PyObject_GenericGetDict(object, void*)
    PyInterpreterState* PyInterpreterState_Head()
    PyInterpreterState* PyInterpreterState_Next(PyInterpreterState*)
    int PyGC_Disable()
    int PyGC_Enable()

cdef bint RUN_AT_ONCE = sys.version_info >= (3, 12)  # interpreters of one process, each under a lock of its own

# cloudpickle, which sends functions of a script to worker processes, names no file from version 3.1.3 on.
UNNAMED = "<dynamic-code>"
cdef int MOST_FILES = 10_000, MOST_THREADS = 1000
cdef dict files = {}  # id of such code -> the code, which so keeps its id, and the file of its module
cdef object get_objects = gc.get_objects


cdef enum:
    SHOWN = 1  # what is to be done with a frame
    OWN = 2
    LAST = 4
    BY_LINE = 8
    NUMBER = 1  # of the numbers of a row of clocks
    USED = 2
    STACK = 3
    CLOCKS = 4
    COMPUTES = 10  # a thread that runs for more than the time divided by this


def current_frames():
    """The innermost frame of each thread, by Python's number of it; of none while the process has other interpreters.

    Python looks at the frames of those, too, while they run: it makes objects in their memory without their lock, and
    the process ends by a damaged heap.  None can be made meanwhile, as long as no other thread runs here.
    """
    if RUN_AT_ONCE and PyInterpreterState_Next(PyInterpreterState_Head()) != NULL:
        return {}
    return sys._current_frames()


cdef class Sampling:
    """All that a sampler does each time it wakes, in no frame of Python.

    It wakes to cold caches, where a line of Python takes ten times as long; and Python gives a thread that enters its
    first frame memory for such, and takes that back.  On a busy machine both made a sample take 0.3 ms instead of 0.1.

    Args:
        log: of the stacks, whose `read` takes a sample.
        clock: tells the time in ns.
        named, own: as of `StackLog.read`; they change meanwhile.
        meters: the values of this dict are read with each sample.
        adapt: called with how many threads compute, when that is one or is no longer; what waits competes for nothing.
        interval_s: the time between two samples.
        share: of one core, which sampling may take; kept over `balance_s`.
        most_wait_s: the longest time between two samples that keeps to it.
        used: tells the processor time of the calling thread in ns.
    """

    cdef object log, clock, own, adapt, used, slow
    cdef dict named, meters
    cdef double interval_s, share, balance_s, most_wait_s, owed_s
    cdef int64_t used_ns, ticked_ns
    cdef bint is_one

    def __init__(self, log, clock, dict named, own, dict meters, adapt, double interval_s, double share, double balance_s,
                 double most_wait_s, used):
        self.log, self.clock, self.named, self.own, self.meters, self.adapt = log, clock, named, own, meters, adapt
        self.interval_s, self.share, self.balance_s, self.most_wait_s = interval_s, share, balance_s, most_wait_s
        self.used = used

    def bind(self, slow):
        """What a `Waiter` calls; `slow` is called in its place for the last call, and if a sample fails."""
        self.slow = slow
        return self

    def __call__(self, goes_on):
        if goes_on:
            try:
                return self.sample()
            except Exception:
                pass
        slow = self.slow
        if not goes_on:
            self.slow = None  # it refers to this
        return slow(goes_on)

    def sample(self):
        """Takes a sample; returns the seconds until the next one: many threads with deep stacks are sampled less often,
        once the first samples have used up the share of `balance_s`.

        The cost of a sample is the processor time of this thread since the last one, which includes waking up.
        """
        cdef double since_s
        cdef int64_t used_ns
        now, computing = self.log.read(self.clock, self.named, self.own)
        for meter in self.meters.values():
            meter.read(now)
        since_s = 1e-9 * (<int64_t> now - self.ticked_ns)
        if computing and (computing == 1) != self.is_one:
            self.is_one = not self.is_one
            self.adapt(computing)
        used_ns = self.used()
        self.owed_s = max(self.owed_s - self.share * since_s, 0.0) + 1e-9 * (used_ns - self.used_ns)
        self.ticked_ns, self.used_ns = now, used_ns
        return max(self.interval_s, min(self.owed_s / self.share - self.balance_s, self.most_wait_s))


cdef class StackLog:
    """What samples of the stacks of all threads show, as numbers, until it is taken.

    Args:
        most: frames that are read of a stack at most, the innermost ones.
        skipped: files whose path starts with this are left out,
        kept: but for those whose path starts with this.
        last: a stack is read up to a skipped file whose path starts with this.
        libraries: how the paths of files of libraries start.
    """

    cdef int64_t most, last_ns
    cdef str skipped, kept, last
    cdef tuple libraries
    cdef dict codes  # id -> the code, which so keeps its id, and what is to be done with its frames
    cdef dict rows  # Python's number of a thread -> its row
    cdef list threads  # of each row Python's number, the system's, and the name
    cdef Noted log  # of each sample its time and threads: of each its row, and how many numbers follow; 0 if as before
    cdef Noted clocks  # of each row the id of Python's object, the system's number, the ns used, where its stack is

    def __init__(self, int64_t most, str skipped, str kept="\0", str last="\0", tuple libraries=()):
        self.most, self.skipped, self.kept, self.last, self.libraries = most, skipped, kept, last, libraries
        self.codes, self.rows, self.threads = {}, {}, []

    def __dealloc__(self):
        free(self.log.items)
        free(self.clocks.items)

    def __len__(self):
        return self.log.size * sizeof(int64_t)

    def read(self, clock, dict named, own):
        """Takes a sample.

        Args:
            clock: tells the time in ns.
            named: Python's number of a thread -> its object.
            own: the numbers of threads that are left out.

        Returns:
            The time, and how many threads have run for more than a tenth of the time since the last sample; -1 where the
            system does not say it of each.
        """
        cdef int64_t begin, enough, used, row
        cdef int count = 0, computing = 0
        cdef bint is_known = True
        cdef int was_on
        now = clock()  # may run Python, and so others that take the log; what follows runs none
        begin = self.log.size
        was_on = PyGC_Disable()
        try:
            enough, self.last_ns = (<int64_t> now - self.last_ns) // COMPUTES, now
            frames = current_frames()
            note(&self.log, now)
            note(&self.log, 0)
            for thread, frame in (<dict> frames).items():
                if thread in own:
                    continue
                row = self.find_row(thread, named.get(thread))
                self.add(row, frame)
                count += 1
                used = thread_ns(self.clocks.items[row * CLOCKS + NUMBER])
                is_known = is_known and used >= 0
                computing += used - self.clocks.items[row * CLOCKS + USED] > enough
                self.clocks.items[row * CLOCKS + USED] = used
            self.log.items[begin + 1] = count
            return now, computing if is_known else -1
        except BaseException:
            self.log.size = begin
            self.forget_stacks()
            raise
        finally:
            frame = frames = None
            if was_on:
                PyGC_Enable()

    cdef void forget_stacks(self) noexcept:
        """No stack is told any more as being the one before."""
        cdef int64_t at
        for at in range(STACK, self.clocks.size, CLOCKS):
            self.clocks.items[at] = -1

    cdef int64_t find_row(self, thread, named) except -1:
        """The row of a thread; a new one if Python has given its number to another one since."""
        cdef int64_t row = self.rows.get(thread, -1), object_ = <int64_t> <PyObject*> named
        if row >= 0 and self.clocks.items[row * CLOCKS] == object_:
            return row
        number, name = thread, f"thread {thread}"
        try:  # without code in Python, as its properties are, and perhaps those of a class of the program
            known = <dict> PyObject_GenericGetDict(named, NULL)
            number, name = known.get("_native_id") or thread, known.get("_name", name)
        except AttributeError:  # none, or an object that the program has put there
            pass
        row = self.rows[thread] = len(self.threads)
        self.threads.append((thread, number, name))
        for each in (object_, number, 0, -1):
            note(&self.clocks, each)
        return row

    cdef int add(self, int64_t row, frame) except -1:
        """Logs the stack of a thread: the code and the place of its innermost frame, how many frames are shown, each its
        code, the line that names it or 0 for that of its definition, and its place or -1 where it is a library's."""
        cdef int64_t begin = self.log.size + 2, before, shown = 0
        cdef int flags
        code = code_of(frame)
        for each in (row, 0, <int64_t> <PyObject*> code, place_of(<PyObject*> frame), 0):
            note(&self.log, each)
        while frame is not None and shown < self.most:
            code = code_of(frame)
            flags = self.find_flags(code, frame)
            if flags & SHOWN:
                note(&self.log, <int64_t> <PyObject*> code)
                note(&self.log, max(line_of(<PyObject*> frame), 0) if flags & BY_LINE else 0)
                note(&self.log, place_of(<PyObject*> frame) if flags & OWN else -1)
                shown += 1
            elif flags & LAST:
                break
            frame = caller_of(frame)
        self.log.items[begin + 2] = shown
        before = self.clocks.items[row * CLOCKS + STACK]
        if before >= 0 and self.is_repeated(before, begin):
            self.log.size = begin
        else:
            self.log.items[begin - 1] = self.log.size - begin
            self.clocks.items[row * CLOCKS + STACK] = begin
        return 0

    cdef bint is_repeated(self, int64_t before, int64_t begin) noexcept:
        """Whether the last stack of the log is as one before."""
        cdef int64_t size = self.log.size - begin
        return self.log.items[before - 1] == size and not memcmp(
            self.log.items + before, self.log.items + begin, <size_t> size * sizeof(int64_t)
        )

    cdef int find_flags(self, code, frame) except -1:
        """What is to be done with the frames of some code."""
        cdef int flags
        cdef str file
        key = PyLong_FromVoidPtr(<PyObject*> code)
        found = self.codes.get(key)
        if found is not None:
            return found[1]
        file = code.co_filename
        if file == UNNAMED:
            files[key] = code, dict.get(frame.f_globals, "__file__", file)  # past a `get` of the program
        flags = BY_LINE if code.co_name == "<module>" else 0
        if not file.startswith(self.skipped) or file.startswith(self.kept):
            is_library = file.startswith(self.libraries) or "site-packages" in file or "dist-packages" in file
            flags |= SHOWN if is_library else SHOWN | OWN
        elif file.startswith(self.last):
            flags |= LAST
        self.codes[key] = code, flags
        return flags

    def take(self):
        """The samples since the last time, which are forgotten.

        Returns:
            Of each its time in ns, and its threads.  Of each of these what it is, as Python's number, the system's and a
            name; its frames, innermost first: each its code, and the line that names it, which is the line that defines
            the function; the code of a module, which has none, is named by the line that runs; the code of its innermost
            frame, whosever it is, and the place in it of the instruction that runs, in bytes; and the frames of files of
            no library, innermost first: the code and that place.
        """
        # All objects are made first: with any, the collector may run, code of the program in that, and meanwhile the thread
        # that samples.
        cdef dict seen = {}, codes = {}, rows = {}
        cdef list samples = [], threads = [], shown
        cdef int64_t at = 0, row, size
        cdef Noted log = self.log
        self.log.items, self.log.size, self.log.room = NULL, 0, 0
        self.forget_stacks()
        if len(self.threads) > MOST_THREADS or len(self.codes) > MOST_FILES:
            codes, self.codes = self.codes, codes
            threads, self.threads = self.threads, threads
            self.rows, self.clocks.size = rows, 0
        else:
            codes, threads = self.codes, self.threads
        if len(files) > MOST_FILES:
            files.clear()
        try:
            while at < log.size:
                now, count = log.items[at], log.items[at + 1]
                at += 2
                shown = []
                for _ in range(count):
                    row, size = log.items[at], log.items[at + 1]
                    at += 2
                    if size:
                        seen[row] = threads[row], *decode_stack(log.items + at, codes)
                    shown.append(seen[row])
                    at += size
                samples.append((now, shown))
            return samples
        finally:
            free(log.items)


cdef code_of(frame):
    """As `frame.f_code`, which is found by its name."""
    cdef PyObject* code = PyFrame_GetCode(<PyObject*> frame)
    found = <object> code
    Py_DecRef(code)
    return found


cdef caller_of(frame):
    """As `frame.f_back`."""
    cdef PyObject* back = PyFrame_GetBack(<PyObject*> frame)
    if back == NULL:
        return None
    found = <object> back
    Py_DecRef(back)
    return found


cdef tuple decode_stack(int64_t* log, dict codes):
    cdef list frames = [], own = []
    cdef int64_t at
    for at in range(3, 3 + 3 * log[2], 3):
        code = codes[log[at]][0]
        frames.append((code, log[at + 1] or code.co_firstlineno))
        if log[at + 2] >= 0:
            own.append((code, log[at + 2]))
    return frames, (codes[log[0]][0], log[1]), own


def read_stack(thread, int most=128):
    """The stack of one thread, innermost frame first: each its code, and the line that runs; empty if there is none.

    Args:
        thread: Python's number of the thread.
        most: frames at most.
    """
    cdef list found = []
    cdef int was_on = PyGC_Disable()
    try:
        frames = current_frames()
        frame = (<dict> frames).get(thread)
        while frame is not None and len(found) < most:
            found.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
            frame = frame.f_back
        return found
    finally:
        frame = frames = None
        if was_on:
            PyGC_Enable()


def list_frames():
    """The frames of all threads; none may be asked for its caller, since it may have ended since."""
    cdef list found = []
    cdef int was_on = PyGC_Disable()
    try:
        frames = current_frames()
        for frame in (<dict> frames).values():
            while frame is not None:
                found.append(frame)
                frame = frame.f_back
        return found
    finally:
        frame = frames = None
        if was_on:
            PyGC_Enable()


def list_objects(types, generation=None, Py_ssize_t most=sys.maxsize):
    """The objects of some types, and of none that is derived from these, that Python's collector knows.

    Args:
        types: the types.
        generation: of the collector, 0 for the youngest, in which objects may be unfinished; None for all.
        most: objects of all types; of more none is picked.
    """
    cdef tuple wanted = tuple(types)
    cdef list found = [], known
    cdef int was_on = PyGC_Disable()
    try:
        known = get_objects(generation)
        if len(known) <= most:
            for each in known:
                for kind in wanted:
                    if type(each) is kind:
                        found.append(each)
                        break
        return found
    finally:
        each = known = None
        if was_on:
            PyGC_Enable()


def file_of(code):
    """The file of code that was met on a stack."""
    found = files.get(id(code))
    return found[1] if found is not None else code.co_filename
