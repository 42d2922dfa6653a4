"""Loops as people write them, each recorded with marks by its framework's own profiler.

    python -m bench.step_loops FRAMEWORK LOGDIR

Every loop of the framework is recorded below LOGDIR/NAME.  Tests take the marks away and ask for the steps.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

Mark = Callable[[], object]
"""Ends a step, and starts the next one."""


def torch_loops() -> dict[str, Callable[[Mark], None]]:
    """PyTorch on a CPU."""
    import torch

    torch.set_num_threads(1)
    networks = [torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)) for _ in "ab"]
    model, other = networks
    optimizer, second = (torch.optim.Adam(network.parameters(), 1e-4) for network in networks)
    x = torch.randn(64, 32)

    def train(rounds: int = 1) -> None:
        optimizer.zero_grad()
        for _ in range(rounds):
            model(x).square().mean().backward()
        optimizer.step()

    def evaluate() -> None:
        with torch.no_grad():
            for _ in range(8):
                model(x).argmax(-1)

    def save() -> None:
        with tempfile.TemporaryFile() as file:
            torch.save(model.state_dict(), file)

    def simple(count: int) -> Callable[[Mark], None]:
        def loop(mark: Mark) -> None:
            for _ in range(count):
                train()
                mark()

        return loop

    def accumulation(mark: Mark) -> None:
        for _ in range(10):
            train(rounds=4)
            mark()

    def two_optimizers(mark: Mark) -> None:
        for _ in range(10):
            for each in (optimizer, second):
                each.zero_grad()
            other(model(x)).square().mean().backward()
            for each in (optimizer, second):
                each.step()
            mark()

    def adversaries(mark: Mark) -> None:
        for _ in range(10):
            second.zero_grad()
            (other(x).relu().mean() - other(model(x).detach()).tanh().mean()).backward()
            second.step()
            optimizer.zero_grad()
            other(model(x)).softmax(-1).log().mean().backward()
            optimizer.step()
            mark()

    def evaluation(mark: Mark) -> None:
        for step in range(12):
            train()
            if step % 4 == 3:
                evaluate()
            mark()

    def checkpoints(mark: Mark) -> None:
        for step in range(12):
            train()
            if step % 3 == 2:
                save()
            mark()

    def update_by_hand(mark: Mark) -> None:
        for _ in range(10):
            loss = model(x).square().mean()
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter -= 1e-4 * gradient
            mark()

    def loader(mark: Mark) -> None:
        for _ in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(640, 32)), batch_size=64):
            train()
            mark()

    counts = {f"{count} identical": simple(count) for count in (5, 12, 40)}
    return counts | {
        "accumulation": accumulation, "two optimizers": two_optimizers, "adversaries": adversaries,
        "evaluation": evaluation, "checkpoints": checkpoints, "update by hand": update_by_hand, "loader": loader,
    }  # fmt: skip


def jax_loops() -> dict[str, Callable[[Mark], None]]:
    """JAX on a CPU."""
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

    w, x = jnp.ones((128, 128)) * 0.01, jnp.ones((64, 128))
    for function in (train_step, evaluate, loss_of):
        jax.block_until_ready(function(w, x))

    def simple(count: int) -> Callable[[Mark], None]:
        def loop(mark: Mark) -> None:
            now = w
            for _ in range(count):
                now = train_step(now, x)
                now.block_until_ready()
                mark()

        return loop

    def evaluation(mark: Mark) -> None:
        now = w
        for step in range(12):
            now = train_step(now, x)
            if step % 4 == 3:
                for _ in range(3):
                    evaluate(now, x).block_until_ready()
            now.block_until_ready()
            mark()

    def two_functions(mark: Mark) -> None:
        now = w
        for _ in range(10):
            float(loss_of(now, x))
            now = train_step(now, x)
            now.block_until_ready()
            mark()

    counts = {f"{count} identical": simple(count) for count in (5, 12, 40)}
    return counts | {"evaluation": evaluation, "two functions": two_functions}


def record_torch(folder: Path, loop: Callable[[Mark], None]) -> None:
    """Records a loop by PyTorch's profiler, which marks its steps."""
    import torch

    profile = torch.profiler.profile(schedule=lambda step: torch.profiler.ProfilerAction.RECORD)
    with profile as recording:
        loop(recording.step)
    folder.mkdir(parents=True)
    profile.export_chrome_trace(str(folder / "host.1.pt.trace.json"))


def record_jax(folder: Path, loop: Callable[[Mark], None]) -> None:
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
