# timeout: 240
"""Processes by `torch.multiprocessing.spawn` that share a model and events, one of which fails."""

import sys

import torch
import torch.multiprocessing as mp


def train(rank, model, queue, fails):
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    if fails and rank == 1:
        raise ValueError("rank 1 fails")
    queue.put((rank, model.weight.is_shared(), __name__, sys.argv[1:]))


if __name__ == "__main__":
    model = torch.nn.Linear(2, 1).share_memory()
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(train, (model, queue, False), nprocs=2)
    print(sorted(queue.get() for _ in range(2)))
    try:
        mp.spawn(train, (model, queue, True), nprocs=2)
    except mp.ProcessRaisedException as error:
        print(error.error_index, [line.split("/")[-1] for line in str(error).splitlines()][-3:])
    context = mp.start_processes(train, (model, queue, False), nprocs=1, join=False, start_method="fork")
    while not context.join():
        pass
    print(context.processes[0].exitcode, [queue.get()[0] for _ in range(2)])
