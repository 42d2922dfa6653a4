import sys
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    opt.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    opt.step()


step()


def deepest(limit):
    """How many more frames of ours fit above a step."""

    def down(n):
        if n == 0:
            step()
            return 0
        return down(n - 1)

    fits = []
    for n in range(1, limit):
        try:
            down(n)
            fits.append(n)
        except RecursionError:
            break
    return len(fits)


sys.setrecursionlimit(120)
counts = [deepest(200) for _ in range(12)]
sys.setrecursionlimit(1000)
print(counts)
for _ in range(20):
    step()
