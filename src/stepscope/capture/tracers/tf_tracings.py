"""Notes what `tf.function` traces, and which argument differs from those of the tracing before."""

from __future__ import annotations

import threading
from types import CodeType
from typing import Any

from stepscope.capture.frameworks import builds_tensorflow_graph
from stepscope.capture.places import find_place, is_users_file
from stepscope.capture.tracers.compiles import (
    AGAIN,
    FIRST,
    FUNCTION,
    VARIABLES,
    CompileNote,
    Tracings,
    cut_text,
    find_changes,
    find_function_code,
)
from stepscope.kernels.stacks import read_stack

_MOST_ARGUMENTS = 200  # of a nest, flattened
_seen: set[tuple[str, int]] = set()
"""File and line of all code that was traced in a capture of this process."""


class TensorFlowTracings(Tracings):
    """Watches the function that makes a graph of a Python function."""

    traces = "_create_concrete_function"

    def is_inside(self) -> bool:
        """Whether a graph is being built."""
        return builds_tensorflow_graph()

    def describe(self, begin_ns: int, args: tuple[Any, ...]) -> CompileNote | None:
        """Beside the tracing before, which TensorFlow keeps."""
        function_type, _, _, options = args
        if options.scope_type.name == "NO_SCOPE":  # TensorFlow's own, such as that which sets variables
            return None
        code = find_function_code(options.python_function)
        earlier = list(options.function_cache.values()) if options.function_cache is not None else []
        changes = find_changes(_arguments(earlier[-1].function_type), _arguments(function_type)) if earlier else ()
        makes_no_variables = options.scope_type.name == "NO_VARIABLE_CREATION"
        why = _find_reason(code, bool(earlier), makes_no_variables and not changes)
        return CompileNote(str(options.name), _place_of(code), begin_ns, self._clock(), 0, why, changes)


def _find_reason(code: CodeType | None, has_earlier: bool, is_second: bool) -> str:
    key = (code.co_filename, code.co_firstlineno) if code is not None else None
    was_seen = key in _seen
    if key is not None:
        _seen.add(key)
    if has_earlier:
        return VARIABLES if is_second else AGAIN
    return FUNCTION if was_seen else FIRST


def _place_of(code: CodeType | None) -> str:
    """Where the function is, if it is the user's; else the line of the user's code that calls it."""
    if code is not None and is_users_file(code.co_filename):
        return f"{code.co_filename}:{code.co_firstlineno}"
    place = find_place(read_stack(threading.get_ident()))
    return f"{place.file}:{place.line}" if place is not None and is_users_file(place.file) else ""


def _arguments(function_type: Any) -> dict[str, str]:
    """Each argument, nests flattened, with its type and shape or its value."""
    found: dict[str, str] = {}
    for name, parameter in function_type.parameters.items():
        _describe(name, parameter.type_constraint, found)
    return found


def _describe(name: str, kind: Any, found: dict[str, str]) -> None:
    if len(found) >= _MOST_ARGUMENTS:
        return
    mapping, components = getattr(kind, "mapping", None), getattr(kind, "components", None)
    if isinstance(mapping, dict):
        for key, value in mapping.items():
            _describe(f"{name}[{key!r}]", value, found)
    elif isinstance(components, tuple):
        for index, value in enumerate(components):
            _describe(f"{name}[{index}]", value, found)
    else:
        found[name] = cut_text(_describe_leaf(kind))


def _describe_leaf(kind: Any) -> str:
    """`float32[4,?]` for a tensor, the value itself for a Python value."""
    shape, dtype = getattr(kind, "shape", None), getattr(kind, "dtype", None)
    if dtype is not None and shape is not None:
        sizes = "..." if shape.rank is None else ",".join("?" if size is None else str(size) for size in shape)
        return f"{dtype.name}[{sizes}]"
    if hasattr(kind, "value"):
        return repr(kind.value)
    return str(kind)
