"""A program that runs out of memory: what it asked for, at which line, and what fills the memory at that moment.

Few profilers record what is in use, and a profile of some steps ends long before the memory is full.  So when an
exception says that memory is used up, what the program holds is counted: about a second, once.  Seen is what Python
objects hold: arrays, and long bytes and texts.  Results that only a graph of PyTorch keeps are not.
"""

from __future__ import annotations

import gc
import mmap
import re
import sys
import traceback
from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from stepscope.capture import cost
from stepscope.capture.kept_arrays import (
    EXAMPLES,
    TYPES,
    Kind,
    count_bytes,
    describe_group,
    find_holder,
    find_types,
    frames_of_program,
    kind_of,
    list_untracked,
    unseen,
)
from stepscope.capture.kept_arrays import describe_use as describe_array_use
from stepscope.capture.memory_use import describe_use, memory_in_use
from stepscope.capture.places import is_users_file
from stepscope.capture.report import NeverRaise
from stepscope.formats.spool.layout import StatValue
from stepscope.kernels.observe import read_locals
from stepscope.records import dataclass

FAILED = "the program ended with "  # before the name of an exception
FULL = "full:"  # before the number of a group in the facts of a capture
_MOST_GROUPS, _NAMED = 8, 3
_LEAST_BYTES = 1_000_000  # of a group: less than that fills no memory
_LONG = 10_000  # bytes of a text that is looked at
_OF_TORCH = ("parameters", "gradients", "state of the optimizer")
_PLAIN = (bytes, bytearray, str)
_UNTRACKED = ("numpy.ndarray", "tensorflow.python.ops.resource_variable_ops.ResourceVariable")
_MESSAGE = 300  # of the exception's: PyTorch goes on with advice about its settings
_WORDS = (
    *("out of memory", "resource_exhausted", "resource exhausted", "oom when allocating"),
    *("can't allocate memory", "cannot allocate memory"),  # PyTorch on a CPU, and the system's own words
)


_GENERATED = "__autograph_generated_file"  # what TensorFlow makes of a function, in a file that is gone later
_RESERVE_BYTES = 128 << 20  # looking through some millions of objects takes less
_reserve: list[mmap.mmap] = []


def reserve_memory() -> None:
    """Sets addresses aside, and no memory, for the count at the moment when no more can be had: a limit such as
    `ulimit -v` is one of addresses."""
    if not _reserve and hasattr(mmap, "PROT_READ"):
        with suppress(OSError):
            _reserve.append(mmap.mmap(-1, _RESERVE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ))


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception says that memory, of the host or of a device, is used up."""
    if error is None:
        return False
    if isinstance(error, MemoryError):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"OutOfMemoryError", "ResourceExhaustedError"}:
        return True
    if names & {"XlaRuntimeError", "JaxRuntimeError", "RuntimeError"}:
        with suppress(Exception):
            return any(word in str(error).lower() for word in _WORDS)
    return False


_ASKED = (
    re.compile(r"[Tt]ried to allocate (?P<amount>[\d.,]+ ?[KMGT]?i?B)"),  # PyTorch on a GPU
    re.compile(r"tried to allocate (?P<bytes>\d+) bytes"),  # PyTorch on a CPU
    re.compile(r"[Oo]ut of memory (?:while )?trying to allocate (?P<amount>[\d.,]+ ?[KMGT]?i?B|\d+ bytes)"),  # XLA
    re.compile(r"[Oo]ut of memory allocating (?P<bytes>\d+) bytes"),
    re.compile(r"Unable to allocate (?P<amount>[\d.,]+ ?[KMGT]?i?B)"),  # NumPy
    re.compile(r"OOM when allocating (?P<what>tensor with shape\[[\d,]*\] and type \w+)"),  # TensorFlow
)


_FREE = re.compile(r"of which (?P<amount>[\d.,]+ ?[KMGT]?i?B) is free")  # PyTorch on a GPU
_OP = re.compile(r"\{\{node (?P<node>[^}]+)\}\}|\[Op:(?P<op>\w+)\]")  # in messages of TensorFlow


def describe_request(error: BaseException) -> str:
    """How much was asked for, by its message, and the line of the program that asked; empty if neither is known.

    >>> describe_request(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."))
    'asked for 2.00 GiB'
    """
    found = next((match for pattern in _ASKED if (match := pattern.search(str(error)))), None)
    parts = found.groupdict() if found else {}
    size = _describe_size(int(parts["bytes"])) if parts.get("bytes") else parts.get("amount") or parts.get("what")
    line = _find_asking_line(error)
    return " ".join([*([f"asked for {size}"] if size else []), *([f"in {line}"] if line else [])])


def _find_asking_line(error: BaseException) -> str:
    """The innermost line of the user's own code that an exception passed: `load (train.py:12)`; empty if none."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_users_file(code.co_filename) and _GENERATED not in code.co_filename:
            place = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
            found = place if code.co_name == "<module>" else f"{code.co_qualname} ({place})"
        trace = trace.tb_next
    return found


# -- what fills the memory -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FullMemory:
    """What is known when a program runs out of memory.

    Attributes:
        sentence: what failed, what it asked for and where, and what holds most.
        facts: for each group of what is held `count, bytes, type, shape, holder, place, kind`, by tabs; most bytes
            first.
    """

    sentence: str
    facts: dict[str, StatValue]


def find_full_memory() -> FullMemory | None:
    """What the exception that passes here, or that has ended the program, says of memory; None for any other one.

    Once for an exception.
    """
    error: Any = sys.exception() or (None if hasattr(sys, "ps1") else getattr(sys, "last_value", None))
    if error is None or not is_out_of_memory(error) or describe_end(error):
        return None
    _reserve.clear()
    with NeverRaise("finding what fills the memory", strict=False), unseen():
        groups = _list_groups(error)
        facts: dict[str, StatValue] = {f"{FULL}{number}": text for number, text in enumerate(groups)}
        error._stepscope_sentence = _describe(error, groups)
        return FullMemory(error._stepscope_sentence, facts)
    return None


def describe_end(error: object) -> str:
    """The sentence that was made of an exception; empty if memory was not its reason."""
    return getattr(error, "_stepscope_sentence", "")


def describe_failure() -> str:
    """The exception that has ended the program, and its line; empty if none has, or if it was asked to end."""
    error: Any = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    if not isinstance(error, Exception):
        return ""
    with suppress(Exception):  # its text is the program's code
        lines = str(error).strip().splitlines()
        # TensorFlow begins with "in user code:" and shows the lines that it has traced; what failed comes last.
        said = (lines[-1 if lines[0].endswith(":") else 0] if lines else "").strip()[:_MESSAGE].rstrip(" .")
        line = _find_asking_line(error)
        return f"{FAILED}{type(error).__name__}{f' in {line}' if line else ''}{f': {said}' if said else ''}"
    return f"{FAILED}{type(error).__name__}"


def add_to_profile(path: Path, full: FullMemory) -> None:
    """Appends what filled the memory to a profile of the same program, which was written before that.

    Raises:
        OSError: it cannot be written.
    """
    from stepscope.formats.xspace.writer import planes_only
    from stepscope.model import TraceBuilder

    builder = TraceBuilder("")
    builder.plane(cost.PLANE, stats=full.facts)
    builder.recorder_messages.append(f"after this capture {full.sentence}")
    added = b"".join(planes_only(builder.build()))
    with path.open("ab") as file:
        file.write(added)


def _describe(error: BaseException, groups: list[str]) -> str:
    message = next(iter(str(error).strip().splitlines()), type(error).__name__)[:_MESSAGE].rstrip(" .")
    op = _OP.search(str(error))
    place = f" in {op['node'] or op['op']}" if op else ""
    used = {
        name: size for name, size in memory_in_use().items() if name in ("resident_bytes", "device_allocated_bytes")
    }
    asked = describe_request(error)
    held = [_describe_group(*text.split("\t")) for text in groups[:_NAMED]]
    most = f"; what holds most: {', '.join(held)}" if held else ""
    left = f"; free: {free['amount']}" if (free := _FREE.search(str(error))) else ""
    return f"the program ran out of memory{place}: {asked or message}; in use: {describe_use(used)}{left}{most}"


def _describe_group(count: str, size: str, data_type: str, shape: str, holder: str, place: str, kind: str) -> str:
    where = f" in `{holder}`{f' ({place})' if place else ''}" if holder else ""
    return f"{_describe_size(int(size))} of {kind}{where}"


def _describe_size(size: float) -> str:
    if size >= 1e12:
        return f"{size / 1e12:.2f} TB"
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _list_groups(error: BaseException) -> list[str]:
    """What the program holds, by use, type and shape; most bytes first."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    # The garbage collector does not know the variables of functions that still run.
    objects = gc.get_objects()  # not within another list, which it would then hold
    objects += map(read_locals, frames_of_program())
    uses = _find_uses_in_torch(objects)
    groups: dict[tuple[str, Kind], list[Any]] = defaultdict(list)
    for each in _list_held(objects):
        plain = type(each) in _PLAIN
        use = f"objects of {type(each).__name__}" if plain else uses.get(id(each)) or describe_array_use(each)
        groups[use, ("", ()) if plain else kind_of(each)].append(each)
    del objects
    sizes = {key: (len(held), sum(map(_count_bytes, held))) for key, held in groups.items()}
    largest = sorted((key for key in groups if sizes[key][1] >= _LEAST_BYTES), key=lambda key: -sizes[key][1])
    examples = [(key, groups[key][-EXAMPLES:]) for key in largest[:_MOST_GROUPS]]
    groups.clear()  # it holds them, too
    return [
        describe_group(kind, *sizes[use, kind], *(("", "") if use in _OF_TORCH else find_holder(some, frames)), use)
        for (use, kind), some in examples
    ]


def _list_held(objects: list[Any]) -> Iterator[Any]:
    """Arrays, and long bytes and texts, each memory once.

    Args:
        objects: those of the garbage collector.  Arrays of NumPy and plain bytes are none, but what refers to them is.
    """
    tracked, others, seen = find_types(TYPES), {*find_types(_UNTRACKED), *_PLAIN}, set[Hashable]()
    referents = (each for each in gc.get_referents(*objects, *list_untracked(objects)) if type(each) in others)
    for each in map(_find_owner, chain((each for each in objects if type(each) in tracked), referents)):
        is_long = type(each) not in _PLAIN or len(each) > _LONG
        if is_long and (storage := _find_storage(each)) not in seen:
            seen.add(storage)
            yield each


def _find_uses_in_torch(objects: list[Any]) -> dict[int, str]:
    """What tensors are for, by their ids: parameters, gradients, state of an optimizer."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "optim"):
        return {}
    uses: dict[int, str] = {}
    for each in objects:
        if issubclass(type(each), torch.nn.Parameter):
            uses |= {id(each): _OF_TORCH[0], id(each.grad): _OF_TORCH[1]}
        elif issubclass(type(each), torch.optim.Optimizer):
            states = (value for state in each.state.values() for value in state.values())
            uses |= {id(value): _OF_TORCH[2] for value in states}
    return uses


def _find_owner(each: Any) -> Any:
    """The array of NumPy that owns the memory of a view."""
    base = getattr(each, "base", None)
    while type(base) is type(each):
        each, base = base, getattr(base, "base", None)
    return each


def _find_storage(each: Any) -> Hashable:
    """What tensors share that are views of one another."""
    with suppress(Exception):  # no tensor, or one without memory of its own
        return int(each.untyped_storage().data_ptr())
    return ("object", id(each))


def _count_bytes(each: Any) -> int:
    if type(each) in _PLAIN:
        return sys.getsizeof(each)
    with suppress(Exception):
        return int(each.untyped_storage().nbytes())
    return count_bytes(each)
