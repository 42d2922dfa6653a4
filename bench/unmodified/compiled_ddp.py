"""PyTorch: two ranks with gloo, each with a compiled model under DistributedDataParallel."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_main(rank, port):
    """Trains one rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    from clock import CLOCK

    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo")
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    model = torch.compile(torch.nn.parallel.DistributedDataParallel(model))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = torch.randn(64, 256), torch.randint(10, (64,))
    for number in range(60):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        CLOCK.tick()
        if rank == 0 and number % 20 == 19:
            print(f"step {number}")
    CLOCK.write()
    dist.destroy_process_group()


if __name__ == "__main__":
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(rank_main, (port,), nprocs=2)
