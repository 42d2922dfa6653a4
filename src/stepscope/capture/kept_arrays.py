"""What a program keeps: arrays that became more during a capture, what holds them, and the line that adds to it.

No profiler records arrays on a CPU, nor what refers to them.  So live arrays are counted when a capture starts and when
it ends, between steps: about 0.2 us of processor time for each object of the program.  Frameworks make arrays anew in
every step, so those of a type and shape count only by how many more there are, and only if that is more than twice
those of the start that are gone: a list made anew in each step, with another length, keeps nothing.
"""

from __future__ import annotations

import dis
import gc
import sys
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from inspect import CO_OPTIMIZED
from math import prod
from types import CodeType, FrameType, FunctionType
from typing import Any

from stepscope.capture.program_files import is_users_file
from stepscope.formats.spool.layout import StatValue

KEPT = "kept:"  # before the number of a group in the facts of a capture
TYPES = ("torch.Tensor", "torch.nn.parameter.Parameter", "jaxlib._jax.ArrayImpl", "jaxlib.xla_extension.ArrayImpl",
          "tensorflow.python.framework.ops.EagerTensor")  # fmt: skip
_MOST_OBJECTS = 2_000_000  # half a second
_FEWEST = 5  # arrays more than before, of one type and shape
_MOST_GROUPS, EXAMPLES = 8, 3
_LEVELS = 2  # a list may hold tuples or dicts of arrays
_CONTAINERS = (list, dict, tuple, set)
_ADDS = {"append", "add", "extend", "insert", "appendleft", "setdefault", "update"}
Kind = tuple[str, tuple[int, ...]]


class KeptArrays:
    """Counts the arrays of a program at the start and the end of a capture."""

    def __init__(self) -> None:
        self._types = find_types(TYPES)
        # By reference: the identity of an array that is gone is soon that of another.
        self._before = {kind: [weakref.ref(each) for each in arrays] for kind, arrays in self._arrays().items()}

    def find(self) -> dict[str, StatValue]:
        """What became more: for each type and shape `count, bytes, type, shape, holder, place, kind`, by tabs."""
        groups, found = self._arrays(), []
        more = Counter({kind: len(arrays) - len(self._before.get(kind, ())) for kind, arrays in groups.items()})
        for kind, count in more.most_common(_MOST_GROUPS):
            before = self._before.get(kind, [])
            left = {id(array) for each in before if (array := each()) is not None}
            new = [array for array in groups[kind] if id(array) not in left][-EXAMPLES:]
            if count >= _FEWEST and new and count > 2 * (len(before) - len(left)):
                found.append((kind, count, new))
        groups.clear()  # it holds them, too
        return {
            f"{KEPT}{number}": describe_group(describe_use(new[-1]), kind, count, count * count_bytes(new[-1]), new)
            for number, (kind, count, new) in enumerate(found)
        }

    def _arrays(self) -> dict[Kind, list[Any]]:
        groups: dict[Kind, list[Any]] = defaultdict(list)
        known = gc.get_objects() if self._types else []
        for each in known if len(known) < _MOST_OBJECTS else ():
            if type(each) in self._types and not (hasattr(each, "is_deleted") and each.is_deleted()):
                groups[kind_of(each)].append(each)
        return groups


def find_types(names: Iterable[str]) -> set[type]:
    """The types of these names that the program has imported."""
    parts = (name.rpartition(".") for name in names)
    known = (getattr(sys.modules.get(module), name, None) for module, _, name in parts)
    return {kind for kind in known if kind is not None}


def kind_of(array: Any) -> Kind:
    """An array's element type and shape."""
    return getattr(array.dtype, "name", str(array.dtype).removeprefix("torch.")), tuple(array.shape)


def count_bytes(array: Any) -> int:
    """How many bytes the elements of an array take; TensorFlow does not say it."""
    return int(getattr(array, "nbytes", None) or prod(array.shape) * getattr(array.dtype, "size", 0))


def describe_use(array: Any) -> str:
    """Whether an array keeps the graph that made it."""
    return "arrays with their graph" if getattr(array, "grad_fn", None) is not None else "arrays"


def describe_group(
    use: str, kind: Kind, count: int, size: int, examples: list[Any], dead: Sequence[FrameType] = ()
) -> str:
    """`count, bytes, type, shape, holder, place, kind` of arrays, by tabs.

    Args:
        use: what they are.
        size: bytes of all of them.
        examples: some of them; what holds them is looked for.
        dead: frames of the program that an exception has left.
    """
    name, place = next(_find_holders(examples, [*dead, *frames_of_program()]), ("", ""))
    return "\t".join((str(count), str(size), kind[0], str(list(kind[1])), name, place, use))


def _find_holders(arrays: list[Any], frames: list[FrameType]) -> Iterator[tuple[str, str]]:
    """The names under which the program holds what refers to one of some arrays, each with the line that adds to it;
    then the names of the arrays themselves."""
    held = arrays
    for _ in range(_LEVELS):
        holders = (each for each in gc.get_referrers(*held) if isinstance(each, _CONTAINERS))
        held = [each for each in (*holders, *_find_untracked(held)) if each is not held and each is not arrays]
        for container in held:
            yield from _find_names(container, frames)
    for array in arrays:
        yield from _find_names(array, frames)


def list_untracked(objects: Iterable[Any]) -> list[Any]:
    """Dicts and tuples that some objects of the garbage collector refer to, and that it does not know itself: those
    that hold nothing but arrays of NumPy, numbers and texts."""
    found = (each for each in gc.get_referents(*objects) if type(each) in (dict, tuple) and not gc.is_tracked(each))
    return [*{id(each): each for each in found}.values()]


def _find_untracked(held: list[Any]) -> list[Any]:
    if not held or gc.is_tracked(held[0]):
        return []
    wanted = {*map(id, held)}
    return [each for each in list_untracked(gc.get_objects()) if not wanted.isdisjoint(map(id, gc.get_referents(each)))]


def _find_names(held: Any, frames: list[FrameType]) -> Iterator[tuple[str, str]]:
    """The names of a container or an array, each with the line that adds to it, or sets it."""
    spaces = [(each, each) for each in map(take_locals, frames)]
    for owner in gc.get_referrers(held):
        names = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})
        spaces.append((names, names if isinstance(owner, dict) else dict(vars(type(owner)))))
    for names, around in spaces:
        found = (key for key, each in [*names.items()] if each is held and isinstance(key, str))
        if name := next(found, ""):
            functions = [each.__code__ for each in [*around.values()] if isinstance(each, FunctionType)]
            codes = [*(frame.f_code for frame in frames), *functions]
            find = _find_adding_line if isinstance(held, _CONTAINERS) else _find_setting_line
            yield name, find(codes, name)


def take_locals(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame.  Before Python 3.13 the frame keeps what it was asked for, and so would the arrays."""
    names = dict(frame.f_locals)
    if frame.f_code.co_flags & CO_OPTIMIZED and sys.version_info < (3, 13):
        frame.f_locals.clear()
    return names


def frames_of_program() -> Iterator[FrameType]:
    """The functions of the program that run now, on all threads."""
    for frame in sys._current_frames().values():
        at: FrameType | None = frame
        while at is not None:
            if is_users_file(at.f_code.co_filename):
                yield at
            at = at.f_back


def _find_adding_line(codes: list[CodeType], name: str) -> str:
    """`train.py:9`, the first line that adds to what has a name; empty if no code at hand does."""
    for code in codes:
        line, seen = code.co_firstlineno, 0
        for at, step in enumerate(dis.get_instructions(code)):
            line = (step.positions.lineno if step.positions else None) or line
            if step.argval == name and step.opname.startswith("LOAD_"):
                seen = at
            if seen and at - seen <= 2 and (step.argval in _ADDS or step.opname == "STORE_SUBSCR"):
                return f"{code.co_filename.rpartition('/')[2]}:{line}"
    return ""


def _find_setting_line(codes: list[CodeType], name: str) -> str:
    """`train.py:9`, the first line that gives something a name; empty if no code at hand does."""
    for code in codes:
        for step in dis.get_instructions(code):
            if step.argval == name and step.opname.startswith("STORE_") and step.positions:
                return f"{code.co_filename.rpartition('/')[2]}:{step.positions.lineno}"
    return ""
