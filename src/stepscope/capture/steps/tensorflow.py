"""TensorFlow without Keras' fit: the calls of the largest `tf.function`, or else the gradients that a tape computes."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from stepscope.capture.patches import Undo, observe_attribute, undo_all
from stepscope.capture.report import Suppressed
from stepscope.capture.steps.finding import CompiledCalls, GradientCalls, Numbers
from stepscope.capture.steps.step_loop import StepLoop


def install(tensorflow: ModuleType, loop: StepLoop) -> Undo:
    """Watches all functions from now on, those that exist already included."""
    gradients = GradientCalls(
        loop,
        "tensorflow",
        lambda called: f"one per {called}() of a tape",
        lambda args: bool(tensorflow.executing_eagerly()),
    )
    eager = "tensorflow.python.eager."
    # Not the type of a function that is made here: TensorFlow numbers functions, and names the program's by that.
    functions = importlib.import_module(f"{eager}polymorphic_function.polymorphic_function").Function
    return undo_all(
        observe_attribute(functions, "__call__", FunctionCalls(loop), called_from_c=True),
        observe_attribute(importlib.import_module(f"{eager}imperative_grad"), "imperative_grad", gradients),
    )


class FunctionCalls(CompiledCalls):
    """Reports the calls of `tf.function`s."""

    def __init__(self, loop: StepLoop) -> None:
        super().__init__(loop)
        self._numbers = Numbers()
        self._sizes: dict[int, int] = {}  # number of a function -> how many operations it has

    def before(self, call: object, args: tuple[Any, ...]) -> object:
        """A call starts, of the function that is the first argument."""
        return self.enter(args[0]) if self._loop.active and args else None

    def report(self, function: Any) -> None:
        """It has returned."""
        number = self._numbers.assign(function)
        size = self._sizes[number] = self._sizes.get(number) or _count_operations(function)
        name = f"one per call of the tf.function {getattr(function, '_name', None) or 'without a name'}"
        self.end_step(name, number, size)


def _count_operations(function: Any) -> int:
    """How many operations the largest graph of a function has; 0 if TensorFlow's internals have changed."""
    with Suppressed():
        graphs = [concrete.graph for concrete in function._list_all_concrete_functions()]
        return max(len(graph.get_operations()) for graph in graphs)
    return 0
