"""JAX: the calls of the jitted function with the most arrays; those it gives back, as an update does, count again.

Of a program that jits nothing, the gradients that it computes are the steps.

A function that is jitted anew in each step is another object each time, and still the same step: functions with one
code are one source if the later was made after the earlier had been called.  Two that are made first, such as both
halves of a GAN by one factory, are two.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from stepscope.capture.patches import Observer, Undo, observe_attribute, undo_all
from stepscope.capture.report import Suppressed
from stepscope.capture.steps.finding import CompiledCalls, GradientCalls, next_number
from stepscope.capture.steps.step_loop import StepLoop
from stepscope.kernels import observe

# Between the program and the function that makes a jitted one.
_WAY = {"jax._src.api", "jax._src.api_util", "jax._src.pjit", "jax._src.pmap", "jax._src.traceback_util"}
# What jax.grad and jax.value_and_grad call first, once each, by release; inside of a trace they are part of a program.
_STARTS_OF_GRADIENTS = ("argnums_partial2", "argnums_partial")
_MOST_SIZES = 10_000
_DEEPEST = 20  # functions around functions


def install(jax: ModuleType, loop: StepLoop) -> Undo:
    """Watches the functions that the program jits from now on."""
    home = importlib.import_module("jax._src.pjit")
    jitted = JittedCalls(loop)
    undos = [observe_attribute(home, "_cpp_pjit", MadeFunctions(jitted)), jitted.end]
    api, core = importlib.import_module("jax._src.api"), importlib.import_module("jax._src.core")
    starts = next((name for name in _STARTS_OF_GRADIENTS if hasattr(api, name)), None)
    if starts is not None and hasattr(core, "trace_state_clean"):
        gradients = GradientCalls(
            loop, "jax", lambda _: "one per computation of gradients", lambda _: bool(core.trace_state_clean())
        )
        undos.append(observe_attribute(api, starts, gradients))
    if hasattr(home, "_infer_params"):  # else no function is known to be larger than another
        undos.append(observe_attribute(home, "_infer_params", TracedFunctions(jitted)))
    return undo_all(*undos)


class JittedCalls(CompiledCalls):
    """Reports the calls of jitted functions.  They stay what JAX has made: only the way in which they are called leads
    through here.

    Attributes:
        sizes: by the id of the function that was jitted, how many arrays it takes and updates, and how many of these
            it updates.
    """

    def __init__(self, loop: StepLoop) -> None:
        super().__init__(loop)
        self.sizes: dict[int, tuple[int, int]] = {}
        self._kinds: set[type] = set()
        self._keys: dict[int, tuple[int, CodeType | None]] = {}  # by address: a number, and its code until it is called
        self._called: dict[CodeType, int] = {}  # the number of the functions with that code that were called

    def watch(self, function: Any) -> None:
        """Watches one more function."""
        if observe.observe_member(function, self.before, self.after, self.failed):
            self._kinds.add(type(function))
            if len(self._keys) >= _MOST_SIZES:
                self._keys.clear()
            code = _code_of(getattr(function, "_fun", None))
            known = None if code is None else self._called.get(code)
            self._keys[id(function)] = (next_number() if known is None else known, code)

    def end(self) -> None:
        """Watches none any more."""
        for kind in self._kinds:
            observe.end_observing_members(kind)

    def before(self, function: Any, args: tuple[Any, ...]) -> object:
        """A call starts."""
        return self.enter(function) if self._loop.active else None

    def report(self, function: Any) -> None:
        """It has returned."""
        name = f"one per call of the jitted function {getattr(function, '__name__', 'without a name')}"
        key, code = self._keys.get(id(function), (id(function), None))
        if code is not None:  # at its first call
            self._called.setdefault(code, key)
            self._keys[id(function)] = key, None
        self.end_step(name, key, *self.sizes.get(id(getattr(function, "_fun", None)), (0, 0)))


class MadeFunctions(Observer):
    """Has the functions watched that the program jits; JAX jits many of its own."""

    def __init__(self, jitted: JittedCalls) -> None:
        self._jitted = jitted

    def before(self, make: object, args: tuple[Any, ...]) -> object:
        """A function is jitted."""
        return True

    def after(self, state: object, function: Any) -> None:
        """It has been jitted."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in _WAY:
            frame = frame.f_back
        if frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] != "jax":
            self._jitted.watch(function)


class TracedFunctions(Observer):
    """Notes the sizes of functions when JAX traces them.  Looking at the arguments of a call would run the program's
    code, as pytrees may be of its own types."""

    def __init__(self, jitted: JittedCalls) -> None:
        self._sizes = jitted.sizes

    def before(self, infer: object, args: tuple[Any, ...]) -> object:
        """A function is traced, or its trace is looked up."""
        return id(args[0]) if args else None

    def after(self, function: int, result: Any) -> None:
        """It has been."""
        with Suppressed():  # another release of JAX
            if len(self._sizes) >= _MOST_SIZES:
                self._sizes.clear()
            traced = result[0]
            taken = [_form(each) for each in traced.in_avals]
            given = map(_form, traced.params["jaxpr"].out_avals)
            updated = sum(bool(form[0]) and form in taken for form in given)
            self._sizes[function] = len(taken) + updated, updated


def _code_of(function: object) -> CodeType | None:
    """The code of a function inside of all that wraps it; None for what is none.  It runs no code of the program."""
    for _ in range(_DEEPEST):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif not isinstance(function, FunctionType):
            return None
        elif "__wrapped__" in function.__dict__:
            function = function.__dict__["__wrapped__"]
        else:
            return function.__code__
    return None


def _form(array: Any) -> tuple[object, str]:
    return getattr(array, "shape", ()), str(getattr(array, "dtype", ""))
