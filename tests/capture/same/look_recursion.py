"""How deep the program can go."""

import sys

import torch

deepest = 0


def dive(n):
    global deepest
    deepest = max(deepest, n)
    dive(n + 1)


model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
found = set()
for _ in range(12):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    deepest = 0
    try:
        dive(0)
    except RecursionError as error:
        found.add((deepest, str(error)))
print(found, sys.getrecursionlimit())
