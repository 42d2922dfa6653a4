"""PyTorch: a DataLoader whose two workers are spawned, not forked."""

import time

import torch
from clock import CLOCK


class Pictures(torch.utils.data.Dataset):
    """Made-up pictures that take a while to decode."""

    def __len__(self):
        return 16 * 60

    def __getitem__(self, index):
        return decode(index), index % 10


def decode(index):
    """A picture, after 2 ms."""
    time.sleep(0.002)
    return torch.full((3, 16, 16), index / 960)


def main():
    """Trains for an epoch."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Pictures(), 16, num_workers=2, multiprocessing_context="spawn")
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for number, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        CLOCK.tick()
        if number % 20 == 19:
            print(f"batch {number}")


if __name__ == "__main__":
    main()
