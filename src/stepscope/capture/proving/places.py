"""Finds what the name of a place stands for in the running program.

data.py:prepare         a function of this file, also `data.py:Loader.fetch` or `data.py:31`, a line inside it
prepare                 a function of the program with this name
torch.Tensor.to         what hangs at this name
input                   a part: the functions in the table below that are imported
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from stepscope.capture.patches import Change, Undo, swap_attribute, swap_code
from stepscope.capture.places import is_users_file
from stepscope.capture.proving.changes import refuse_generator
from stepscope.errors import CaptureError
from stepscope.kernels.observe import divert_calls
from stepscope.kernels.stacks import list_objects
from stepscope.proof.parts import PARTS
from stepscope.records import dataclass

RESUMED: dict[CodeType, FunctionType] = {}
"""The function that takes each step of a generator, by the generator's code."""

_HOMES_OF_JITTED = ("jaxlib._jax", "jaxlib.xla_extension")  # the second before jaxlib 0.6

Install = Callable[[Change], Undo]


@dataclass(frozen=True)
class TargetFunction:
    """One function that belongs to a place.

    Attributes:
        name: as it is called.
        install: puts a change around it.
        file, line: where it is defined; None outside of Python.
    """

    name: str
    install: Install
    file: str | None = None
    line: int | None = None


def find_targets(place: str) -> list[TargetFunction]:
    """The functions that a place stands for.

    Raises:
        CaptureError: there is none, or it cannot be changed while it runs.
    """
    if place in PARTS:
        found = [target for name in PARTS[place] for target in find_attribute_targets(name)]
        if not found:
            raise CaptureError(f"no imported module belongs to {place}", hint="name the function, as FILE:FUNCTION")
        return found
    file, colon, name = place.rpartition(":")
    if not colon:
        found = list(find_attribute_targets(place)) or list(_function_targets("", place))
    else:
        found = list(_function_targets(file, name))
    if not found:
        raise CaptureError("there is no such function in this process", hint=_hint(name))
    return found


def find_why_not_called(targets: Sequence[TargetFunction]) -> CaptureError:
    """Why no step called a place: all of its functions run now, between two steps, or it is called at other times."""
    frame: FrameType | None = sys._getframe()
    running = set()
    while frame is not None:
        running.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))
        frame = frame.f_back
    if all((target.file, target.line) in running for target in targets):
        return CaptureError("holds the loop of the steps", hint="name a function that it calls")
    return CaptureError("it was never called in these steps")


def _hint(name: str) -> str:
    near = sorted(
        {each.__qualname__ for each in _functions() if is_users_file(each.__code__.co_filename)} - {"<module>"}
    )
    similar = [each for each in near if each.rpartition(".")[2].lower() == name.rpartition(".")[2].lower()]
    named = ", ".join((similar or near)[:6])
    return f"functions of the program: {named}" if named else "workers of a loader are other processes; try --at input"


def find_attribute_targets(dotted: str) -> Iterator[TargetFunction]:
    """What hangs at a dotted name, if its module is imported."""
    found = _look_up(dotted)
    if found is None:
        return
    owner, name, value = found
    function = value if isinstance(value, FunctionType) else getattr(value, "__func__", None)
    if isinstance(function, FunctionType):
        yield _function_target(function, dotted)
    elif callable(value):
        yield TargetFunction(dotted, functools.partial(_replace_attribute, owner, name))


def _replace_attribute(owner: Any, name: str, change: Change) -> Undo:
    try:
        return swap_attribute(owner, name, change)
    except (TypeError, AttributeError) as error:
        raise CaptureError(f"{name} cannot be changed: {error}") from error


def _look_up(dotted: str) -> tuple[Any, str, Any] | None:
    words = dotted.split(".")
    for count in range(len(words) - 1, 0, -1):
        owner: Any = sys.modules.get(".".join(words[:count]))
        if owner is None:
            continue
        try:
            for word in words[count:-1]:
                owner = getattr(owner, word)
            return owner, words[-1], getattr(owner, words[-1])
        except AttributeError:
            return None
    return None


def _function_target(function: FunctionType, name: str = "") -> TargetFunction:
    code = function.__code__
    called = RESUMED.get(code, function)

    def install(change: Change) -> Undo:
        refuse_generator(called)
        return swap_code(called, change)

    return TargetFunction(name or function.__qualname__, install, code.co_filename, code.co_firstlineno)


def _function_targets(file: str, name: str) -> Iterator[TargetFunction]:
    """The functions with this name, or around this line, of a file; of the program, if no file is named.

    A compiled function is changed where it is called: its code in Python runs once, when it is traced.
    """
    found = [each for each in _functions() if _is_called(each.__code__, file, name)]
    if name.isdigit():
        innermost = max((each.__code__.co_firstlineno for each in found), default=0)
        found = [each for each in found if each.__code__.co_firstlineno == innermost]
    codes = {id(each.__code__): each.__code__ for each in found}
    compiled = list(_compiled_targets(codes))
    traced = {id(code) for code, _ in compiled}
    yield from (target for _, target in compiled)
    yield from (_function_target(each) for each in found if id(each.__code__) not in traced)


def _functions() -> list[FunctionType]:
    """The functions that Python's collector knows, and those of modules and their classes, as a program may have frozen
    what the collector knew before."""
    found: dict[int, FunctionType] = {id(each): each for each in list_objects((FunctionType,))}
    if gc.get_freeze_count():
        values = [value for module in [*sys.modules.values()] for value in _own_values(module, ModuleType)]
        values += [member for value in values for member in _own_values(value, type)]
        values += [value.__func__ for value in values if type(value) is staticmethod or type(value) is classmethod]
        found |= {id(each): each for each in values if type(each) is FunctionType}
    return [*found.values()]


def _own_values(owner: object, kind: type) -> list[object]:
    """What the dictionary of a module or a class holds; nothing for what is of another kind.

    Asked of the type alone: `isinstance` and attributes of a stranger's object run the program's code, such as a
    warning about a deprecated name, or a module that loads itself when it is looked at.
    """
    if not issubclass(type(owner), kind):
        return []
    return [*kind.__dict__["__dict__"].__get__(owner).values()]


def _is_called(code: CodeType, file: str, name: str) -> bool:
    if not (is_file(code.co_filename, file) if file else is_users_file(code.co_filename)):
        return False
    if name.isdigit():
        lines = [line for _, _, line in code.co_lines() if line is not None]
        return bool(lines) and min(lines) <= int(name) <= max(lines)
    plain = code.co_qualname.replace(".<locals>", "")
    return plain == name or plain.endswith(f".{name}")


def has_workers() -> bool:
    """Whether a loader of PyTorch here has worker processes."""
    kind = getattr(sys.modules.get("torch.utils.data.dataloader"), "_MultiProcessingDataLoaderIter", None)
    return kind is not None and bool(list_objects((kind,)))


def is_file(path: str, wanted: str) -> bool:
    """Whether a file is the one that a place names; empty for any."""
    return not wanted or path == wanted or path.endswith(os.sep + wanted.lstrip("./"))


def _compiled_targets(codes: dict[int, CodeType]) -> Iterator[tuple[CodeType, TargetFunction]]:
    """The compiled functions, of JAX or TensorFlow, that were made of some code."""
    tensorflow = sys.modules.get("tensorflow")
    traced_type = type(tensorflow.function(lambda: None)) if tensorflow is not None else None
    jitted_type = next((sys.modules[name].PjitFunction for name in _HOMES_OF_JITTED if name in sys.modules), None)
    for each in list_objects(kind for kind in (jitted_type, traced_type) if kind is not None):
        if type(each) is jitted_type:
            install, made_of = functools.partial(_divert_calls, each), getattr(each, "__wrapped__", each)
        else:
            install, made_of = functools.partial(_replace_attribute, each, "_call"), each.python_function
        code = codes.get(id(getattr(inspect.unwrap(made_of), "__code__", None)))
        if code is not None:
            yield code, TargetFunction(code.co_name, install, code.co_filename, code.co_firstlineno)


def _divert_calls(function: Any, change: Change) -> Undo:
    undo = divert_calls(function, change)
    if undo is None:
        raise CaptureError(f"{getattr(function, '__name__', 'a jitted function')} cannot be changed where it is called")
    return undo
