"""PyTorch: `optimizer.step()`, whatever the optimizer; without one of PyTorch's, `loss.backward()` or `autograd.grad`,
and without that the batches of a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from stepscope.capture.auto.finders import GradientCalls, OptimizerCalls, serial
from stepscope.capture.auto.step_loop import LOADED, OPTIMIZED, StepLoop, StepSource
from stepscope.capture.patches import Call, Undo, replace_attribute, undo_all, wrap_attribute


def install(torch: ModuleType, loop: StepLoop) -> Undo:
    """Watches all optimizers, gradients and loaders from now on.  A program that makes an optimizer is expected to step
    it: it also computes gradients and reads data for other purposes, such as evaluation."""

    def prepare_and_expect(prepare: Call, *args: Any, **kwargs: Any) -> None:
        loop.expect(OPTIMIZED)
        prepare(*args, **kwargs)

    return undo_all(
        _watch_optimizers(torch.optim.Optimizer, loop),
        wrap_attribute(torch.optim.Optimizer, "__init__", prepare_and_expect),
        _watch_gradients(torch.autograd, loop),
        _watch_loaders(torch, loop),
    )


def _watch_optimizers(optimizer: Any, loop: StepLoop) -> Undo:
    """Watches `step` of every class of optimizer, those that exist already included.

    A step has to end after `optimizer.step()` has returned.  PyTorch's own post hooks run inside the range that its
    profiler records for that call, so that a step which ends there cuts the range in two.  PyTorch wraps the `step` of
    a class when its first object is made, by `profile_hook_step`; the watch goes around that wrapper.
    """
    calls = OptimizerCalls(loop, "one per optimizer.step() of PyTorch")

    def watch_new_classes(profile_hook_step: Callable[[Call], Call]) -> Any:
        return staticmethod(lambda function: calls.watch(profile_hook_step(function)))

    undos = [
        replace_attribute(kind, "step", calls.watch)
        for kind in _find_subclasses(optimizer)
        if getattr(vars(kind).get("step"), "hooked", False)
    ]
    undos.append(replace_attribute(optimizer, "profile_hook_step", watch_new_classes))
    return undo_all(*undos, calls.end)


def _find_subclasses(kind: Any) -> Iterator[Any]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _find_subclasses(subclass)


def _watch_gradients(autograd: Any, loop: StepLoop) -> Undo:
    """Watches the calls that compute gradients, but for those whose gradients are differentiated again."""
    calls = GradientCalls(loop, "torch", lambda named: not named.get("create_graph"))
    return undo_all(
        wrap_attribute(autograd, "backward", calls.watch("one per backward() of PyTorch")),
        wrap_attribute(autograd, "grad", calls.watch("one per autograd.grad() of PyTorch")),
    )


def _watch_loaders(torch: ModuleType, loop: StepLoop) -> Undo:
    """Watches the batches of each loop over a DataLoader."""

    def fetch_and_report(fetch: Call, self: Any) -> Any:
        if loop.active:
            if hasattr(self, "_stepscope"):
                loop.end_step(StepSource(LOADED, "one per batch of a DataLoader", self._stepscope))
            else:  # the time before the first batch is not a step
                self._stepscope = serial()
        return fetch(self)

    return wrap_attribute(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", fetch_and_report)
