"""Traits that a name can have.  Each class is asked about by one kind of question; `lookup.has_trait` answers."""

from __future__ import annotations

from enum import IntFlag, auto


class OpTrait(IntFlag):
    """What a framework's op does, or an op of a compiled program."""

    MOVES_DATA = auto()  # only moves or sets data, and computes nothing
    COPIES_WHOLE = auto()  # of a compiled program: a copy and nothing else
    CONVERTS = auto()  # to another type or device
    MULTIPLIES = auto()  # products, convolutions and decompositions: what a forward pass is made of
    OF_GRADIENT = auto()  # computes gradients, of ops that multiply
    FIRST_OF_STEP = auto()  # an op that takes a batch: its shapes change where those of the input do
    MAKES_RESULT = auto()  # makes a new tensor of its result, element by element
    MAKES_TENSOR = auto()  # makes a tensor, or changes its type
    LIFTS_VALUES = auto()  # makes a tensor of Python numbers
    DETACHES = auto()
    DETACHES_IN_PLACE = auto()
    SETS_STORAGE = auto()  # gives a tensor memory that is there, as unpickling does
    COPIES_OUT = auto()  # stands between parameters that are copied out of the framework
    ADDS_GRADIENT = auto()  # adds a gradient to that of a parameter
    CALLS_PYTHON = auto()  # runs a Python function from a graph
    CALLS_BACK = auto()  # runs a Python function from a compiled program
    READS_FILE = auto()
    IS_RANDOM = auto()
    COMPARES_VALUES = auto()  # reads a value to compare
    SIZED_BY_DATA = auto()  # the size of the result depends on the data
    COPIES_AND_WAITS = auto()  # waits for a device where it copies from one
    ONLY_ALLOCATES = auto()
    LIBRARY_PRODUCT = auto()  # a product that a library prepares when it first runs
    COMPILED_PRODUCT = auto()  # a product that the compiler itself makes
    WRITES_VARIABLE = auto()  # works on a whole variable, whatever the batch
    # Ops in which a library prepares something in each call, whatever the batch.
    PREPARES_PRODUCT_GRADIENT = auto()
    PREPARES_CONVOLUTION = auto()
    PREPARES_CONVOLUTION_GRADIENT = auto()
    PREPARES_FILTER_GRADIENT = auto()


class CallTrait(IntFlag):
    """What a call on the host does: a Python function, a dispatch, or a call into a runtime."""

    SAVES_STATE = auto()
    MAKES_INPUT = auto()
    READS_VALUE = auto()  # takes a value out of a tensor
    WAITS = auto()
    COPIES_IN = auto()  # makes an array of the framework out of a foreign one
    DISPATCHES = auto()  # starts an op or a function from Python
    DISPATCHES_OP = auto()  # starts a single op from Python
    READS_VARIABLE = auto()
    ASSIGNS_VARIABLE = auto()
    LEAVES_PYTHON = auto()  # runs outside Python and takes its lock again at its end
    RUNS_KERNEL = auto()  # runs an op's kernel on the calling thread
    COMPILES_PROGRAM = auto()  # once for every program
    LOWERS_PROGRAM = auto()  # once for every program that is compiled or taken from a cache on disk
    WRITES_PROGRAM_CACHE = auto()  # puts a compiled program into a cache on disk
    COMPILES_FRAME = auto()  # once for every Python function that is compiled
    BLOCKING_COPY = auto()  # returns when a device is done
    LAUNCHES_GRAPH = auto()
    TAKES_MEMORY = auto()  # takes or gives back a device's memory, and stops the device for that
    COPIES = auto()
    MAY_BLOCK = auto()  # copies or waits


class CodeTrait(IntFlag):
    """What a recorded Python call is."""

    IS_CODE = auto()  # runs Python code, and is no built-in function
    OF_USER = auto()  # of a file that belongs to no library
    IS_NATIVE = auto()  # of a library that computes outside Python
    READS_FILE = auto()
    WAITS_FOR_DEVICE = auto()  # nothing but the Python call shows the wait


class InputTrait(IntFlag):
    """What serves input: stages of a pipeline, and loaders."""

    FROM_PYTHON = auto()  # a stage whose elements a Python generator makes
    PARALLEL = auto()  # a stage that works on several elements at a time
    READS_AHEAD = auto()  # a stage that makes reading run ahead
    READS_FILE = auto()
    FOR_DEVICE = auto()  # fetches from a host's pipeline for a device
    SINGLE_PROCESS = auto()  # a loader that makes items in the calls
    MULTI_PROCESS = auto()  # a loader with worker processes
    STARTS_LOADER = auto()
    STARTS_PROCESS = auto()
    PINS_MEMORY = auto()  # copies a batch to memory that a device can read


class KernelTrait(IntFlag):
    """What a kernel or a copy on a device does."""

    REORDERS = auto()  # brings data into another order, and computes nothing
    COPIES = auto()  # copies or joins, and computes nothing
    WIDE_PRODUCT = auto()  # a product or convolution in 32 bits or more
    FROM_PAGEABLE = auto()  # copies from memory that is not pinned
