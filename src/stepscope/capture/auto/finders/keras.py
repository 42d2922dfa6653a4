"""Keras 3, on every backend: the batches of `fit`, reported by the list that calls the callbacks; and the updates of
its optimizers in a loop of the program, where they run at once and are not only traced."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import Depth, OptimizerCalls
from stepscope.capture.auto.step_loop import FITTED, StepLoop, StepSource
from stepscope.capture.patches import Undo, observe_attribute, undo_all
from stepscope.capture.report import Suppressed

BATCH = StepSource(rank=FITTED, name="one per batch of Keras' fit")


def install(keras: ModuleType, loop: StepLoop) -> Undo:
    """Watches all `fit` calls, and all optimizers, from now on."""
    hooks = keras.callbacks.CallbackList
    # Every other way to update variables calls `apply`.
    home = next(kind for kind in keras.optimizers.Optimizer.__mro__ if "apply" in vars(kind))
    return undo_all(
        observe_attribute(hooks, "on_train_batch_begin", BatchStarts(loop)),
        observe_attribute(hooks, "on_train_batch_end", BatchEnds(loop)),
        observe_attribute(home, "apply", Updates(loop)),
    )


class BatchStarts:
    """Reports the start of each batch, before the callbacks of the program know of it."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop

    def before(self, begin: object, args: tuple[Any, ...]) -> object:
        """The callbacks are called."""
        if self._loop.active:
            self._loop.start_step(BATCH)
        return None

    def after(self, state: object, result: object) -> None:
        """They have been called: nothing is to be told."""

    def failed(self, state: object) -> None:
        """One of them has raised."""


class BatchEnds:
    """Reports the end of each batch, after the callbacks of the program."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop

    def before(self, end: object, args: tuple[Any, ...]) -> object:
        """The callbacks are called."""
        return args if self._loop.active else None

    def after(self, args: tuple[Any, ...], result: object) -> None:
        """They have been called."""
        from stepscope.capture.callbacks.keras import another_follows

        self._loop.end_step(BATCH, len(args) < 2 or another_follows(args[1], args[0].params))

    def failed(self, args: tuple[Any, ...]) -> None:
        """One of them has raised."""


class Updates:
    """Reports the updates of optimizers; of one that calls another, such as one that scales the loss, the outer."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop
        self._depth = Depth()
        self._calls = OptimizerCalls(loop, "one per update of Keras' optimizer")

    def before(self, apply: object, args: tuple[Any, ...]) -> object:
        """An update starts."""
        if not self._loop.active or not args or _is_traced():
            return None
        return self._depth.enter(), args[0]

    def after(self, state: tuple[int, object], result: object) -> None:
        """It has been made."""
        depth, optimizer = state
        self._depth.leave(depth)
        if depth == 0:
            self._calls.report(optimizer)

    def failed(self, state: tuple[int, object]) -> None:
        """It has raised."""
        self._depth.leave(state[0])


def _is_traced() -> bool:
    """Whether the framework records what is called now, to run it later."""
    with Suppressed():  # internals that have moved
        tensorflow: Any = sys.modules.get("tensorflow")
        if tensorflow is not None and not tensorflow.executing_eagerly():
            return True
        return bool(importlib.import_module("keras.src.backend.common.stateless_scope").in_stateless_scope())
    return False
