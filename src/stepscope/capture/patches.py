"""Sees or changes calls of functions of the program or of a framework, and undoes that again.

`observe_attribute` only sees them: the function stays the one that it was, or, where Python calls it past every place
to look, a stand-in from C hangs there, which is equal to it and shows in no traceback.  `wrap_attribute` hangs such a
stand-in that calls something else.  To change a function that anybody may hold, by whatever name, `swap_code` gives it
other code for a while: nobody is affected once that is back.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

from stepscope.kernels import observe

Call = Callable[..., Any]
Change = Callable[[Call], Call]
Undo = Callable[[], object]


class Observer:
    """Is told of calls.  None may raise, except to end the program; what the program has for a signal may, anywhere."""

    def before(self, function: Any, args: tuple[Any, ...], /) -> Any:
        """A call starts, with these arguments by position; None if its end is of no interest."""
        return None

    def after(self, state: Any, result: Any, /) -> object:
        """The call has returned; `state` is what `before` answered."""

    def failed(self, state: Any, /) -> object:
        """The call has raised."""


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
    return replace_attribute(owner, name, lambda original: observe.stand_in(original, around=around))


def observe_attribute(owner: Any, name: str, observer: Observer, called_from_c: bool = False) -> Undo:
    """Tells an observer of the calls of a function that hangs at a class or a module.

    Args:
        called_from_c: it is called for an operator or a call of an object, and not by its name; or it is in C, and
            called once or twice.
    """
    function = vars(owner).get(name, getattr(owner, name))
    hooks = observer.before, observer.after, observer.failed
    is_function = type(function) is FunctionType
    # Before Python 3.12, the interpreter calls functions past us, and those in C from the first call after a loop on.
    sees_all = called_from_c or (is_function and sys.version_info >= (3, 12))
    if sees_all and observe.observe_calls(function, *hooks):
        return functools.partial(observe.end_observing, function)
    return replace_attribute(owner, name, lambda original: observe.stand_in(original, *hooks))


def add_default(function: FunctionType, call: Call) -> Undo:
    """Makes a method without arguments that does nothing call something with its object.

    What is called is a default of an argument that the method gets: compilers that read code follow it, as they follow
    no constant of the code that is not plain.
    """
    original, defaults = function.__code__, function.__defaults__
    changed = _call_default.__code__.replace(
        co_filename=original.co_filename,
        co_firstlineno=original.co_firstlineno,
        co_name=original.co_name,
        co_qualname=original.co_qualname,
    )
    function.__code__, function.__defaults__ = changed, (call,)

    def undo() -> None:
        if function.__code__ is changed:
            function.__code__, function.__defaults__ = original, defaults

    return undo


def _call_default(self: Any, call: Any = None) -> None:
    call(self)


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
