"""Programs with worker processes: what these do is recorded in them.

stepscope run --logdir LOGDIR worker_programs.py NAME
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import sys
import time
from collections.abc import Iterator
from typing import Any

SLOW_S = 0.02  # far longer than all else that a worker does for a row, also on a busy machine
ROWS, BATCH = 4, 20


def decode(index: int) -> int:
    """The slow function."""
    time.sleep(SLOW_S)
    return index


def loader() -> None:
    """A DataLoader whose workers start before the capture; the loop itself hardly takes time."""
    import torch

    class Rows(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return ROWS * BATCH

        def __getitem__(self, index: int) -> Any:
            return torch.full((8,), float(decode(index)))

    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for batch in torch.utils.data.DataLoader(Rows(), batch_size=ROWS, num_workers=2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()


def batches(pool: Any) -> Iterator[list[int]]:
    for _ in range(BATCH):
        yield list(pool.map(decode, range(ROWS)))


def steps(pool: Any) -> None:
    import stepscope

    source = batches(pool)
    for number in range(BATCH):
        with stepscope.step(number):
            next(source)


def pool() -> None:
    """A pool of processes that start afresh.  They wait for each other: on a busy machine one starts long before the
    other, and would do all of the work meanwhile."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, initializer=context.Barrier(2).wait) as made:
        steps(made)


def executor() -> None:
    """An executor with forked processes."""
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as made:
        steps(made)


def grain() -> None:
    """Grain's loader with processes of its own, each of which reads ahead by one batch."""
    import grain.python as pygrain
    import numpy as np
    from absl import flags

    import stepscope

    class Decode(pygrain.MapTransform):
        def map(self, index: int) -> Any:
            return np.full((8,), float(decode(index)))

    flags.FLAGS.mark_as_parsed()
    count = ROWS * 3 * BATCH
    made = pygrain.DataLoader(
        data_source=range(count),
        sampler=pygrain.IndexSampler(count, pygrain.NoSharding(), shuffle=False, num_epochs=1, seed=0),
        operations=[Decode(), pygrain.Batch(ROWS)],
        worker_count=2,
        worker_buffer_size=1,
    )
    for number, _ in enumerate(made):
        stepscope.step(number)


if __name__ == "__main__":
    {function.__name__: function for function in (loader, pool, executor, grain)}[sys.argv[1]]()
