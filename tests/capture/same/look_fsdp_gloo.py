# timeout: 300
"""Two processes with FSDP2 by gloo, started by fork."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    try:
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(12):
            optimizer.zero_grad()
            model(torch.full((2, 4), float(rank + step) / 10)).sum().backward()
            optimizer.step()
        total = sum(p.full_tensor().detach().sum() for p in model.parameters())
        said = round(float(total), 3)
    except Exception as error:
        said = f"{type(error).__name__} {str(error)[:60]}"
    if rank == 0:
        print(said)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.start_processes(work, (port,), nprocs=2, start_method="spawn")
