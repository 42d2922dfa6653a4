"""Keras 3, on every backend."""

from __future__ import annotations

from typing import Any

import keras

from stepscope.capture.callbacks.batches import BatchCallback
from stepscope.capture.steps.keras import another_follows


class ProfilerCallback(BatchCallback, keras.callbacks.Callback):  # type: ignore[misc]
    """Profiles batches of `fit`, and marks each of them as a step.

    Examples:
        >>> model.fit(data, callbacks=[ProfilerCallback("logs", profile_batch=(10, 15))])  # doctest: +SKIP

    It works with TensorFlow, JAX and PyTorch as Keras' backend.  It never raises an exception into `fit`.

    Args:
        logdir: as for `stepscope.start`; also `log_dir`, as TensorBoard's callback spells it.
        profile_batch: which batches, counted from 1 over all epochs: 12 is one, (10, 15) or '10,15' are six, both ends
            included, 0 is none.  Leave the first batches out: they compile.
        options: as for `stepscope.start`.
        schedule: instead of `profile_batch`, a schedule of batches, counted from 1; see `stepscope.schedule`.
    """

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Keras has a batch."""
        self.start_batch()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """The optimizer has taken its step."""
        self.end_batch(another_follows(batch, self.params))

    def on_train_end(self, logs: Any = None) -> None:
        """A capture that still records is saved."""
        self.end_training()
