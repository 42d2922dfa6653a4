# timeout: 300
"""Loaders that are odd: iterable with workers, persistent, left early, failing, nested, subclassed, kept iterators."""

import gc
import itertools
import sys
import torch
import weakref
from torch.utils.data import DataLoader, Dataset, IterableDataset, BatchSampler, RandomSampler, get_worker_info
from _show import show


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from range(info.id if info else 0, 12, info.num_workers if info else 1)


class Fails(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, n):
        if n == 5:
            raise KeyError(n)
        return torch.tensor(n)


class Sub(DataLoader):
    made = 0

    def __iter__(self):
        Sub.made += 1
        return (batch * 2 for batch in super().__iter__())


if __name__ == "__main__":
    torch.manual_seed(0)
    for workers in (0, 2):
        print([b.tolist() for b in DataLoader(Stream(), batch_size=4, num_workers=workers)])
    loader = DataLoader(
        range(8),
        batch_size=2,
        num_workers=1,
        persistent_workers=True,
        shuffle=True,
        worker_init_fn=lambda n: torch.manual_seed(n),
        multiprocessing_context="fork",
    )
    for epoch in range(3):
        print([b.tolist() for b in loader])
    one = iter(loader)
    print(next(one).tolist())
    two = iter(loader)
    print(one is two, type(one).__name__)
    show("fails", lambda: list(DataLoader(Fails(), num_workers=0)))
    try:
        list(DataLoader(Fails(), num_workers=1))
    except KeyError as error:
        print("KeyError", "Original Traceback" in str(error), error.__cause__)
    print([b.tolist() for b in Sub(range(4), batch_size=2)], Sub.made)
    outer = DataLoader(range(2))
    for a in outer:
        for b in DataLoader(range(2), batch_size=2):
            print(a.tolist(), b.tolist())
    early = iter(DataLoader(range(100), num_workers=2))
    next(early)
    ref = weakref.ref(early)
    refs = sys.getrefcount(early)
    print(refs)
    del early
    print(ref())
    it = iter(DataLoader(range(4)))
    print(list(itertools.islice(it, 2)), list(it))
    show("over", lambda: next(it))
    model = torch.nn.Linear(1, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x in DataLoader(
            [torch.ones(1)] * 6, sampler=RandomSampler(range(6), generator=torch.Generator().manual_seed(1))
        ):
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
    print(torch.random.initial_seed(), torch.rand(1), [p.item() for p in model.parameters()])
    zipped = zip(DataLoader(range(3)), DataLoader(range(5)), strict=False)
    print(len(list(zipped)))
