"""Times what Python's garbage collector takes, in no frame of Python.

The interpreter runs the program's handlers of signals where a frame begins.  What a handler raises in a callback of the
collector is printed and lost, and a program that is to end goes on.
"""

from time import perf_counter_ns

cdef int OLDEST = 2  # collections of the youngest objects are many and short


cdef class TimedCollections:
    """A callback of the collector that times the collections of all objects.

    Attributes:
        total_ns: how long they have taken together.
        count: how many there were.
    """

    cdef public long long total_ns, count
    cdef long long start_ns

    def __call__(self, phase, info):
        if info["generation"] < OLDEST:
            return
        if phase == "start":
            self.start_ns = perf_counter_ns()
        elif self.start_ns:
            self.total_ns += perf_counter_ns() - self.start_ns
            self.count += 1
            self.start_ns = 0
