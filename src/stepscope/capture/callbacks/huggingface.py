"""Trainers of Hugging Face's `transformers`, and all others that call the same hooks, such as TRL's."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from stepscope.capture.callbacks.batches import BatchCallback

_HOME = "transformers.trainer_callback"


def _trainer_callback() -> type[Any]:
    """The base class with all the hooks that the trainer calls; `object` if `transformers` is not installed."""
    if importlib.util.find_spec(_HOME.partition(".")[0]) is None:
        return object
    base: type[Any] = importlib.import_module(_HOME).TrainerCallback
    return base


class ProfilerCallback(BatchCallback, _trainer_callback()):  # type: ignore[misc]
    """Profiles steps of `Trainer.train`, and marks each of them.

    Examples:
        >>> Trainer(model, args, callbacks=[ProfilerCallback("logs", profile_batch=(10, 15))])  # doctest: +SKIP

    A step is a step of the optimizer; with gradient accumulation it has several batches.  The callback never raises an
    exception into the trainer.

    Args:
        logdir: as for `stepscope.start`; also `log_dir`, as TensorBoard's callback spells it.
        profile_batch: which steps, counted from 1 over all epochs: 12 is one, (10, 15) or '10,15' are six, 0 is none.
        options: as for `stepscope.start`.
        schedule: instead of `profile_batch`, a schedule of steps, counted from 1; see `stepscope.schedule`.
    """

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The batches of a step are there."""
        self.start_batch()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The optimizer has taken its step."""
        self.end_batch(_another_follows(state, control))

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """A capture that still records is saved."""
        self.end_training()


def _another_follows(state: Any, control: Any) -> bool:
    """True if the trainer fetches another batch next: no epoch ends here, and no evaluation follows.  A checkpoint
    belongs to the step that waits for it."""
    epoch = getattr(state, "epoch", None)
    ends_epoch = epoch is None or abs(epoch - round(epoch)) < 1e-9
    stops = getattr(control, "should_training_stop", False) or getattr(control, "should_evaluate", False)
    return not (ends_epoch or stops)
