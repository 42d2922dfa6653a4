# modes: run watch
"""A `print` of a distributed program's own, as many set it up on all ranks, while it trains."""

import builtins

import torch

written = []
own_print = print


def print_of_rank_0(*words):  # no `file`, no `flush`
    written.append(words)


model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
builtins.print = print_of_rank_0
for _n in range(12):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print("trained")
builtins.print = own_print
print(written)
