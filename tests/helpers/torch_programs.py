"""Small PyTorch programs under torch.profiler on a CPU, each run as a process of its own.

    python torch_programs.py NAME LOGDIR

writes profiles below LOGDIR as `tensorboard_trace_handler` does, and prints one JSON line: what the program's own clock
said, as `step_ms`.  Nothing of Stepscope is imported.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

ITEM_SECONDS = 0.02  # of which a busy machine changes little
BATCH = 4
SLOW_SECONDS = 0.15  # much longer than a busy machine keeps a process waiting
ACTIVE = 4
EPOCH = 6
WORKERS = 3


def ddp(logdir: str) -> list[float]:
    """Two processes train with gloo; rank 1 sleeps in every step."""
    Path(logdir).mkdir(parents=True, exist_ok=True)
    forks = multiprocessing.get_context("fork")  # of a process that may have imported PyTorch already
    ranks = [forks.Process(target=ddp_rank, args=(logdir, str(rank))) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(timeout=300)
    if any(process.exitcode != 0 for process in ranks):
        raise RuntimeError(f"the ranks ended with {[process.exitcode for process in ranks]}")
    return []


def ddp_rank(logdir: str, rank: str) -> list[float]:
    """One rank of `ddp`."""
    import torch
    from torch import distributed, nn
    from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

    torch.set_num_threads(1)
    meeting = Path(logdir).resolve().with_name("meeting")
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=int(rank), world_size=2)
    arrivals = distributed.FileStore(str(meeting.with_name("arrivals")), 2)
    layers = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    model = nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=ACTIVE),
        record_shapes=True,
        on_trace_ready=tensorboard_trace_handler(logdir, worker_name=f"worker{rank}"),
    ) as profiler:
        for step in range(2 + ACTIVE):
            optimizer.zero_grad()
            loss = model(torch.randn(32, 256)).sum()
            if rank == "0":
                arrivals.set(str(step), "here")
            else:  # late on a busy machine too: it sleeps when the other has almost all behind it
                arrivals.wait([str(step)])
                time.sleep(SLOW_SECONDS)
            loss.backward()
            optimizer.step()
            profiler.step()
    distributed.destroy_process_group()
    return []


def loader(logdir: str, workers: str) -> list[float]:
    """A loop whose items take ITEM_SECONDS each to make; returns the wait for each profiled batch in ms."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset[Any]):
        def __len__(self) -> int:
            return BATCH * (2 + ACTIVE)

        def __getitem__(self, _: int) -> Any:
            time.sleep(ITEM_SECONDS)
            return torch.zeros(64)

    torch.set_num_threads(1)
    layer = torch.nn.Linear(64, 64)
    waits: list[float] = []
    batches = iter(DataLoader(Slow(), batch_size=BATCH, num_workers=int(workers)))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=ACTIVE),
        on_trace_ready=tensorboard_trace_handler(logdir, worker_name=f"workers{workers}"),
    ) as profiler:
        for _ in range(2 + ACTIVE):
            begin = time.perf_counter()
            batch = next(batches)
            waits.append((time.perf_counter() - begin) * 1e3)
            layer(batch).sum().backward()
            profiler.step()
    return waits[2:]


def epoch(logdir: str) -> list[float]:
    """A whole pass over a loader with WORKERS processes, recorded with stacks; `.item()` in every step.

    Returns the time of each call of `next` in ms, the last of which finds that there is no more.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile, tensorboard_trace_handler
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    waits: list[float] = []
    with profile(
        activities=[ProfilerActivity.CPU],
        with_stack=True,
        on_trace_ready=tensorboard_trace_handler(logdir, worker_name="epoch"),
    ) as profiler:
        batches = iter(DataLoader(torch.zeros(EPOCH * BATCH, 64), batch_size=BATCH, num_workers=WORKERS))
        for _ in range(EPOCH + 1):
            begin = time.perf_counter()
            batch = next(batches, None)
            waits.append((time.perf_counter() - begin) * 1e3)
            if batch is not None:
                read_twice(batch)
                profiler.step()
    return waits


def read_twice(batch: Any) -> float:
    """Reads two values of a tensor, each by one `.item()`."""
    return float(batch.sum().item()) + float(batch.max().item())


def loader_alone(logdir: str) -> list[float]:
    """No worker processes."""
    return loader(logdir, "0")


def loader_workers(logdir: str) -> list[float]:
    """Two worker processes."""
    return loader(logdir, "2")


if __name__ == "__main__":
    print(json.dumps({"step_ms": globals()[sys.argv[1]](*sys.argv[2:])}))
