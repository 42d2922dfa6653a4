"""Puts a call around a function of the program or of a framework, and takes it off again.

`wrap_attribute` is for functions that are called by one name.  To change one that anybody may hold, by whatever name,
`swap_code` gives it other code for a while: nobody is affected once that is back.  Anything else, such as a method in
C, is replaced where it hangs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

Call = Callable[..., Any]
Change = Callable[[Call], Call]
Undo = Callable[[], object]

_CALL = "stands for the call"


def _template(*args: Any, **kwargs: Any) -> Any:
    call: Any = "stands for the call"
    return call(*args, **kwargs)


def replace_attribute(owner: Any, name: str, make: Change) -> Undo:
    """Puts what `make` makes of it in place of what hangs at an object, a class or a module.

    Returns:
        What puts the original back.  If somebody else has replaced it once more since, it does nothing.
    """
    is_own, kept = name in vars(owner), vars(owner).get(name)
    changed = make(getattr(owner, name))
    setattr(owner, name, changed)

    def undo() -> None:
        if vars(owner).get(name) is not changed:
            return
        if is_own:
            setattr(owner, name, kept)
        else:
            delattr(owner, name)

    return undo


def wrap_attribute(owner: Any, name: str, around: Call) -> Undo:
    """As `replace_attribute`; `around` is called in place of the original, with that before the arguments."""

    def wrap(original: Call) -> Call:
        @functools.wraps(original)
        def call_around(*args: Any, **kwargs: Any) -> Any:
            return around(original, *args, **kwargs)

        return call_around

    return replace_attribute(owner, name, wrap)


def undo_all(*undos: Undo) -> Undo:
    """What undoes several changes, in this order."""

    def undo() -> None:
        for each in undos:
            each()

    return undo


def swap_code(function: FunctionType, change: Change) -> Undo:
    """Makes calls of a function calls of what `change` makes of it."""
    original = function.__code__
    twin = FunctionType(original, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    changed = _code_that_calls(change(twin), original)
    function.__code__ = changed

    def undo() -> None:
        if function.__code__ is changed:
            function.__code__ = original

    return undo


def _code_that_calls(call: Call, original: CodeType) -> CodeType:
    """The code of a function that only calls; a function takes other code only with as many free variables.

    What needs nothing from around it is its own code: it saves a call.
    """
    template = call.__code__ if type(call) is FunctionType and not call.__closure__ else _template.__code__
    return template.replace(
        co_consts=tuple(call if constant == _CALL else constant for constant in template.co_consts),
        co_freevars=original.co_freevars,
        co_filename=original.co_filename,
        co_firstlineno=original.co_firstlineno,
        co_name=original.co_name,
        co_qualname=original.co_qualname,
    )


def swap_attribute(owner: Any, name: str, change: Change) -> Undo:
    """As `replace_attribute`; what is not called stays as it is."""

    def wrap(original: Any) -> Any:
        is_plain = isinstance(owner, type) or isinstance(original, BuiltinFunctionType)
        return change(original) if is_plain else Wrapped(original, change(original))

    return replace_attribute(owner, name, wrap)


class Wrapped:
    """Calls something in place of a callable, and is that callable for every other use.

    Args:
        original: the callable.
        call: what is called.
    """

    def __init__(self, original: Any, call: Call) -> None:
        self._original, self._call = original, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls what was put in its place."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)
