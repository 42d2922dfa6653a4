"""What the programs share: a generator that yields after each step, and `Model.fit`, each to run so many steps."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any


def scratch() -> str:
    """A folder for the program's own files."""
    return tempfile.mkdtemp(prefix="stepscope-bottleneck-")


def train_on(loss: Any, optimizer: Any) -> None:
    """An ordinary step of PyTorch: gradients of the loss, then the update."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


class Loop:
    """A program that yields after each step: a loop as users write it."""

    def __init__(self, steps: Iterator[None]) -> None:
        self._steps = steps

    def run(self, lead: int, count: int, window: AbstractContextManager[Any]) -> list[float]:
        """The times, in ms, of `count` steps inside the window, after `lead` untimed ones."""
        for _ in range(lead):
            next(self._steps)
        with window as after_step:
            return [self._time_step(after_step) for _ in range(count)]

    def _time_step(self, after_step: Callable[[], None] | None) -> float:
        start = time.perf_counter()
        next(self._steps)
        elapsed_ms = 1e3 * (time.perf_counter() - start)
        if after_step:
            after_step()  # the last one writes the trace
        return elapsed_ms


class Fit:
    """A program that calls `Model.fit`; a callback times the steps and records the window."""

    def __init__(self, model: Any, data: Any, callbacks: Sequence[Any] = ()) -> None:
        self._model, self._data, self._callbacks = model, data, callbacks

    def run(self, lead: int, count: int, window: AbstractContextManager[Any]) -> list[float]:
        """The times, in ms, of `count` steps inside the window, after `lead` untimed ones."""
        import keras

        ends: list[float] = []

        class Clock(keras.callbacks.Callback):  # type: ignore[misc]
            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                if batch == lead - 1:
                    window.__enter__()
                if batch >= lead - 1:
                    ends.append(time.perf_counter())
                if batch == lead + count - 1:
                    window.__exit__(None, None, None)

        callbacks = [*self._callbacks, Clock()]
        self._model.fit(self._data, epochs=1, steps_per_epoch=lead + count, verbose=0, callbacks=callbacks)
        return [1e3 * (later - earlier) for earlier, later in itertools.pairwise(ends)]
