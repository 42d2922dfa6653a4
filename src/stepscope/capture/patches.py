"""Sees or changes calls of functions of the program or of a framework, and undoes that again.

`observe_attribute` only sees them: the function stays the one that it was, or, where Python calls it past every place
to look, a stand-in from C hangs there, which is equal to it and shows in no traceback.  `wrap_attribute` hangs such a
stand-in that calls something else.  To change a function that anybody may hold, by whatever name, `swap_code` gives it
other code for a while: nobody is affected once that is back.

`ImportHook` calls back when a module has been imported, without importing it and without slowing down any other import.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from stepscope.capture.report import NeverRaise
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


# ---- imports ---------------------------------------------------------------------------------------------------------

Callback = Callable[[ModuleType], object]


class ImportHook:
    """A finder at the front of `sys.meta_path`.  It finds nothing itself: it asks the other finders, and watches.

    Args:
        wanted: the full name of a module -> what to call with it, once, when its code has run.
        on_start: called with the name when such an import starts.
    """

    def __init__(self, wanted: Mapping[str, Callback], on_start: Callable[[str], object] = lambda name: None) -> None:
        self._wanted = dict(wanted)
        self._on_start = on_start

    def install(self) -> None:
        """Watches from now on; calls back at once for modules that are imported already."""
        for name in [name for name in self._wanted if _is_complete(sys.modules.get(name))]:
            self._call_back(name)
        if self._wanted:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Ends the watch."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a wanted module from the other finders, with a loader that calls back; None for all others."""
        if name not in self._wanted:
            return None
        spec = self._find_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._on_start(name)
            self._wrap_loader(spec)
        return spec

    def _find_by_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = (
                None if finder is self else getattr(finder, "find_spec", None)
            )  # Python skips finders without it, too
            spec: ModuleSpec | None = find and find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _wrap_loader(self, spec: ModuleSpec) -> None:
        """Replaces the loader's method and not the loader, since other code may ask that for data and source."""
        loader: Any = spec.loader
        load = loader.exec_module

        def put_back(*_: object) -> bool:
            del loader.exec_module  # before the module runs: the loader is one of its attributes
            return True

        def call_back(*_: object) -> None:
            self._call_back(spec.name)

        with suppress(AttributeError):  # a loader that is a class or has slots: the framework is not watched
            if "exec_module" not in vars(loader):
                loader.exec_module = observe.stand_in(load, put_back, call_back, bool)

    def _call_back(self, name: str) -> None:
        callback = self._wanted.pop(name, None)
        if callback is None:
            return
        with NeverRaise(f"watching {name}", strict=False):
            callback(sys.modules[name])


def _is_complete(module: ModuleType | None) -> bool:
    """True if a module is imported and its code has finished."""
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
