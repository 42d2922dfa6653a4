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

cdef extern from *:
    """
    /* The limited API leaves these out; every CPython exports them. */
    PyAPI_FUNC(PyInterpreterState *) PyInterpreterState_Head(void);
    PyAPI_FUNC(PyInterpreterState *) PyInterpreterState_Next(PyInterpreterState *);
    """
    ctypedef struct PyInterpreterState
    PyInterpreterState* PyInterpreterState_Head()
    PyInterpreterState* PyInterpreterState_Next(PyInterpreterState*)
    int PyGC_Disable()
    int PyGC_Enable()

cdef bint RUN_AT_ONCE = sys.version_info >= (3, 12)  # interpreters of one process, each under a lock of its own

# cloudpickle, which sends functions of a script to worker processes, names no file from version 3.1.3 on.
UNNAMED = "<dynamic-code>"
cdef int MOST_FILES = 10_000
cdef dict files = {}  # id of such code -> the code, which so keeps its id, and the file of its module
cdef dict of_libraries = {}  # file -> whether it is a library's
cdef object get_objects = gc.get_objects


def current_frames():
    """The innermost frame of each thread, by Python's number of it; of none while the process has other interpreters.

    Python looks at the frames of those, too, while they run: it makes objects in their memory without their lock, and
    the process ends by a damaged heap.  None can be made meanwhile, as long as no other thread runs here.
    """
    if RUN_AT_ONCE and PyInterpreterState_Next(PyInterpreterState_Head()) != NULL:
        return {}
    return sys._current_frames()


def read_stacks(int most, str skipped, str kept="\0", str last="\0", dict places=None, dict own=None,
                tuple libraries=()):
    """The stack of each thread that runs Python.

    Args:
        most: frames that are read of a stack at most, the innermost ones.
        skipped: files whose path starts with this are left out,
        kept: but for those whose path starts with this.
        last: a stack is read up to a skipped file whose path starts with this.
        places: if given, gets for each thread the code of its innermost frame, whosever it is, and the place in it of
            the instruction that runs, in bytes.
        own: if given, gets for each thread the frames of files of no library, innermost first: the code and that place.
        libraries: how the paths of files of libraries start, the same at each call.

    Returns:
        Python's number of the thread -> its frames, innermost first: each its code, and the line that names it.  That is
        the line that defines the function; the code of a module, which has none, is named by the line that runs.
    """
    cdef dict found = {}
    if len(files) >= MOST_FILES:  # not while frames are walked: what ends with such code may be of the program
        files.clear()
    cdef int was_on = PyGC_Disable()
    try:
        frames = current_frames()
        for thread, frame in (<dict> frames).items():
            of_program = None if own is None else []
            found[thread] = named_frames(frame, most, skipped, kept, last, of_program, libraries)
            if of_program:
                own[thread] = of_program
            if places is not None:
                places[thread] = frame.f_code, frame.f_lasti
        return found
    finally:
        frame = frames = None
        if was_on:
            PyGC_Enable()


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
            found.append((frame.f_code, frame.f_lineno))
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


cdef bint is_own(str file, tuple libraries):
    known = of_libraries.get(file)
    if known is None:
        if len(of_libraries) >= MOST_FILES:
            of_libraries.clear()
        known = file.startswith(libraries) or "site-packages" in file or "dist-packages" in file
        of_libraries[file] = known
    return not known


cdef list named_frames(frame, int most, str skipped, str kept, str last, list own, tuple libraries):
    cdef list found = []
    cdef str file
    while frame is not None and len(found) < most:
        code = frame.f_code
        file = code.co_filename
        if file == UNNAMED:
            files[id(code)] = code, dict.get(frame.f_globals, "__file__", file)  # past a `get` of the program
        if not file.startswith(skipped) or file.startswith(kept):
            found.append((code, frame.f_lineno if code.co_name == "<module>" else code.co_firstlineno))
            if own is not None and is_own(file, libraries):
                own.append((code, frame.f_lasti))
        elif file.startswith(last):
            break
        frame = frame.f_back
    return found
