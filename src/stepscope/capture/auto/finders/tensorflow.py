"""TensorFlow without Keras' fit: the calls of the largest `tf.function`, or else the gradients that a tape computes."""

from __future__ import annotations

import functools
from contextlib import suppress
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import Calls, GradientCalls, serial
from stepscope.capture.auto.step_loop import StepLoop
from stepscope.capture.patches import Call, Undo, undo_all, wrap_attribute


def install(tensorflow: ModuleType, loop: StepLoop) -> Undo:
    """Watches all functions from now on, those that exist already included."""
    calls = Calls(loop)

    def call_and_report(call: Call, self: Any, *args: Any, **kwargs: Any) -> Any:
        if not loop.active:
            return call(self, *args, **kwargs)
        if not hasattr(self, "_stepscope"):
            self._stepscope = serial()
        name = f"one per call of the tf.function {getattr(self, '_name', None) or 'without a name'}"
        return calls.watch(
            functools.partial(call, self, *args, **kwargs), name, self._stepscope, lambda: _count_operations(self)
        )

    gradients = GradientCalls(loop, "tensorflow", lambda _: tensorflow.executing_eagerly())
    return undo_all(
        wrap_attribute(type(tensorflow.function(lambda: None)), "__call__", call_and_report),
        wrap_attribute(tensorflow.GradientTape, "gradient", gradients.watch("one per gradient() of a tape")),
    )


def _count_operations(function: Any) -> int:
    """How many operations the largest graph of a function has; 0 if TensorFlow's internals have changed."""
    known: int = getattr(function, "_stepscope_size", 0)
    with suppress(Exception):
        if not known:
            graphs = [concrete.graph for concrete in function._list_all_concrete_functions()]
            known = function._stepscope_size = max(len(graph.get_operations()) for graph in graphs)
    return known
