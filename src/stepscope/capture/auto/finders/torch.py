"""PyTorch: `optimizer.step()`, whatever the optimizer; without one of PyTorch's, `loss.backward()` or `autograd.grad`,
and without that the batches of a DataLoader."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import (
    LOADED,
    GradientCalls,
    Listener,
    OptimizerCalls,
    StepMethod,
    StepSource,
    Undo,
    serial,
)


def install(torch: ModuleType, listener: Listener) -> Undo:
    """Watches all optimizers, gradients and loaders from now on."""
    undo_optimizers = _watch_optimizers(torch.optim.Optimizer, listener)
    is_unknown, undo_making = _watch_making(torch.optim.Optimizer)
    undo_gradients = _watch_gradients(torch.autograd, listener, is_unknown)
    undo_loaders = _watch_loaders(torch, listener, is_unknown)

    def undo() -> None:
        undo_loaders()
        undo_gradients()
        undo_making()
        undo_optimizers()

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


def _watch_making(optimizer: Any) -> tuple[Callable[[], bool], Undo]:
    """Whether the program has made no optimizer so far: its calls would be the steps, and one with an optimizer also
    computes gradients and reads data for other purposes, such as evaluation."""
    made = threading.Event()
    prepare = optimizer.__init__

    @functools.wraps(prepare)
    def prepare_and_note(self: Any, *args: Any, **kwargs: Any) -> None:
        made.set()
        prepare(self, *args, **kwargs)

    optimizer.__init__ = prepare_and_note

    def undo() -> None:
        optimizer.__init__ = prepare

    return lambda: not made.is_set(), undo


def _watch_gradients(autograd: Any, listener: Listener, is_unknown: Callable[[], bool]) -> Undo:
    """Watches the calls that compute gradients, but for those whose gradients are differentiated again."""
    calls = GradientCalls(listener, "torch")
    backward, grad = autograd.backward, autograd.grad

    def counts(*_: object, create_graph: bool = False, **__: object) -> bool:
        return is_unknown() and not create_graph

    autograd.backward = calls.watch(backward, "one per backward() of PyTorch", counts)
    autograd.grad = calls.watch(grad, "one per autograd.grad() of PyTorch", counts)

    def undo() -> None:
        autograd.backward, autograd.grad = backward, grad

    return undo


def _watch_loaders(torch: ModuleType, listener: Listener, is_unknown: Callable[[], bool]) -> Undo:
    """Watches the batches of each loop over a DataLoader."""
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    fetch = iterator.__next__

    @functools.wraps(fetch)
    def fetch_and_report(self: Any) -> Any:
        if listener.active and is_unknown():
            if hasattr(self, "_stepscope"):
                listener.end_step(StepSource(LOADED, "one per batch of a DataLoader", self._stepscope))
            else:  # the time before the first batch is not a step
                self._stepscope = serial()
        return fetch(self)

    iterator.__next__ = fetch_and_report

    def undo() -> None:
        iterator.__next__ = fetch

    return undo
