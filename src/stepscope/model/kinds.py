"""The kinds of planes, lines and events.  The reader decides them once, so that no tool has to look at names again."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any


class Kind(IntEnum):
    """A kind, stored in columns of small integers.

    numpy treats a member like a plain integer, so a comparison keeps the column's narrow type.  Otherwise numpy would
    widen every byte to int64 first, which takes 20 times as long.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = (int(value) if isinstance(value, Kind) else value for value in inputs)
        return getattr(ufunc, method)(*plain, **options)


class PlaneKind(Kind):
    """What a plane describes."""

    OTHER = 0
    HOST = 1
    GPU = 2
    TPU = 3
    SPARSE_CORE = 4
    CUSTOM_DEVICE = 5
    METADATA = 6
    ENVIRONMENT = 7

    @property
    def is_device(self) -> bool:
        """True for planes whose lines hold work of an accelerator."""
        return self in (PlaneKind.GPU, PlaneKind.TPU, PlaneKind.SPARSE_CORE)


class LineKind(Kind):
    """What a line (one horizontal track of a plane) holds.

    Only the first four hold measured work.  The others repeat that work at another level, so adding them up as well
    would count time twice.
    """

    OTHER = 0
    THREAD = 1  # a host thread: properly nested calls
    STREAM = 2  # a GPU stream: kernels and copies, not nested
    DEVICE_OPS = 3  # a TPU core's op line
    STEPS = 4  # steps, as derived by the writer
    MODULES = 5  # XLA modules
    DERIVED = 6  # ops, name scopes and source lines, derived from the streams
    COUNTERS = 7
    OVERHEAD = 8  # the profiler's own work


class EventKind(Kind):
    """What one event is.  Host kinds come first; device kinds start at 32."""

    OTHER = 0
    STEP_MARK = 1  # a step, marked by the user or the framework
    OP = 2  # a framework op, or an XLA op, on a host thread
    INPUT_WAIT = 3  # the step waits for its next batch
    ITERATOR = 4  # a call of an input iterator (tf.data)
    INPUT_HANDOVER = 5  # an input iterator passes an element to another thread
    FUNCTION_RUN = 6  # one run of a graph, function or session; a step root if steps are not marked
    EXECUTOR = 7  # the graph executor at work for a run
    EAGER_EXECUTE = 8  # dispatch of a single op or function from Python
    TRACED_FUNCTION = 9  # a call of a traced Python function (tf.function)
    RUNTIME_CALL = 10  # a call into the device runtime: launch, copy, event
    SYNC = 11  # the host waits for a device
    PYTHON_CALL = 12
    ANNOTATION = 13  # a range that a user named
    ALLOCATION = 14
    DEALLOCATION = 15
    COMPILE = 16  # tracing, lowering or compiling
    THREADPOOL = 17  # passes work to another thread
    COPY_HOST_TO_DEVICE_CALL = 18  # host side of a transfer to a device
    INPUT_CALLBACK = 19  # a user's function run by an input iterator
    OVERHEAD = 20
    AGGREGATE = 21  # many occurrences in one record, without a time
    BACKWARD = 22  # an autograd engine node
    COLLECTIVE_CALL = 23  # host side of a collective operation
    CHECKPOINT = 24  # saving or restoring state
    REGION_BEGIN = 25  # a thread starts work it was given; encloses all events up to REGION_END
    REGION_END = 26

    KERNEL = 32
    COPY_HOST_TO_DEVICE = 33
    COPY_DEVICE_TO_HOST = 34
    COPY_DEVICE_TO_DEVICE = 35
    COPY_PEER = 36  # between two devices
    COPY_HOST_TO_HOST = 37
    COPY_OTHER = 38
    MEMSET = 39
    COLLECTIVE = 40
    DEVICE_OP = 41  # an op on a TPU core
    DEVICE_MEMORY = 42  # allocation, residency and the like on a device line
    GRAPH_LAUNCH = 43  # one launch of a recorded graph of kernels
    DEVICE_STEP = 44  # an event of a STEPS line
    MODULE = 45
    SCOPE = 46  # an event of a DERIVED line
    COUNTER = 47
    INFEED = 48  # a device waits for or receives input
    OUTFEED = 49

    @property
    def is_device(self) -> bool:
        """True for work done by an accelerator."""
        return self >= EventKind.KERNEL


class Trait(IntFlag):
    """Facts about an event beyond its kind, one bit each."""

    NONE = 0
    COMPUTES_16BIT = 1  # in 16-bit or narrower floating point
    ASYNC = 2  # does not nest on its line
    EAGER = 4
    COMPILES = 8  # includes tracing or compiling
    EXPLICIT_ROOT = 16  # marked as a root by the writer
    FILE_READ = 32  # reads a file
    ENQUEUE = 64  # passes input to a device
    MARKS_IF_ROOT = 128  # used only while reading: the name marks a step if the event is a root


class StatTag(Kind):
    """How to read a stat's 64-bit value."""

    NONE = 0
    DOUBLE = 1  # the bits of an IEEE double
    UINT = 2  # the bits of an unsigned integer
    INT = 3
    STRING = 5  # row of the string table
    BYTES = 6  # row of the string table, not text
