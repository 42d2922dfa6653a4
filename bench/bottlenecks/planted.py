"""Small programs that know where they wait: what `stepscope prove` should find.

Each is a function that makes a step, slow or fixed.  Its declaration names what leaves the slow part out, places on the
critical path, and places that other work hides.
"""

from __future__ import annotations

import functools
import inspect
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.bottlenecks.loops import Fit, Loop

Step = Callable[[int], object]
Made = Step | Iterator[None] | Fit | Loop


@dataclass(frozen=True)
class Planted:
    """A program, and what is true of it.

    Attributes:
        make: makes the slow or the fixed variant; with `bare`, where it knows the word, the one without the slow part,
            if a fix does a part of its work more cheaply.
        ablate: what `--ablate` gets; empty for none.
        critical, hidden: places that a step waits for, and does not.
        is_healthy: without what is ablated it is as fast as with it.
    """

    make: Callable[..., Made]
    ablate: str = ""
    critical: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    is_healthy: bool = False

    @property
    def name(self) -> str:
        """As on the command line."""
        return self.make.__name__

    @property
    def variants(self) -> dict[str, Callable[[], Made]]:
        """What makes the slow, the fixed and perhaps the bare variant."""
        made = {"slow": functools.partial(self.make, True), "fixed": functools.partial(self.make, False)}
        has_bare = "bare" in inspect.signature(self.make).parameters
        return made | ({"bare": functools.partial(self.make, True, bare=True)} if has_bare else {})


def compute_python(count: int) -> int:
    """Python for some time that does not depend on the clock: about 1 ms for 10,000."""
    return sum(number * number % 7 for number in range(count))


def compute_array(count: int) -> Any:
    """NumPy without Python's lock: about 1 ms a time."""
    array = np.ones((256, 256))
    for _ in range(count):
        array @ array
    return array


# -- PyTorch -----------------------------------------------------------------------------------------------------------


def torch_training() -> tuple[Any, Callable[[Any], Any]]:
    """A model, and a function that trains it on a batch."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)

    def train_batch(batch: Any) -> Any:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, train_batch


def torch_loader(slow: bool) -> Step:
    """A DataLoader without workers runs Python for each sample."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Samples(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1 << 20

        def __getitem__(self, at: int) -> Any:
            augment_sample(at)
            return torch.ones(256)

    def augment_sample(at: int) -> int:
        return compute_python(2500)

    _, train_batch = torch_training()
    batches, ready = iter(DataLoader(Samples(), batch_size=32)), torch.ones(32, 256)
    return lambda number: train_batch(next(batches) if slow else ready)


def torch_metric(slow: bool) -> Step:
    """Each step computes a metric in Python."""
    import torch

    _, train_batch = torch_training()
    batch = torch.ones(64, 256)

    def count_errors(loss: Any) -> int:
        return compute_python(60_000)

    def step(number: int) -> None:
        loss = train_batch(batch)
        if slow:
            count_errors(loss)

    return step


def torch_fed_by_thread(slow: bool) -> Step:
    """A thread makes batches ahead of time, faster than they are used."""
    import torch

    _, train_batch = torch_training()
    batches: queue.Queue[Any] = queue.Queue(4)

    def make_batch() -> Any:
        time.sleep(0.002)
        return torch.ones(256, 256)

    def feed() -> None:
        while True:
            batches.put(make_batch())

    def use_batch(batch: Any) -> None:
        for _ in range(3):
            train_batch(batch)

    threading.Thread(target=feed, daemon=True).start()
    return lambda number: use_batch(batches.get())


def torch_starved_by_thread(slow: bool) -> Step:
    """A thread makes batches, and waits for longer than a step computes."""
    import torch

    _, train_batch = torch_training()
    batches: queue.Queue[Any] = queue.Queue(2)
    ready = torch.ones(64, 256)

    def fetch_remote() -> Any:
        time.sleep(0.025)
        return ready

    def feed() -> None:
        while True:
            batches.put(fetch_remote())

    def next_batch() -> Any:
        return batches.get()

    if slow:
        threading.Thread(target=feed, daemon=True).start()
    return lambda number: train_batch(next_batch() if slow else ready)


def torch_healthy(slow: bool) -> Step:
    """Trains on tensors that are there, and saves and logs next to nothing."""
    import torch

    _, train_batch = torch_training()
    batch, log = torch.ones(256, 256), logging.getLogger("planted")

    def step(number: int) -> None:
        train_batch(batch)
        log.debug("a step")
        log.handle(logging.LogRecord("planted", logging.DEBUG, "", 0, "a step", None, None))

    return step


# -- JAX ---------------------------------------------------------------------------------------------------------------


def jax_training() -> Callable[[Any, Any], Any]:
    """A compiled step: weights and a batch to new weights and a loss."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def train_step(weights: Any, batch: Any) -> Any:
        loss, slope = jax.value_and_grad(lambda each: jnp.mean(jnp.tanh(batch @ each @ each.T) ** 2))(weights)
        return weights - 0.01 * slope, loss

    return train_step


def jax_reads(slow: bool) -> Step:
    """Each step waits for a store before it computes."""
    import jax.numpy as jnp

    train_step, state = jax_training(), [jnp.ones((512, 512))]
    ready = np.ones((256, 512), np.float32)

    def read_store() -> Any:
        time.sleep(0.008)
        return ready

    def step(number: int) -> None:
        state[0], loss = train_step(state[0], read_store() if slow else ready)
        loss.block_until_ready()

    return step


def jax_overlapped(slow: bool) -> Step:
    """The host prepares the next batch while the device computes."""
    import jax.numpy as jnp

    train_step, state = jax_training(), [jnp.ones((1024, 1024))]
    ready = np.ones((512, 1024), np.float32)

    def prepare_next() -> None:
        time.sleep(0.002)

    def read_loss(loss: Any) -> float:
        return float(loss)

    def step(number: int) -> None:
        state[0], loss = train_step(state[0], ready)
        prepare_next()
        read_loss(loss)

    return step


# -- without a framework -----------------------------------------------------------------------------------------------


def plain_pool(slow: bool) -> Step:
    """A pool makes the metrics of a step during the next one."""
    pool, pending = ThreadPoolExecutor(1), [Future[None]()]
    pending[0].set_result(None)

    def make_metrics() -> None:
        time.sleep(0.004)

    def update_weights() -> None:
        compute_array(15)

    def step(number: int) -> None:
        update_weights()
        pending[0].result()
        pending[0] = pool.submit(make_metrics)

    return step


def plain_locked(slow: bool) -> Step:
    """Each step waits until a service answers, which works on another thread."""
    asked: queue.Queue[int] = queue.Queue()
    answers: queue.Queue[int] = queue.Queue()

    def answer_request() -> int:
        time.sleep(0.006)
        return 1

    def serve() -> None:
        while True:
            asked.get()
            answers.put(answer_request())

    def ask_service() -> int:
        asked.put(1)
        return answers.get()

    threading.Thread(target=serve, daemon=True).start()

    def step(number: int) -> None:
        compute_array(6)
        if slow:
            ask_service()

    return step


PLANTED = {
    each.name: each
    for each in (
        Planted(torch_loader, "input", critical=("augment_sample",)),
        Planted(torch_metric, "count_errors", critical=("count_errors",)),
        Planted(torch_fed_by_thread, critical=("use_batch",), hidden=("make_batch",)),
        Planted(torch_starved_by_thread, "next_batch", critical=("fetch_remote",), hidden=("train_batch",)),
        Planted(torch_healthy, "logging", critical=("train_batch",), is_healthy=True),
        Planted(jax_reads, "read_store", critical=("read_store",)),
        Planted(jax_overlapped, hidden=("prepare_next",), critical=("train_step",)),
        Planted(plain_pool, hidden=("make_metrics",), critical=("update_weights",)),
        Planted(plain_locked, "ask_service", critical=("answer_request",)),
    )
}
