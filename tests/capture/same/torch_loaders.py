# modes: run watch
"""DataLoaders: batches, warnings and the line that they name, exceptions, iterators as they are."""

import warnings
import weakref

import torch
from _show import show, show_frames
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

warnings.simplefilter("always")
torch.manual_seed(0)


class Short(IterableDataset):
    def __len__(self):
        return 2

    def __iter__(self):
        return iter(torch.arange(5.0))


class Failing(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 6:
            raise KeyError("no such sample")
        return torch.ones(2) * index


def epochs(loader, count=3):
    total = 0.0
    for _ in range(count):
        for batch in loader:
            total += float(batch[0].sum())
    return total


if __name__ == "__main__":
    data = TensorDataset(torch.arange(24.0).reshape(12, 2))
    show("plain", lambda: epochs(DataLoader(data, 4)))
    show("shuffled", lambda: [batch[0][0, 0].item() for batch in DataLoader(data, 4, shuffle=True)])
    show("workers", lambda: epochs(DataLoader(data, 4, num_workers=2)))
    show("persistent", lambda: epochs(DataLoader(data, 4, num_workers=1, persistent_workers=True)))
    show("short", lambda: len(list(DataLoader(Short(), None))))
    show_frames("failing", lambda: list(DataLoader(Failing(), 2)))
    show_frames("end", lambda: next(iter(DataLoader(data, 4, sampler=[]))))
    iterator = iter(DataLoader(data, 2))
    for _ in range(4):
        next(iterator)
    show("vars", lambda: sorted(vars(iterator)))
    show(
        "called",
        lambda: (
            iterator.__next__()[0].tolist(),
            type(iterator).__next__.__name__,
            iterator.__next__.__self__ is iterator,
        ),
    )
    show("refs", lambda: weakref.ref(iterator)() is iterator)
    show("random", lambda: torch.rand(2))
    gone = weakref.ref(iterator)
    del iterator
    show("gone", lambda: gone() is None)
    for _ in DataLoader(Failing(), 2):
        pass
