# timeout: 240
# arguments: fork persistent forkserver_ spawn_ fails killed timeout iterable
"""Loaders whose workers fork, stay, fail, are killed or hang, and what the parent is told."""

import os
import signal
import sys
import time
import warnings

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

way = sys.argv[1]


class Rows(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, n):
        if way == "fails" and n == 9:
            raise KeyError("row 9")
        if way == "killed" and n == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "timeout" and n == 9:
            time.sleep(30)
        if way == "fork" and n == 3:
            pid = os.fork()
            if pid == 0:
                os._exit(5)
            return torch.tensor([float(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))])
        return torch.tensor([float(n)])


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from (torch.tensor([float(n)]) for n in range(info.id, 16, info.num_workers))


def begin(n):
    torch.manual_seed(n)
    handler = signal.getsignal(signal.SIGTERM)
    started.append((n, handler if isinstance(handler, int) else "set", len(warnings.filters) > 0))


started = []
if __name__ == "__main__":
    context = {"forkserver_": "forkserver", "spawn_": "spawn"}.get(way, "fork")
    loader = DataLoader(
        Stream() if way == "iterable" else Rows(), batch_size=4, num_workers=2, worker_init_fn=begin,
        persistent_workers=way == "persistent", multiprocessing_context=context, timeout=3 if way == "timeout" else 0,
        prefetch_factor=1,
    )  # fmt: skip
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    torch.nn.init.ones_(model.weight)
    torch.nn.init.zeros_(model.bias)
    try:
        for epoch in range(2):
            for batch in loader:
                optimizer.zero_grad()
                loss = model(batch).mean()
                loss.backward()
                optimizer.step()
                if way != "killed":  # which batches come before it is chance
                    print(epoch, batch.flatten().tolist(), round(float(loss), 4))
    except Exception as error:
        print(type(error).__name__, [line.split("/")[-1] for line in str(error).splitlines() if "pid" not in line][:9])
    print(torch.multiprocessing.active_children() == [] or way == "persistent", started)
