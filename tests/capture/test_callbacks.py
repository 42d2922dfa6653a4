"""Callbacks: small trainers that call the hooks in the documented order.

The real ones are in `tests/truth/test_real_libraries.py`.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import stepscope as profiler
from stepscope.capture.callbacks.batches import parse_batches
from stepscope.capture.schedules import Action


def recorded(profile_batch) -> list[int]:
    schedule = parse_batches(profile_batch)
    return [step for step in range(30) if schedule and schedule(step) is not Action.NONE]


@pytest.mark.parametrize(
    ("profile_batch", "expected"),
    [
        (3, [3]),
        ((2, 4), [2, 3, 4]),
        ([2, 4], [2, 3, 4]),
        ("10,12", [10, 11, 12]),
        ("10, 12", [10, 11, 12]),
        ("7", [7]),
        (0, []),
        ("0", []),
        ((0, 0), []),
        ((0, 2), [1, 2]),
    ],
    ids=str,
)
def test_batches_are_named_as_for_tensorboards_callback(profile_batch, expected):
    assert recorded(profile_batch) == expected


@pytest.mark.parametrize("profile_batch", [-1, (4, 2), "a,b", "1,2,3", None, (1,)[:0], float("inf")], ids=str)
def test_what_names_no_batches_is_reported_and_profiles_none(profile_batch):
    assert recorded(profile_batch) == []
    assert "does not name batches" in str(profiler.last_error())


class LightningTrainer:
    """Calls the hooks as Lightning's fit loop does."""

    is_last_batch = False

    def __init__(self, callback) -> None:
        self.callback = callback

    def fit(self, epochs: int, batches: int, fails_at: int | None = None) -> None:
        try:
            for epoch in range(epochs):
                for batch in range(batches):
                    self.is_last_batch = batch == batches - 1
                    self.callback.on_train_batch_start(self, None, None, batch)
                    if epoch * batches + batch == fails_at:
                        raise KeyError("of the model")
                    self.callback.on_train_batch_end(self, None, None, None, batch)
        except KeyError as error:
            self.callback.on_exception(self, None, error)
            raise
        self.callback.on_train_end(self, None)


def test_lightning_batches_are_steps_from_end_to_end_within_an_epoch(fake_recorder):
    LightningTrainer(profiler.lightning.ProfilerCallback("logs", (2, 4))).fit(epochs=2, batches=3)

    #                    the second and the third batch of the first epoch; the first of the second epoch
    assert fake_recorder.said() == "start mark-2 end-2 mark-3 end-3 mark-4 end-4 save"


def test_lightning_training_that_fails_saves_what_there_is(fake_recorder):
    callback = profiler.lightning.ProfilerCallback("logs", (2, 9))
    with pytest.raises(KeyError, match="of the model"):
        LightningTrainer(callback).fit(epochs=1, batches=9, fails_at=4)

    assert fake_recorder.said() == "start mark-2 end-2 mark-3 end-3 mark-4 end-4 mark-5 save"
    assert str(callback.path) == "profile-1"


def test_a_schedule_may_choose_the_batches(fake_recorder):
    callback = profiler.lightning.ProfilerCallback("logs", schedule=profiler.schedule(wait=2, active=1, repeat=1))
    LightningTrainer(callback).fit(epochs=1, batches=4)

    assert fake_recorder.said() == "start mark-2 end-2 save"


class HuggingFaceTrainer:
    """Calls the hooks as the inner loop of `transformers.Trainer` does."""

    def __init__(self, callback) -> None:
        self.callback = callback

    def train(self, epochs: int, steps: int, evaluate_at: int | None = None) -> None:
        state = SimpleNamespace(epoch=0.0, global_step=0)
        for epoch in range(epochs):
            for step in range(steps):
                control = SimpleNamespace(should_training_stop=False, should_evaluate=False)
                self.callback.on_step_begin(None, state, control, model=None)
                state.global_step += 1
                state.epoch = epoch + (step + 1) / steps
                control.should_evaluate = state.global_step == evaluate_at
                self.callback.on_step_end(None, state, control, model=None)
        self.callback.on_train_end(None, state, control, model=None)


def test_hugging_face_steps_are_steps_from_end_to_end_within_an_epoch(fake_recorder):
    HuggingFaceTrainer(profiler.huggingface.ProfilerCallback("logs", "2,4")).train(epochs=2, steps=3)

    assert fake_recorder.said() == "start mark-2 end-2 mark-3 end-3 mark-4 end-4 save"


def test_an_evaluation_belongs_to_no_step(fake_recorder):
    callback = profiler.huggingface.ProfilerCallback("logs", "2,3")
    begins = []
    callback._steps.start_step = lambda begin=callback._steps.start_step: (
        begins.append(callback._steps.number),
        begin(),
    )
    HuggingFaceTrainer(callback).train(epochs=1, steps=4, evaluate_at=2)

    # Step 3 begins with its batch, once: not with the end of step 2, after which the evaluation comes.
    assert begins == [1, 2, 2, 3, 4, 4]


def test_a_capture_that_cannot_start_does_not_reach_the_trainer(fake_recorder):
    fake_recorder.fails = True

    LightningTrainer(profiler.lightning.ProfilerCallback("logs", (2, 4))).fit(epochs=1, batches=5)
    HuggingFaceTrainer(profiler.huggingface.ProfilerCallback("logs", (2, 4))).train(epochs=1, steps=5)

    assert set(fake_recorder.words) == {"refuse"}
    assert profiler.last_error() is not None
