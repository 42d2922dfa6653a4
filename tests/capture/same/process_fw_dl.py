# arguments: spawn fork forkserver
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class D(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.ones(2) * i


class B:
    def __init__(self, x):
        self.x = x


def c(x):
    return B(torch.stack(x))


if __name__ == "__main__":
    print(
        [int(b.x.sum()) for b in DataLoader(D(), 4, collate_fn=c, num_workers=2, multiprocessing_context=sys.argv[1])]
    )
