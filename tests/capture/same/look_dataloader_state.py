"""Iterators of loaders: classes, worker information, early ends."""

import torch


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, at):
        info = torch.utils.data.get_worker_info()
        return at, info.id if info else -1


if __name__ == "__main__":
    for workers, more in ((0, {}), (2, {}), (1, {"persistent_workers": True, "multiprocessing_context": "spawn"})):
        loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=workers, **more)
        for epoch in range(2):
            walk = iter(loader)
            print(type(walk).__name__, type(walk).__next__.__qualname__, len(walk), hasattr(walk, "__dict__"))
            print([each[0].tolist() for each in walk][:2])
        walk = iter(loader)
        next(walk)
        del walk
    try:
        next(iter([]))
    except StopIteration as error:
        print(repr(error))
