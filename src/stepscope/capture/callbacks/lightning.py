"""PyTorch Lightning, under either of its names.

Lightning calls the hooks of a callback by name and expects all of them, so the class derives from Lightning's own
callback if that is installed.  Nothing else of Lightning is used: any trainer with the same hooks works.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from stepscope.capture.callbacks.batches import BatchCallback

_HOMES = ("lightning.pytorch", "pytorch_lightning")


def _lightning_callback() -> type[Any]:
    """Lightning's base class: of the package that is imported, else of one that is installed, else `object`."""
    imported = [home for home in _HOMES if home in sys.modules]
    installed = [home for home in _HOMES if importlib.util.find_spec(home.partition(".")[0])]
    for home in imported + installed:
        base: type[Any] = importlib.import_module(home).Callback
        return base
    return object


class ProfilerCallback(BatchCallback, _lightning_callback()):  # type: ignore[misc]
    """Profiles batches of `Trainer.fit`, and marks each of them as a step.

    Examples:
        >>> Trainer(callbacks=[ProfilerCallback("logs", profile_batch=(10, 15))])  # doctest: +SKIP

    It never raises an exception into the trainer.

    Args:
        logdir: as for `stepscope.start`; also `log_dir`, as TensorBoard's callback spells it.
        profile_batch: which batches, counted from 1 over all epochs: 12 is one, (10, 15) or '10,15' are six, 0 is none.
        options: as for `stepscope.start`.
        schedule: instead of `profile_batch`, a schedule of batches, counted from 1; see `stepscope.schedule`.
    """

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """The trainer has a batch."""
        self.start_batch()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """The trainer is done with the batch."""
        self.end_batch(getattr(trainer, "is_last_batch", True) is False)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """A capture that still records is saved."""
        self.end_training()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """A capture that still records is saved."""
        self.end_training()
