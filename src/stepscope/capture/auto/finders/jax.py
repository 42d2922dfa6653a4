"""JAX: the calls of the jitted function with the most arrays; those it gives back, as an update does, count again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import Calls, serial
from stepscope.capture.auto.step_loop import StepLoop
from stepscope.capture.patches import Call, Undo, undo_all, wrap_attribute


def install(jax: ModuleType, loop: StepLoop) -> Undo:
    """Watches the functions that are jitted from now on: those of the program, since JAX's own are jitted already."""
    calls = Calls(loop)
    leaves: Callable[[Any], list[Any]] = jax.tree_util.tree_leaves

    def transform_and_watch(transform: Call, *args: Any, **kwargs: Any) -> Any:
        made = transform(*args, **kwargs)
        if not hasattr(made, "lower"):  # jit(static_argnums=0) waits for the function
            return lambda function: WatchedFunction(made(function), calls, loop, leaves)
        return WatchedFunction(made, calls, loop, leaves)

    return undo_all(*(wrap_attribute(jax, name, transform_and_watch) for name in ("jit", "pmap")))


class WatchedFunction:
    """A jitted function that reports its calls; every other attribute is that of the function itself."""

    def __init__(self, function: Any, calls: Calls, loop: StepLoop, leaves: Callable[[Any], list[Any]]) -> None:
        # First: a function that JAX made of a watched one, such as its gradient, has that one's attributes.
        functools.update_wrapper(self, function)
        self._function = function
        self._calls = calls
        self._loop = loop
        self._leaves = leaves
        self._size: int | None = None
        self._serial = serial()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function and reports the call."""
        if not self._loop.active:
            return self._function(*args, **kwargs)
        call = functools.partial(self._function if self._size is not None else self._call_and_measure, *args, **kwargs)
        name = f"one per call of the jitted function {getattr(self._function, '__name__', 'without a name')}"
        return self._calls.watch(call, name, self._serial, lambda: self._size or 0)

    def _call_and_measure(self, *args: Any, **kwargs: Any) -> Any:
        taken = self._find_forms((args, kwargs))  # before the call, which may take their memory; numbers have no shape
        result = self._function(*args, **kwargs)
        self._size = len(taken) + sum(bool(form[0]) and form in taken for form in self._find_forms(result))
        return result

    def _find_forms(self, tree: object) -> list[tuple[object, str]]:
        with suppress(Exception):
            return [(getattr(leaf, "shape", ()), str(getattr(leaf, "dtype", ""))) for leaf in self._leaves(tree)]
        return []

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method, the function gets its instance."""
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are of the function itself."""
        return self._function.__reduce_ex__(protocol)

    def __hash__(self) -> int:
        return hash(self._function)

    def __eq__(self, other: object) -> bool:
        return bool(self._function == (other._function if isinstance(other, WatchedFunction) else other))

    def __repr__(self) -> str:
        return repr(self._function)

    # JAX looks for these two on the class.
    lower = property(lambda self: self._function.lower)
    trace = property(lambda self: self._function.trace)
