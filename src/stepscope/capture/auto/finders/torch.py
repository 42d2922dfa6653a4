"""PyTorch: `optimizer.step()`, whatever the optimizer; without one, the batches of a DataLoader."""

from __future__ import annotations

import functools
import sys
import threading
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import LOADED, OPTIMIZED, Listener, Source, Undo, serial


def install(torch: ModuleType, listener: Listener) -> Undo:
    """Watches all optimizers and loaders from now on."""
    undo_optimizers = _watch_optimizers(torch, listener)
    undo_loaders = _watch_loaders(torch, listener)

    def undo() -> None:
        undo_optimizers()
        undo_loaders()

    return undo


def _watch_optimizers(torch: ModuleType, listener: Listener) -> Undo:
    """Of several optimizers in one loop, such as those of a GAN, the one that steps first counts the steps."""
    first: dict[int, int] = {}

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not listener.active:
            return
        thread = threading.get_ident()
        if first.setdefault(thread, id(optimizer)) == id(optimizer):
            listener.end(Source(OPTIMIZED, "optimizer.step() of PyTorch", thread))

    # The package hides the module behind the names that it takes from it.
    handle = sys.modules[torch.optim.Optimizer.__module__].register_optimizer_step_post_hook(stepped)
    undo: Undo = handle.remove
    return undo


def _watch_loaders(torch: ModuleType, listener: Listener) -> Undo:
    """The batches of each loop over a DataLoader, once PyTorch has none better: a program with an optimizer reads its
    data for other reasons, too."""
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    fetch, optimizer = iterator.__next__, torch.optim.Optimizer
    trains = threading.Event()
    prepare = optimizer.__init__

    @functools.wraps(prepare)
    def prepares(self: Any, *args: Any, **kwargs: Any) -> None:
        trains.set()
        prepare(self, *args, **kwargs)

    @functools.wraps(fetch)
    def fetches(self: Any) -> Any:
        if listener.active and not trains.is_set():
            if hasattr(self, "_stepscope"):
                listener.end(Source(LOADED, "batches of a DataLoader", self._stepscope))
            else:  # what came before the first batch is no step
                self._stepscope = serial()
        return fetch(self)

    optimizer.__init__, iterator.__next__ = prepares, fetches

    def undo() -> None:
        optimizer.__init__, iterator.__next__ = prepare, fetch

    return undo
