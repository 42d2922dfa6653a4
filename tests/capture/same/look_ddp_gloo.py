# timeout: 300
"""Two processes with DDP by gloo, started by spawn."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(12):
        optimizer.zero_grad()
        model(torch.full((1, 2), float(rank + step))).sum().backward()
        optimizer.step()
    total = model.module.weight.detach().sum()
    dist.all_reduce(total)
    if rank == 0:
        print(round(float(total), 4), sorted(k for k in os.environ if "STEP" in k), __name__)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (port,), nprocs=2)
