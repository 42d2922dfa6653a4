"""Training programs with real libraries, as their guides write them, each captured in every way there is.

    stepscope run --logdir LOGDIR/run ... library_programs.py NAME LOGDIR

`run` captures the first loop, which says nothing about profiling.  Stepscope's callback, Stepscope's API and the
library's own profiler then capture the same loop again, each below LOGDIR in a folder of its name.  What is slow is a
sleep, which takes as long on a busy machine, and is known: so it is known what a reader should be told.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import stepscope as profiler

warnings.filterwarnings("ignore")

STEPS = 10  # of each loop
FIRST, LAST = 3, 8  # the steps that are recorded, from 0
OWN_WAITS = "own-waits-"  # what the names of files of `own_way` begin with
SLOW_S = 0.15  # far more than all else in a step, also on a busy machine
PLAN = profiler.schedule(skip_first=FIRST, active=LAST - FIRST + 1, repeat=1)

Step = Callable[[], object]


def torch_profiler(logdir: Path) -> AbstractContextManager[Any]:
    """PyTorch's own profiler, set up as its guide says."""
    import torch

    return torch.profiler.profile(
        schedule=torch.profiler.schedule(skip_first=FIRST, wait=0, warmup=0, active=LAST - FIRST + 1, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(logdir)),
    )


def waits_ns() -> dict[str, int]:
    """How long each thread of this process has waited for a processor so far; empty where the system does not say."""
    found = {}
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # it has ended meanwhile
            found[thread.parent.name] = int(thread.read_text().split()[1])
    return found


@contextmanager
def own_way(logdir: Path) -> Iterator[None]:
    """The library's own profiler records in this block.

    It does not record waits for a core, so the longest that a thread of this process has in the block is left in
    the folder, in percent of the block.
    """
    start, before = time.perf_counter_ns(), waits_ns()
    yield
    waited = max((after - before.get(thread, 0) for thread, after in waits_ns().items()), default=0)
    percent = 100 * waited / (time.perf_counter_ns() - start)
    (logdir / f"{OWN_WAITS}{os.getpid()}").write_text(f"{percent}")


def record_each_way(train: Callable[..., None], logdir: Path) -> None:
    """Runs a loop three times: as `stepscope run` finds it, and under Stepscope's and PyTorch's own profiler.

    Args:
        train: the loop; what it is given is called after each step.
        logdir: where the profiles go.
    """
    train()
    with profiler.Profile(logdir / "api", schedule=PLAN) as profile:
        train(profile.step)
    with own_way(logdir), torch_profiler(logdir / "own") as own:
        train(own.step)


def rows(count: int, slow_s: float = 0.0) -> Any:
    """A data set of PyTorch whose rows take `slow_s` each to make."""
    import torch

    class Rows(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return count

        def __getitem__(self, index: int) -> dict[str, Any]:
            time.sleep(slow_s)
            return {"x": torch.full((32,), index / count), "labels": torch.tensor(index % 4)}

    return Rows()


def network(width: int = 64) -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))


def lightning(logdir: Path) -> None:
    """Lightning; a callback of the program is slow after each update."""
    import torch
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.profilers import PyTorchProfiler

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def training_step(self, batch: Any, index: int) -> Any:
            return torch.nn.functional.cross_entropy(self.network(batch["x"]), batch["labels"])

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    class SlowReport(Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            time.sleep(SLOW_S)

    class EndStep(Callback):
        def __init__(self, profile: Any) -> None:
            self.profile = profile

        def on_train_batch_end(self, *_: Any) -> None:
            self.profile.step()

    def fit(*callbacks: Any, **options: Any) -> None:
        trainer = Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[SlowReport(), *callbacks],
            **options,
        )
        trainer.fit(Module(), torch.utils.data.DataLoader(rows(STEPS * 8), batch_size=8))

    fit()
    fit(profiler.lightning.ProfilerCallback(logdir / "callback", (FIRST + 1, LAST + 1)))
    with profiler.Profile(logdir / "api", schedule=PLAN) as profile:
        fit(EndStep(profile))
    schedule = torch.profiler.schedule(skip_first=FIRST, wait=0, warmup=1, active=LAST - FIRST + 1, repeat=1)
    with own_way(logdir):
        fit(profiler=PyTorchProfiler(dirpath=logdir / "own", filename="trace", schedule=schedule))


def transformers(logdir: Path) -> None:
    """Hugging Face's Trainer with a small random model; the data set is slow."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, num_labels=4
    )

    class Texts(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return STEPS * 4

        def __getitem__(self, index: int) -> dict[str, Any]:
            time.sleep(SLOW_S / 4)
            return {"input_ids": torch.arange(8) + index % 8, "labels": index % 4}

    class EndStep(TrainerCallback):  # type: ignore[misc]
        def __init__(self, profile: Any) -> None:
            self.profile = profile

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.profile.step()

    def train(*callbacks: Any) -> None:
        arguments = TrainingArguments(
            str(logdir / "model"),
            num_train_epochs=1,
            per_device_train_batch_size=4,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        Trainer(
            BertForSequenceClassification(config), arguments, train_dataset=Texts(), callbacks=list(callbacks)
        ).train()

    train()
    train(profiler.huggingface.ProfilerCallback(logdir / "callback", (FIRST + 1, LAST + 1)))
    with profiler.Profile(logdir / "api", schedule=PLAN) as profile:
        train(EndStep(profile))
    with own_way(logdir), torch_profiler(logdir / "own") as own:
        train(EndStep(own))


def accelerate(logdir: Path) -> None:
    """Accelerate with two batches for each update; the data set is slow, and a model is evaluated after five steps."""
    import torch
    from accelerate import Accelerator, ProfileKwargs

    accumulated = 2

    def train(after_step: Step = lambda: None, accelerator: Any = None) -> None:
        accelerator = accelerator or Accelerator(cpu=True, gradient_accumulation_steps=accumulated)
        data = torch.utils.data.DataLoader(rows(STEPS * accumulated * 4, SLOW_S / 8), batch_size=4)
        model = network()
        model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.01), data)
        done = 0
        for batch in data:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(batch["x"]), batch["labels"])
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                done += 1
                after_step()

    train()
    with profiler.Profile(logdir / "api", schedule=PLAN) as profile:
        train(profile.step)
    plan = {"skip_first": FIRST, "wait": 0, "warmup": 0, "active": LAST - FIRST + 1, "repeat": 1}
    kwargs = ProfileKwargs(
        activities=["cpu"],
        schedule_option=plan,
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(logdir / "own")),
    )
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulated, kwargs_handlers=[kwargs])
    with own_way(logdir), accelerator.profile() as own:
        train(own.step, accelerator)


def closure(logdir: Path) -> None:
    """Plain PyTorch: an optimizer that evaluates a closure several times in each step, and a compute-bound model."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 4))
    x, labels = torch.randn(768, 256), torch.randint(0, 4, (768,))

    def train(after_step: Step = lambda: None) -> None:
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3, lr=1e-3, history_size=3)

        def evaluate() -> Any:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            return loss

        for _ in range(STEPS):
            optimizer.step(evaluate)
            after_step()

    record_each_way(train, logdir)


def compiled(logdir: Path) -> None:
    """torch.compile; the program reports slowly after each update."""
    import torch

    model = network(128)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    forward = torch.compile(model, backend="aot_eager")
    x, labels = torch.randn(64, 32), torch.randint(0, 4, (64,))

    def report() -> None:
        time.sleep(SLOW_S)

    def train(after_step: Step = lambda: None) -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(forward(x), labels).backward()
            optimizer.step()
            report()
            after_step()

    record_each_way(train, logdir)


def distributed(logdir: Path) -> None:
    """DistributedDataParallel over gloo; the second rank is slow before it computes."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, labels = torch.randn(64, 32), torch.randint(0, 4, (64,))

    def slow_part() -> None:
        time.sleep(SLOW_S * rank)

    def train(after_step: Step = lambda: None) -> None:
        for _ in range(STEPS):
            slow_part()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), labels).backward()
            optimizer.step()
            after_step()

    record_each_way(train, logdir)
    dist.barrier()
    dist.destroy_process_group()


def flax(logdir: Path) -> None:
    """Flax with Optax, and batches from Grain with a slow transformation."""
    import grain.python as grain
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import nnx

    class Decode(grain.MapTransform):  # type: ignore[misc]
        def map(self, row: Any) -> Any:
            time.sleep(SLOW_S / 4)
            return np.full(32, float(row), np.float32)

    def batches() -> Iterator[Any]:
        source = grain.RangeDataSource(0, STEPS * 4, 1)
        sampler = grain.IndexSampler(len(source), shard_options=grain.NoSharding(), num_epochs=1)
        yield from grain.DataLoader(
            data_source=source,
            sampler=sampler,
            operations=[Decode(), grain.Batch(4)],
            worker_count=0,
            read_options=grain.ReadOptions(num_threads=0, prefetch_buffer_size=0),
        )

    model = nnx.Linear(32, 64, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    def loss_of(model: Any, x: Any) -> Any:
        return jnp.square(model(x)).mean()

    @nnx.jit
    def train_step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, gradients = nnx.value_and_grad(loss_of)(model, x)
        optimizer.update(model, gradients)
        return loss

    def train(mark: Callable[[int], AbstractContextManager[object]] | None = None, after: Step = lambda: None) -> None:
        source = batches()
        for i in range(STEPS):
            if mark is None:
                train_step(model, optimizer, next(source)).block_until_ready()
                after()
            else:
                with mark(i):
                    train_step(model, optimizer, next(source)).block_until_ready()

    train()
    with profiler.Profile(logdir / "api", schedule=PLAN) as profile:
        train(after=profile.step)
    with own_way(logdir), jax.profiler.trace(str(logdir / "own")):
        train(lambda i: jax.profiler.StepTraceAnnotation("train", step_num=i))


PROGRAMS: dict[str, Callable[[Path], None]] = {
    function.__name__: function
    for function in (lightning, transformers, accelerate, closure, compiled, distributed, flax)
}


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # of two threads on a busy core one waits for the other
    PROGRAMS[sys.argv[1]](Path(sys.argv[2]))
