"""The traits that a name can have, one class per subject.  `lookup.has_trait` finds them."""

from __future__ import annotations

from enum import IntFlag, auto


class OpTrait(IntFlag):
    """What an op of a framework, or of a compiled program, does."""

    MOVES_DATA = auto()  # only moves or sets data, and computes nothing
    CONVERTS = auto()  # to another type or device
    MULTIPLIES = auto()  # products, convolutions and decompositions, which make up a forward pass
    OF_GRADIENT = auto()  # computes the gradient of an op that multiplies
    FIRST_OF_STEP = auto()  # an op that takes a batch: its shapes change with those of the input
    MAKES_RESULT = auto()  # an elementwise op that allocates a tensor for its result
    MAKES_TENSOR = auto()  # creates a tensor, or changes its type
    LIFTS_VALUES = auto()  # creates a tensor from Python numbers
    DETACHES = auto()
    DETACHES_IN_PLACE = auto()
    SETS_STORAGE = auto()  # gives a tensor existing memory, as unpickling does
    COPIES_OUT = auto()  # occurs between parameters that are copied out of the framework
    ADDS_GRADIENT = auto()  # adds to the gradient of a parameter
    SOFTMAX = auto()
    BATCHED_PRODUCT = auto()
    CALLS_PYTHON = auto()  # runs a Python function from a graph
    CALLS_BACK = auto()  # runs a Python function from a compiled program
    READS_FILE = auto()
    IS_RANDOM = auto()
    COMPARES_VALUES = auto()  # reads a value for a comparison
    SIZED_BY_DATA = auto()  # the size of the result depends on the data
    COPIES_AND_WAITS = auto()  # waits for a device if it copies from one
    ONLY_ALLOCATES = auto()
    WRITES_VARIABLE = auto()  # works on a whole variable, whatever the batch size
    OF_DEVICE_LIBRARY = auto()  # computes on a device only, as its library or backend does


class PurposeTrait(IntFlag):
    """What tells what the work around an op is for."""

    ADDS_IN_PLACE = auto()
    CHECKS_NUMBERS = auto()  # looks for NaN or infinity
    ANSWERS_CHECK = auto()  # sums such a check up, and reads its result
    IS_LOSS = auto()
    PICKS_CLASS = auto()  # finds the largest of some scores
    COMPARES_LABELS = auto()  # elementwise, for equality
    MAKES_ONE_HOT = auto()
    LOOKS_UP = auto()  # takes rows of a table by their numbers
    POINTWISE = auto()  # computes each number of its result from those at the same place
    SPREADS_ROWS = auto()  # writes the gradient of a whole table from those of the rows that were taken
    ZEROES_GRADIENTS = auto()  # a call of an optimizer


class SetUpTrait(IntFlag):
    """What makes, or begins, something that a run needs once, or once per epoch."""

    DRAWS_ORDER = auto()  # of all samples of a data set
    PART_OF_DRAWING = auto()  # draws the seed for that, or makes the order a list
    MAKES_PIPELINE = auto()  # a dataset of tf.data, or an iterator over one
    BEGINS_PIPELINE = auto()
    RELEASES_TENSOR = auto()  # also an iterator, whose threads it waits for
    RUNS_LOOP = auto()  # a library's call that goes through all batches
    MAKES_LOADER = auto()
    MAKES_OPTIMIZER = auto()
    MAKES_MODULE = auto()
    MAKES_THREADS = auto()
    WALKS_MODULE = auto()  # takes it apart into arrays, or puts it together again, in Python


class LayerTrait(IntFlag):
    """Which part of a layer an op is."""

    ADDS_BIAS = auto()  # in an op of its own
    NORMALIZES_BATCH = auto()  # batch normalization, forward


class CallTrait(IntFlag):
    """What a call on the host does: a Python function, a dispatch, or a call into a runtime."""

    SAVES_STATE = auto()
    MAKES_INPUT = auto()
    READS_VALUE = auto()  # reads a value from a tensor
    WAITS = auto()
    COPIES_IN = auto()  # creates an array of the framework from a foreign one
    DISPATCHES = auto()  # starts an op or a function from Python
    DISPATCHES_OP = auto()  # starts a single op from Python
    ASSIGNS_VARIABLE = auto()
    LEAVES_PYTHON = auto()  # releases Python's lock, and acquires it again at its end
    RUNS_KERNEL = auto()  # runs an op's kernel on the calling thread
    COMPILES_PROGRAM = auto()  # once per program
    LOWERS_PROGRAM = auto()  # once per program that is compiled or loaded from a cache on disk
    WRITES_PROGRAM_CACHE = auto()  # stores a compiled program in a cache on disk
    COMPILES_FRAME = auto()  # once per compiled Python function
    BLOCKING_COPY = auto()  # returns when a device is done
    LAUNCHES_GRAPH = auto()
    LAUNCHES_KERNEL = auto()
    LOADS_KERNELS = auto()  # the code of kernels, which the program brings along
    CAPTURES_GRAPH = auto()  # begins or ends the capture of a graph on its thread
    BEGINS_CAPTURE = auto()
    AWAITS_ALL = auto()  # waits for all work that was launched before
    RECORDS_EVENT = auto()  # marks a place in a stream that others can wait for
    STREAM_WAITS = auto()  # makes a stream wait for such a place; the host goes on
    TAKES_MEMORY = auto()  # allocates or frees device memory, and stops the device meanwhile
    COPIES = auto()
    CLEARS = auto()  # sets device memory
    MAY_BLOCK = auto()  # copies or waits
    STARTS_TO_WAIT = auto()  # a mark: its thread waits from here on, for as long as nothing else is recorded on it


class CodeTrait(IntFlag):
    """What a recorded Python call is."""

    IS_CODE = auto()  # runs Python code, and is not a built-in function
    OF_USER = auto()  # from a file outside of all libraries
    MAY_BE_LIBRARY = auto()  # of a file name that frameworks have as well as programs
    PART_OF_FUNCTION = auto()  # a comprehension: its time is that of the function around it
    IS_NATIVE = auto()  # from a library that computes outside of Python
    READS_FILE = auto()
    READS_DATA = auto()  # of a library that reads or decodes files, which no name of a common kind tells
    SLEEPS = auto()  # waits for something outside of the program, and uses no processor
    AWAITS_PEER = auto()  # waits until another process or machine asks or answers
    WAITS_FOR_DEVICE = auto()  # the only record of the wait
    IMPORTS = auto()  # Python's own code that imports a module
    BLOCKS = auto()  # waits for another thread of the program, in a lock or a queue
    OF_SAVER = auto()  # of a library's code that writes models


class InputTrait(IntFlag):
    """What a pipeline stage or a loader does to provide input."""

    FROM_PYTHON = auto()  # a stage whose elements come from a Python generator
    PARALLEL = auto()  # a stage that works on several elements at a time
    READS_AHEAD = auto()  # a stage that reads ahead
    READS_FILE = auto()
    FOR_DEVICE = auto()  # fetches from a host's pipeline for a device
    SINGLE_PROCESS = auto()  # a loader that makes items within the calls
    MULTI_PROCESS = auto()  # a loader with worker processes
    STARTS_LOADER = auto()
    ENDS_LOADER = auto()  # waits for the worker processes of a loader to end
    STARTS_PROCESS = auto()
    PINS_MEMORY = auto()  # copies a batch to pinned memory
    DECODES = auto()  # unpacks a compressed picture
    OF_KERAS = auto()  # the code of Keras that takes batches from a PyDataset
    MOVES_PIXELS = auto()  # flips, crops, pads or rotates, and computes nothing


class KernelTrait(IntFlag):
    """What a kernel or a copy on a device does."""

    REORDERS = auto()  # reorders data, and computes nothing
    COPIES = auto()  # copies or joins data, and computes nothing
    ELEMENTWISE = auto()  # of one elementwise op; its operands come from memory and its result goes there
    WIDE_PRODUCT = auto()  # a product or convolution in 32 bits or more
    FROM_PAGEABLE = auto()  # copies from memory that is not pinned
    TO_PAGEABLE = auto()
    MIGRATES = auto()  # pages of unified memory, which the driver moves when they are touched


class RangeTrait(IntFlag):
    """What a named range on a thread is."""

    UPDATES_MODEL = auto()  # the call in which an optimizer updates the parameters
    OF_FRAMEWORK = auto()  # named by a framework or its libraries
    OF_RECORDER = auto()  # the profiler itself: its start and its end
    OF_RUNTIME = auto()  # written in the way in which the runtimes of TensorFlow and JAX name their own work
