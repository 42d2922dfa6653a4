"""Keras 3, on every backend: the batches of `fit`, reported by the list that calls the callbacks; and the updates of
its optimizers in a loop of the program, where they run at once and are not only traced."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from stepscope.capture.patches import Observer, Undo, observe_attribute, undo_all
from stepscope.capture.report import Suppressed
from stepscope.capture.steps.finding import OptimizerCalls
from stepscope.capture.steps.step_loop import FITTED, StepLoop, StepSource

BATCH = StepSource(rank=FITTED, name="one per batch of Keras' fit")


def install(keras: ModuleType, loop: StepLoop) -> Undo:
    """Watches all `fit` calls, and all optimizers, from now on."""
    hooks = keras.callbacks.CallbackList
    # Every other way to update variables calls `apply`.
    home = next(kind for kind in keras.optimizers.Optimizer.__mro__ if "apply" in vars(kind))
    return undo_all(
        observe_attribute(hooks, "on_train_batch_begin", BatchStarts(loop)),
        observe_attribute(hooks, "on_train_batch_end", BatchEnds(loop)),
        observe_attribute(home, "apply", Updates(loop, "one per update of Keras' optimizer")),
    )


class BatchStarts(Observer):
    """Reports the start of each batch, before the callbacks of the program know of it."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop

    def before(self, begin: object, args: tuple[Any, ...]) -> None:
        """The callbacks are called."""
        if self._loop.active:
            self._loop.start_step(BATCH)


class BatchEnds(Observer):
    """Reports the end of each batch, after the callbacks of the program."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop

    def before(self, end: object, args: tuple[Any, ...]) -> object:
        """The callbacks are called."""
        return args if self._loop.active else None

    def after(self, args: tuple[Any, ...], result: object) -> None:
        """They have been called."""
        self._loop.end_step(BATCH, len(args) < 2 or another_follows(args[1], args[0].params))


def another_follows(batch: int, params: dict[str, Any] | None) -> bool:
    """True if Keras is known to fetch another batch after `batch` of the same epoch, counted from 0."""
    steps: int | None = (params or {}).get("steps")
    return steps is not None and batch + 1 < steps


class Updates(OptimizerCalls):
    """Reports the updates of optimizers; of one that calls another, such as one that scales the loss, the outer."""

    def before(self, apply: object, args: tuple[Any, ...]) -> object:
        """An update starts."""
        return self.enter(args[0]) if self._loop.active and args and not _is_traced() else None


def _is_traced() -> bool:
    """Whether the framework records what is called now, to run it later."""
    with Suppressed():  # internals that have moved
        tensorflow: Any = sys.modules.get("tensorflow")
        if tensorflow is not None and not tensorflow.executing_eagerly():
            return True
        return bool(importlib.import_module("keras.src.backend.common.stateless_scope").in_stateless_scope())
    return False
