"""Notes what `jax.jit` traces, and which argument differs from those of the tracing before.

A static argument is a part of what JAX compiles, and of no program: a profile has the shapes of arrays, and not that
`rate` was 0.1 and is 0.2 now.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from stepscope.capture.places import is_users_file
from stepscope.capture.tracers.compiles import (
    AGAIN,
    FIRST,
    FUNCTION,
    CompileNote,
    Tracings,
    cut_text,
    find_changes,
    find_function_code,
)

_MOST_ARGUMENTS = 200  # of all trees, flattened
_PLAIN = (bool, int, float, str, type(None))  # only of these a text is made: others may run the program's code
_seen: dict[CodeType, tuple[int, dict[str, str]]] = {}
"""By code that was traced in a capture of this process, the address of its function and the arguments."""


class JaxTracings(Tracings):
    """Watches the function that traces a jitted function."""

    traces = "_trace_for_jit"

    def is_inside(self) -> bool:
        """True where JAX does not say."""
        core: Any = sys.modules.get("jax._src.core")
        return core is None or not core.trace_state_clean()

    def describe(self, begin_ns: int, args: tuple[Any, ...]) -> CompileNote | None:
        """By the code of the function, which the program may wrap anew each time."""
        function, info, _, names, shapes, positional, keywords = args
        code = find_function_code(function)
        if code is None or not is_users_file(code.co_filename):
            return None
        given = _arguments(info, names, shapes, positional, keywords)
        number, before = _seen.get(code, (0, {}))
        _seen[code] = id(function), given
        changes = find_changes(before, given) if number else ()
        why = FIRST if not number else FUNCTION if id(function) != number and not changes else AGAIN
        place = f"{code.co_filename}:{code.co_firstlineno}"
        return CompileNote(code.co_name, place, begin_ns, self._clock(), 0, why, changes)


def _arguments(info: Any, names: Any, shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, str]:
    """The static arguments with their values, then each array with its type and shape."""
    signature = info.fun_signature
    known = list(signature.parameters) if signature is not None else []
    static = {known[at] if at < len(known) else f"argument {at}": args[at] for at in info.static_argnums
              if 0 <= at < len(args)}  # fmt: skip
    static |= {name: kwargs[name] for name in info.static_argnames if name in kwargs}
    found = {name: _describe(value) for name, value in static.items()}
    for name, shape in list(zip(names.arg_names or (), shapes, strict=False))[:_MOST_ARGUMENTS]:
        found[name] = f"{shape.dtype.name}[{','.join(map(str, shape.shape))}]"
    return found


def _describe(value: object) -> str:
    """The value where it is plain, else its type: a function has another address, which says no more than `another`."""
    if type(value) in _PLAIN:
        return cut_text(repr(value))
    if type(value) is tuple and all(type(each) in _PLAIN for each in value):
        return cut_text(repr(value))
    return f"a {type(value).__name__} at {id(value):#x}"
