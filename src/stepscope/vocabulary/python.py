"""Python calls as profilers record them.

$train.py:12 step                          TensorFlow's and JAX's tracer: file, line, function
$scipy/ndimage/zoom.py:9 zoom              Stepscope's, for a library: its path below site-packages
$<unknown> read                            the same for a function without a file
model/train.py(12): step                   PyTorch's
<built-in method read of _io.BufferedReader object at 0x7f>
"""

from __future__ import annotations

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.libraries import is_anyones_file, is_framework_file, is_of_package
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import CallTrait, CodeTrait, InputTrait

KINDS: tuple[KindRule, ...] = ((r"\$", EventKind.PYTHON_CALL, Trait.NONE),)

_FRAME = Pattern(r"\$?[^<>]*\.py[(:]\d{1,9}")
_PLACE = Pattern(r"\$?(?P<file>[^<>]*\.py)[(:](?P<line>\d{1,9})\)?:? (?P<name>.*)")
_LIBRARY = Pattern(
    r"\$?(?:.*[/\\](?:site|dist)-packages[/\\]|(?:.*[/\\])?(?:torch|tensorflow|jax|keras|numpy|importlib|_?contextlib)[/\\.]"
    r"|.*[/\\]lib[/\\]python3\.\d+[/\\]|<|\$api\.py:\d+ (?:block_until_ready|try_to_block)$"
    # Traces of JAX and TensorFlow name files without their folder: these are their own.
    r"|\$(?:array_methods|pjit|ad|partial_eval|linear_util|traceback_utils?|mlir|lax_numpy|batching|api_util|tree_util"
    r"|pxla|ufuncs|source_info_util|polymorphic_function|tracing_compilation|concrete_function|atomic_function"
    r"|def_function|tensor_conversion_registry|function_type_utils)\.py:)"
)
# Names of functions that train, or that write something: these make no input.
_TRAINS = r"(?!.*[ .]\w*(?:train|test|eval|update|on_|optim|loss|backward|step|write|report|print|dump|log_)\w*$)"
_STARTS_THREADS = Pattern(r"\$(?:threading|thread)\.py:\d{1,9} ")
_TRAINING_FUNCTION = Pattern(r"(?i).*(?:train|update|grad|fit|optim|step)")


def starts_threads(frame: str) -> bool:
    """True for the functions of Python that start a thread, or the task of a pool.

    >>> starts_threads("$threading.py:988 _bootstrap"), starts_threads("$train.py:8 load")
    (True, False)
    """
    return _STARTS_THREADS.match(frame) is not None


def is_frame(name: str) -> bool:
    """True for a recorded Python call, by the form of its name."""
    return name.startswith("$") or "): " in name


def is_of_user(frame: str) -> bool:
    """True for a frame of a file that belongs to no library, as far as its name says.

    >>> is_of_user("train.py(12): step"), is_of_user("/usr/lib/python3.11/site-packages/torch/nn/x.py(3): f")
    (True, False)
    >>> is_of_user("scipy/ndimage/x.py(3): zoom"), is_of_user("$pjit.py:3 f"), is_of_user("$train.py:3 step")
    (False, False, True)
    """
    if _FRAME.match(frame) is None or _LIBRARY.match(frame) is not None:
        return False
    file = place_of(frame)[1] or ""
    without_folder = frame.startswith("$") and "/" not in file
    return not (is_framework_file(file.removeprefix("$")) if without_folder else is_of_package(file))


def may_be_library(frame: str) -> bool:
    """True for a frame of a file name without a folder that frameworks have as well as programs."""
    return frame.startswith("$") and is_anyones_file(place_of(frame)[1] or "")


CODE_OF_MODULE = "<module>"  # how Python names code outside of any function


def place_of(frame: str) -> tuple[str, str | None, int | None]:
    """The function, file and line of a recorded Python call; its whole text and None if it has no file.

    >>> place_of("$train.py:9 __getitem__"), place_of("model/train.py(12): step")
    (('__getitem__', 'train.py', 9), ('step', 'model/train.py', 12))
    """
    found = _PLACE.match(frame)
    return (found["name"], found["file"], int(found["line"])) if found else (frame, None, None)


def is_training_function(name: str) -> bool:
    """True for the name of a training function, or of a program compiled from one."""
    return _TRAINING_FUNCTION.match(name) is not None


NAMES: tuple[NameTable, ...] = (
    # Functions whose name, the part after the last space, says what they do.
    NameTable(
        applies=is_frame,
        rules=(
            (
                CallTrait.SAVES_STATE,
                r".*[ .](?:\w*(?:save(?!d)|checkpoint|ckpt|snapshot|serialize)\w*|to_bytes)$|.*pickle\w* \w*dumps?$"
                r"|.*(?:orbax|checkpoint)\w*/",
            ),
            (
                CallTrait.MAKES_INPUT,
                rf"{_TRAINS}.*[ .](?:__next__|__getitem__|\w*collate\w*|\w*augment\w*|\w*token\w*|\w*preprocess\w*"
                r"|\w*(?:batch|batches|dataset|loader|examples?|samples?|records?|images?|inputs?)"
                r"|\w*(?:load|read|decode|fetch)_\w+)$"
                r"|.*(?:torch/utils/data|/grain/|tensorflow_datasets)",
            ),
            (
                CallTrait.READS_VALUE,
                r".*[ .](?:_value|item|_item|tolist|device_get|__float__|__int__|__bool__|__array__)$",
            ),
            (CallTrait.WAITS, r".*[ .](?:block_until_ready|try_to_block|synchronize)$"),
        ),
    ),
    NameTable(rules=((CodeTrait.IS_CODE, r"\$.*\.py:\d+ |.*\.py\(\d+\): "),)),
    NameTable(rules=((CodeTrait.OF_USER, is_of_user),)),
    NameTable(rules=((CodeTrait.MAY_BE_LIBRARY, may_be_library),)),
    NameTable(rules=((CodeTrait.PART_OF_FUNCTION, r".* <(?:genexpr|listcomp|dictcomp|setcomp)>$"),)),
    NameTable(
        rules=(
            (CodeTrait.IMPORTS, r"\$?<frozen importlib"),
            (
                CodeTrait.READS_FILE,
                r".*[ .](?:fromfile|open|readinto|readlines?|read|read_array\w*|imread|mmap|load)$"
                r"|<built-in (?:function (?:fromfile|open)"
                r"|method read\w* of _io\.(?:Buffered\w+|FileIO|TextIOWrapper)\b.*)>$",
            ),
            (
                CodeTrait.IS_NATIVE,
                r"\$(?:numpy|<unknown>|scipy|PIL|cv2|_imaging)\b|.*/(?:numpy|scipy|PIL|cv2|skimage)/",
            ),
            (
                CodeTrait.SLEEPS,
                r"(?:\$(?:time|select|_?socket|_ssl|<unknown>) |<built-in (?:function|method) )"
                r"(?:sleep|recv\w*|select|poll|accept|connect|acquire)\b",
            ),
        )
    ),
    NameTable(rules=((InputTrait.STARTS_PROCESS, r"(?:.*/)?multiprocessing/process\.py\(\d+\): start$"),)),
)
