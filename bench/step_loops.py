"""Loops as people write them, each recorded with marks by its framework's own profiler.

    python -m bench.step_loops FRAMEWORK LOGDIR

Every loop of the framework is recorded below LOGDIR/NAME.  Tests take the marks away and ask for the steps.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

Mark = Callable[[], object]
"""Ends a step, and starts the next one."""
Step = Callable[[], object]
Loop = Callable[[Mark], object]


def repeat(step: Step, count: int, mark: Mark) -> None:
    """The plain loop."""
    for _ in range(count):
        step()
        mark()


class TorchLoops:
    """PyTorch on a CPU: two small networks with an optimizer each, and loops over one batch."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.model, self.other = (
            torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)) for _ in range(2)
        )
        self.optimizer, self.second = (
            torch.optim.Adam(network.parameters(), 1e-4) for network in (self.model, self.other)
        )
        self.x = torch.randn(64, 32)

    def train(self, rounds: int = 1) -> None:
        """One update, of the gradients of so many batches."""
        self.optimizer.zero_grad()
        for _ in range(rounds):
            self.model(self.x).square().mean().backward()
        self.optimizer.step()

    def evaluate(self) -> None:
        """Eight forward passes."""
        with self.torch.no_grad():
            for _ in range(8):
                self.model(self.x).argmax(-1)

    def save(self) -> None:
        """A checkpoint."""
        with tempfile.TemporaryFile() as file:
            self.torch.save(self.model.state_dict(), file)

    def accumulate(self, mark: Mark) -> None:
        """Gradients of four batches for each update."""
        repeat(functools.partial(self.train, rounds=4), 10, mark)

    def step_two_optimizers(self, mark: Mark) -> None:
        """Two networks in a row, each with its optimizer."""
        for _ in range(10):
            for each in (self.optimizer, self.second):
                each.zero_grad()
            self.other(self.model(self.x)).square().mean().backward()
            for each in (self.optimizer, self.second):
                each.step()
            mark()

    def train_adversaries(self, mark: Mark) -> None:
        """Two networks in turn."""
        for _ in range(10):
            self.second.zero_grad()
            made = self.model(self.x).detach()
            (self.other(self.x).relu().mean() - self.other(made).tanh().mean()).backward()
            self.second.step()
            self.optimizer.zero_grad()
            self.other(self.model(self.x)).softmax(-1).log().mean().backward()
            self.optimizer.step()
            mark()

    def train_and(self, extra: Step, every: int, mark: Mark) -> None:
        """Something else after some updates."""
        for step in range(12):
            self.train()
            if step % every == every - 1:
                extra()
            mark()

    def update_by_hand(self, mark: Mark) -> None:
        """No optimizer."""
        for _ in range(10):
            loss = self.model(self.x).square().mean()
            gradients = self.torch.autograd.grad(loss, list(self.model.parameters()))
            with self.torch.no_grad():
                for parameter, gradient in zip(self.model.parameters(), gradients, strict=True):
                    parameter -= 1e-4 * gradient
            mark()

    def load_batches(self, mark: Mark) -> None:
        """Batches of a DataLoader."""
        data = self.torch.utils.data
        for _ in data.DataLoader(data.TensorDataset(self.torch.randn(640, 32)), batch_size=64):
            self.train()
            mark()


def torch_loops() -> dict[str, Loop]:
    """The loops of PyTorch by name."""
    loops = TorchLoops()
    return _identical(loops.train) | {
        "accumulation": loops.accumulate,
        "two optimizers": loops.step_two_optimizers,
        "adversaries": loops.train_adversaries,
        "evaluation": functools.partial(loops.train_and, loops.evaluate, 4),
        "checkpoints": functools.partial(loops.train_and, loops.save, 3),
        "update by hand": loops.update_by_hand,
        "loader": loops.load_batches,
    }


def _identical(step: Step) -> dict[str, Loop]:
    """Plain loops of several lengths."""
    return {f"{count} identical": functools.partial(repeat, step, count) for count in (5, 12, 40)}


class JaxLoops:
    """JAX on a CPU: three jitted functions, compiled already, and loops over one batch."""

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        @jax.jit
        def train_step(w: Any, x: Any) -> Any:
            return w - 1e-3 * jax.grad(lambda w: jnp.square(jnp.tanh(x @ w) @ w).mean())(w)

        @jax.jit
        def evaluate(w: Any, x: Any) -> Any:
            return jnp.square(x @ w).mean()

        @jax.jit
        def loss_of(w: Any, x: Any) -> Any:
            return jnp.tanh(x @ w).mean()

        self.train_step, self.evaluate, self.loss_of = train_step, evaluate, loss_of
        # Steps of milliseconds: a busy machine changes their rhythm less.
        self.w, self.x = jnp.ones((512, 512)) * 0.01, jnp.ones((128, 512))
        for function in (train_step, evaluate, loss_of):
            jax.block_until_ready(function(self.w, self.x))

    def train(self) -> None:
        """One update, waited for."""
        self.w = self.train_step(self.w, self.x)
        self.w.block_until_ready()

    def evaluate_between(self, mark: Mark) -> None:
        """An evaluation after every fourth update."""
        for step in range(12):
            self.w = self.train_step(self.w, self.x)
            if step % 4 == 3:
                for _ in range(3):
                    self.evaluate(self.w, self.x).block_until_ready()
            self.w.block_until_ready()
            mark()

    def call_two_functions(self, mark: Mark) -> None:
        """A loss that is read before each update."""
        for _ in range(10):
            float(self.loss_of(self.w, self.x))
            self.train()
            mark()


def jax_loops() -> dict[str, Loop]:
    """The loops of JAX by name."""
    loops = JaxLoops()
    return _identical(loops.train) | {"evaluation": loops.evaluate_between, "two functions": loops.call_two_functions}


def record_torch(folder: Path, loop: Loop) -> None:
    """Records a loop by PyTorch's profiler, which marks its steps."""
    import torch

    profile = torch.profiler.profile(schedule=lambda step: torch.profiler.ProfilerAction.RECORD)
    with profile as recording:
        loop(recording.step)
    folder.mkdir(parents=True)
    profile.export_chrome_trace(str(folder / "host.1.pt.trace.json"))


def record_jax(folder: Path, loop: Loop) -> None:
    """Records a loop by JAX's profiler, with a mark around each step."""
    import jax

    open_marks: list[AbstractContextManager[Any]] = []

    def mark() -> None:
        if open_marks:
            open_marks.pop().__exit__(None, None, None)
        open_marks.append(jax.profiler.StepTraceAnnotation("train", step_num=len(open_marks)))
        open_marks[0].__enter__()

    with jax.profiler.trace(str(folder)):
        mark()
        loop(mark)
        open_marks.pop()  # the step after the last one is none


FRAMEWORKS = {"torch": (torch_loops, record_torch), "jax": (jax_loops, record_jax)}


def main(framework: str, logdir: str) -> None:
    """Records all loops of a framework."""
    make, record = FRAMEWORKS[framework]
    for name, loop in make().items():
        loop(lambda: None)  # libraries set themselves up
        record(Path(logdir, name), loop)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
