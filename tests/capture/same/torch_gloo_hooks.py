# modes: run watch
# timeout: 300
"""Two ranks on gloo with communication hooks, unsynchronised steps, uneven inputs and a store of their own."""

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel


def worker(rank, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{path}", rank=rank, world_size=2, timeout=timedelta(seconds=100))
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    buckets = []

    def hook(state, bucket):
        state.append((bucket.index(), bucket.buffer().numel()))
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda each: each.value()[0] / 2)

    model.register_comm_hook(buckets, hook)
    for at in range(6):
        optimizer.zero_grad()
        if at == 2:
            with model.no_sync():
                model(torch.ones(1, 3)).sum().backward()
        model(torch.full((1, 3), float(rank))).sum().backward()
        optimizer.step()
    with Join([model]):
        for _ in range(2 + rank):
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
    gathered = [None, None]
    dist.all_gather_object(gathered, (rank, len(buckets), round(float(model.module.weight.sum()), 5)))
    if rank == 0:
        print(gathered, dist.get_backend(), sorted(set(buckets)), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(worker, (os.path.join(folder, "store"),), 2, start_method=(sys.argv[1:] or ["spawn"])[0])
    print("joined")
