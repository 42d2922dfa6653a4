"""What a program keeps: arrays that became more during a capture, what holds them, and the line that adds to it.

No profiler records arrays on a CPU, nor what refers to them.  So live arrays are counted when a capture starts and when
it ends, between steps: about 0.2 us of processor time for each object of the program.  Frameworks make arrays anew in
every step, so those of a type and shape count only by how many more there are.
"""

from __future__ import annotations

import dis
import gc
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from math import prod
from types import CodeType, FrameType, FunctionType
from typing import Any

from stepscope.capture.program_files import is_users_file
from stepscope.formats.spool.layout import StatValue

KEPT = "kept:"  # before the number of a group in the facts of a capture
_TYPES = ("torch.Tensor", "torch.nn.parameter.Parameter", "jaxlib._jax.ArrayImpl", "jaxlib.xla_extension.ArrayImpl",
          "tensorflow.python.framework.ops.EagerTensor")  # fmt: skip
_MOST_OBJECTS = 2_000_000  # half a second
_FEWEST = 5  # arrays more than before, of one type and shape
_MOST_GROUPS, _EXAMPLES = 8, 3
_LEVELS = 2  # a list may hold tuples or dicts of arrays
_CONTAINERS = (list, dict, tuple, set)
_ADDS = {"append", "add", "extend", "insert", "appendleft", "setdefault", "update"}
_Kind = tuple[str, tuple[int, ...]]


class KeptArrays:
    """Counts the arrays of a program at the start and the end of a capture."""

    def __init__(self) -> None:
        known = {
            name: getattr(sys.modules.get(name.rpartition(".")[0]), name.rpartition(".")[2], None) for name in _TYPES
        }
        self._types = {kind for kind in known.values() if kind is not None}
        self._before = {kind: {id(each) for each in arrays} for kind, arrays in self._arrays().items()}

    def find(self) -> dict[str, StatValue]:
        """What became more: for each type and shape `count, bytes, type, shape, holder, place, kind`, by tabs."""
        groups, found = self._arrays(), []
        more = Counter({kind: len(arrays) - len(self._before.get(kind, ())) for kind, arrays in groups.items()})
        for kind, count in more.most_common(_MOST_GROUPS):
            new = [array for array in groups[kind] if id(array) not in self._before.get(kind, ())][-_EXAMPLES:]
            if count >= _FEWEST and new:
                found.append((kind, count, new))
        groups.clear()  # it holds them, too
        return {f"{KEPT}{number}": _describe(*group) for number, group in enumerate(found)}

    def _arrays(self) -> dict[_Kind, list[Any]]:
        groups: dict[_Kind, list[Any]] = defaultdict(list)
        known = gc.get_objects() if self._types else []
        for each in known if len(known) < _MOST_OBJECTS else ():
            if type(each) in self._types and not (hasattr(each, "is_deleted") and each.is_deleted()):
                name = getattr(each.dtype, "name", str(each.dtype).removeprefix("torch."))
                groups[name, tuple(each.shape)].append(each)
        return groups


def _describe(kind: _Kind, count: int, arrays: list[Any]) -> str:
    size = getattr(arrays[-1], "nbytes", None) or prod(kind[1]) * arrays[-1].dtype.size  # TensorFlow says no bytes
    name, place = next(_find_holders(arrays), ("", ""))
    what = "arrays with their graph" if getattr(arrays[-1], "grad_fn", None) is not None else "arrays"
    return "\t".join((str(count), str(count * int(size)), kind[0], str(list(kind[1])), name, place, what))


def _find_holders(arrays: list[Any]) -> Iterator[tuple[str, str]]:
    """The names under which the program holds what refers to one of some arrays, each with the line that adds to it."""
    frames, held = [*_frames_of_program()], arrays
    for _ in range(_LEVELS):
        holders = (each for each in gc.get_referrers(*held) if isinstance(each, _CONTAINERS))
        held = [each for each in holders if each is not held and each is not arrays]
        for container in held:
            yield from _find_names(container, frames)


def _find_names(container: Any, frames: list[FrameType]) -> Iterator[tuple[str, str]]:
    """The names of a container, each with the line that adds to it."""
    spaces = [(each, each) for each in map(_take_locals, frames)]
    for owner in gc.get_referrers(container):
        names = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})
        spaces.append((names, names if isinstance(owner, dict) else dict(vars(type(owner)))))
    for names, around in spaces:
        if name := next((str(key) for key, each in [*names.items()] if each is container), ""):
            functions = [each.__code__ for each in [*around.values()] if isinstance(each, FunctionType)]
            yield name, _find_adding_line([*(frame.f_code for frame in frames), *functions], name)


def _take_locals(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame.  Before Python 3.13 the frame keeps what it was asked for, and so would the arrays."""
    names = dict(frame.f_locals)
    if frame.f_code.co_flags & CO_OPTIMIZED and sys.version_info < (3, 13):
        frame.f_locals.clear()
    return names


def _frames_of_program() -> Iterator[FrameType]:
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
