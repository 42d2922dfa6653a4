"""Keras 3, on every backend: the batches of `fit`, reported by the list that calls the callbacks; and the updates of
its optimizers in a loop of the program, where they run at once and are not only traced."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import OptimizerCalls
from stepscope.capture.auto.step_loop import FITTED, StepLoop, StepSource
from stepscope.capture.patches import Call, Undo, undo_all, wrap_attribute

BATCH = StepSource(rank=FITTED, name="one per batch of Keras' fit")


def install(keras: ModuleType, loop: StepLoop) -> Undo:
    """Watches all `fit` calls from now on."""

    def begin_and_report(begin: Call, self: Any, batch: int, logs: Any = None) -> None:
        if loop.active:
            loop.start_step(BATCH)
        begin(self, batch, logs)

    def end_and_report(end: Call, self: Any, batch: int, logs: Any = None) -> None:
        end(self, batch, logs)
        if loop.active:
            from stepscope.capture.callbacks.keras import another_follows

            loop.end_step(BATCH, another_follows(batch, self.params))

    hooks = keras.callbacks.CallbackList
    return undo_all(
        wrap_attribute(hooks, "on_train_batch_begin", begin_and_report),
        wrap_attribute(hooks, "on_train_batch_end", end_and_report),
        _watch_optimizers(keras, loop),
    )


def _watch_optimizers(keras: ModuleType, loop: StepLoop) -> Undo:
    """Watches `apply`, which every other way to update variables calls."""
    home = next(kind for kind in keras.optimizers.Optimizer.__mro__ if "apply" in vars(kind))
    calls = OptimizerCalls(loop, "one per update of Keras' optimizer")

    def apply_and_report(apply: Call, *args: Any, **kwargs: Any) -> Any:
        if loop.active and not _is_traced():
            return calls.call(apply, *args, **kwargs)
        return apply(*args, **kwargs)

    return undo_all(wrap_attribute(home, "apply", apply_and_report), calls.end)


def _is_traced() -> bool:
    """Whether the framework records what is called now, to run it later."""
    with suppress(Exception):  # internals that have moved
        tensorflow: Any = sys.modules.get("tensorflow")
        if tensorflow is not None and not tensorflow.executing_eagerly():
            return True
        return bool(importlib.import_module("keras.src.backend.common.stateless_scope").in_stateless_scope())
    return False
