"""PyTorch: `optimizer.step()`, whatever the optimizer; without one of PyTorch's, `loss.backward()` or `autograd.grad`,
and without that the batches of a DataLoader."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any

from stepscope.capture.patches import ImportHook, Observer, Undo, add_default, observe_attribute, undo_all
from stepscope.capture.steps.finding import GradientCalls, Numbers, OptimizerCalls
from stepscope.capture.steps.step_loop import LOADED, OPTIMIZED, StepLoop, StepSource
from stepscope.kernels import observe


def install(torch: ModuleType, loop: StepLoop) -> Undo:
    """Watches all optimizers, gradients and loaders from now on.  A program that makes an optimizer is expected to step
    it: it also computes gradients and reads data for other purposes, such as evaluation."""
    made = MadeOptimizers(torch.optim.Optimizer, loop)

    def counts(args: tuple[Any, ...]) -> bool:
        made.expect()
        return not _is_differentiated(args)

    gradients = GradientCalls(loop, "torch", _name_gradients, counts)
    return undo_all(
        _watch_optimizers(torch.optim.Optimizer, loop),
        # `backward` and `grad` both call it; these two are known by identity to PyTorch's compilers.
        observe_attribute(torch.autograd, "_engine_run_backward", gradients),
        observe_attribute(
            torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", BatchFinder(loop, made), called_from_c=True
        ),
    )


class MadeOptimizers:
    """Has the loop expect an optimizer's steps, if the program has made one: PyTorch puts its own function around the
    `step` of a class then."""

    def __init__(self, optimizer: Any, loop: StepLoop) -> None:
        self._optimizer = optimizer
        self._loop = loop
        self._found = False

    def expect(self) -> None:
        """Looks for one, before something less certain is reported."""
        if not self._found and any(map(_is_used, _find_subclasses(self._optimizer))):
            self._found = True
            self._loop.expect(OPTIMIZED)


def runs_untrained_model() -> bool:
    """Whether a module is being called on this thread, in a program that has made no optimizer so far."""
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    optimizer = getattr(sys.modules.get("torch.optim"), "Optimizer", None)
    code = getattr(getattr(module, "_call_impl", None), "__code__", None)
    if code is None or optimizer is None or not _runs(sys._getframe(1), code):
        return False
    return not any(map(_is_used, _find_subclasses(optimizer)))


def _is_used(optimizer: Any) -> bool:
    return bool(getattr(vars(optimizer).get("step"), "hooked", False))


def _find_subclasses(kind: Any) -> Iterator[Any]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _find_subclasses(subclass)


# -- optimizers ----------------------------------------------------------------------------------------------------


def _watch_optimizers(optimizer: Any, loop: StepLoop) -> Undo:
    """Watches `step` of every class of optimizer, those that exist already included.

    The function that PyTorch puts around each `step` calls, after that, a method that does nothing and is there for its
    profiler to look at.  This method's code becomes a call of `Steps`: no class and no optimizer is changed, and
    optimizers have no hook more than the program gave them.
    """
    steps = Steps(loop)
    undo = add_default(optimizer._optimizer_step_code, steps.call)
    compilers = ImportHook({"torch._dynamo": functools.partial(_keep_from_graphs, steps.call)})
    compilers.install()
    return undo_all(compilers.remove, undo)


def _keep_from_graphs(call: Any, dynamo: Any) -> None:
    """Tells PyTorch's compiler that a call does nothing: it then makes the same graphs as without.  And it compiles
    nothing of what runs in observers, if the program that calls them is compiled."""
    dynamo.substitute_in_graph(call, skip_signature_check=True)(_do_nothing)
    observe.keep_compiler_away(sys.modules["torch._C._dynamo.eval_frame"].set_eval_frame)


def _do_nothing(*args: object) -> None:
    pass


class Steps:
    """Reports the steps of optimizers.

    A step has to end after `optimizer.step()` has returned.  The method that is watched is called inside the range that
    PyTorch's profiler records for `step`, as PyTorch's own hooks are, and a step which ends there would cut that range
    in two.

    Attributes:
        call: what the method calls, with the optimizer.
    """

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop
        self._calls = OptimizerCalls(loop, "one per optimizer.step() of PyTorch")
        self.call = observe.builtin(self._step)

    def _step(self, optimizer: object) -> None:
        if not self._loop.active:
            return
        around = sys._getframe(2)  # PyTorch's function around `step`, which has called the method
        if not _runs(around.f_back, around.f_code):  # else it is part of another optimizer's
            report = functools.partial(self._calls.report, optimizer)
            report() if sys.gettrace() else observe.when_returned(around, report)


def _runs(frame: FrameType | None, code: CodeType) -> bool:
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


# -- gradients and batches -----------------------------------------------------------------------------------------


def _name_gradients(called: str) -> str:
    return "one per autograd.grad() of PyTorch" if called == "grad" else f"one per {called}() of PyTorch"


def _is_differentiated(args: tuple[Any, ...]) -> bool:
    """Whether the gradients are differentiated again: `create_graph` of the engine."""
    return len(args) > 3 and bool(args[3])


class BatchFinder(Observer):
    """Reports the batches of each loop over a DataLoader."""

    def __init__(self, loop: StepLoop, made: MadeOptimizers) -> None:
        self._loop = loop
        self._made = made
        self._numbers = Numbers()

    def before(self, fetch: object, args: tuple[Any, ...]) -> None:
        """A batch is fetched, by the iterator that is the first argument."""
        if not args or not self._loop.active:
            return
        number = self._numbers.find(args[0])
        if number is not None:
            self._made.expect()
            self._loop.end_step(StepSource(LOADED, "one per batch of a DataLoader", number))
        else:  # the time before the first batch is not a step
            self._numbers.assign(args[0])
