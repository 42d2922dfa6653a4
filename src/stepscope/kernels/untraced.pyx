"""Runs our own code on a thread of the program as if nothing ran there: its tracers and profilers see nothing of it.

A tracer or profiler of the program - `sys.settrace`, `sys.setprofile`, cProfile, coverage, a debugger - is called for
each line and call of its thread.  The interpreter counts how deep it is inside of such a tool, and calls none meanwhile.
"""

cdef extern from *:
    """
    /* The limited API leaves these out; every CPython from 3.11 on exports them. */
    PyAPI_FUNC(void) PyThreadState_EnterTracing(PyThreadState *);
    PyAPI_FUNC(void) PyThreadState_LeaveTracing(PyThreadState *);
    """
    ctypedef struct PyThreadState
    PyThreadState* PyThreadState_Get()
    void PyThreadState_EnterTracing(PyThreadState*)
    void PyThreadState_LeaveTracing(PyThreadState*)


def untraced(call, *args):
    """What a function returns that no tool of the program sees."""
    cdef PyThreadState* state = PyThreadState_Get()
    PyThreadState_EnterTracing(state)
    try:
        return call(*args)
    finally:
        PyThreadState_LeaveTracing(state)
