"""Keras 3: the batches of `fit`, on every backend, reported by the list that calls the callbacks."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import FITTED, Listener, Source, Undo

BATCH = Source(rank=FITTED, name="one per batch of Keras' fit")


def install(keras: ModuleType, listener: Listener) -> Undo:
    """Watches all `fit` calls from now on."""
    hooks = keras.callbacks.CallbackList
    begin, end = hooks.on_train_batch_begin, hooks.on_train_batch_end

    @functools.wraps(begin)
    def begin_and_report(self: Any, batch: int, logs: Any = None) -> None:
        if listener.active:
            listener.begin(BATCH)
        begin(self, batch, logs)

    @functools.wraps(end)
    def end_and_report(self: Any, batch: int, logs: Any = None) -> None:
        end(self, batch, logs)
        if listener.active:
            from stepscope.capture.callbacks.keras import another_follows

            listener.end(BATCH, another_follows(batch, self.params))

    hooks.on_train_batch_begin, hooks.on_train_batch_end = begin_and_report, end_and_report

    def undo() -> None:
        hooks.on_train_batch_begin, hooks.on_train_batch_end = begin, end

    return undo
