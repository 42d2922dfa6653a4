"""PyTorch: `optimizer.step()`, whatever the optimizer; without one, the batches of a DataLoader."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import LOADED, Listener, OptimizerCalls, StepMethod, StepSource, Undo, serial


def install(torch: ModuleType, listener: Listener) -> Undo:
    """Watches all optimizers and loaders from now on."""
    undo_optimizers = _watch_optimizers(torch.optim.Optimizer, listener)
    undo_loaders = _watch_loaders(torch, listener)

    def undo() -> None:
        undo_optimizers()
        undo_loaders()

    return undo


def _watch_optimizers(optimizer: Any, listener: Listener) -> Undo:
    """Watches `step` of every class of optimizer, those that exist already included.

    A step has to end after `optimizer.step()` has returned.  PyTorch's own post hooks run inside the range that its
    profiler records for that call, so that a step which ends there cuts the range in two.  PyTorch wraps the `step` of
    a class when its first object is made, by `profile_hook_step`; the watch goes around that wrapper.
    """
    calls = OptimizerCalls(listener, "one per optimizer.step() of PyTorch")
    profile_hook_step = optimizer.profile_hook_step
    plain: dict[Any, StepMethod] = {}  # PyTorch's wrapper of each class that existed before

    def hook_and_watch(function: StepMethod) -> StepMethod:
        return calls.watch(profile_hook_step(function))

    for kind in _find_subclasses(optimizer):
        step = vars(kind).get("step")
        if getattr(step, "hooked", False):
            plain[kind] = step
            kind.step = calls.watch(step)
    optimizer.profile_hook_step = staticmethod(hook_and_watch)

    def undo() -> None:
        optimizer.profile_hook_step = staticmethod(profile_hook_step)
        calls.active = False  # for classes that were wrapped meanwhile
        for kind, step in plain.items():
            kind.step = step

    return undo


def _find_subclasses(kind: Any) -> Iterator[Any]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _find_subclasses(subclass)


def _watch_loaders(torch: ModuleType, listener: Listener) -> Undo:
    """Watches the batches of each loop over a DataLoader, as long as the program has no optimizer: one with an
    optimizer also reads data for other purposes, such as evaluation."""
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    fetch, optimizer = iterator.__next__, torch.optim.Optimizer
    trains = threading.Event()
    prepare = optimizer.__init__

    @functools.wraps(prepare)
    def prepare_and_note(self: Any, *args: Any, **kwargs: Any) -> None:
        trains.set()
        prepare(self, *args, **kwargs)

    @functools.wraps(fetch)
    def fetch_and_report(self: Any) -> Any:
        if listener.active and not trains.is_set():
            if hasattr(self, "_stepscope"):
                listener.end_step(StepSource(LOADED, "one per batch of a DataLoader", self._stepscope))
            else:  # the time before the first batch is not a step
                self._stepscope = serial()
        return fetch(self)

    optimizer.__init__, iterator.__next__ = prepare_and_note, fetch_and_report

    def undo() -> None:
        optimizer.__init__, iterator.__next__ = prepare, fetch

    return undo
