import random
import torch
import numpy as np
import os
from torch.utils.data import DataLoader, Dataset, get_worker_info

torch.manual_seed(5)
random.seed(5)
np.random.seed(5)


class D(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, i):
        return torch.tensor(
            [
                get_worker_info().seed % 1000 if get_worker_info() else 0,
                torch.randint(0, 1000, ()).item(),
                random.randint(0, 1000),
                np.random.randint(1000),
            ]
        )


def init(i):
    np.random.seed(torch.initial_seed() % 2**32)


lin = torch.nn.Linear(4, 1)
opt = torch.optim.Adam(lin.parameters())
sched = torch.optim.lr_scheduler.StepLR(opt, 3)
for workers, ctx, pers in ((0, None, False), (2, "fork", False), (2, "fork", True)):
    dl = DataLoader(
        D(),
        4,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context=ctx,
        worker_init_fn=init,
        persistent_workers=pers,
    )
    for e in range(2):
        for b in dl:
            print(b.tolist())
            loss = torch.nn.functional.dropout(lin(b.float())).sum()
            loss.backward()
            opt.step()
            opt.zero_grad()
        sched.step()
print(
    torch.get_rng_state().sum().item(), random.random(), np.random.rand(), lin.weight.sum().item(), sched.get_last_lr()
)
print(
    torch.initial_seed(),
    torch.get_num_threads(),
    torch.get_num_interop_threads(),
    torch.is_grad_enabled(),
    torch.is_autocast_enabled("cpu"),
    torch.are_deterministic_algorithms_enabled(),
)
