"""How deep the program can go inside of a hook of the optimizer and of a closure."""

import sys

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
depths = []


def depth():
    frame, count = sys._getframe(), 0
    while frame:
        frame, count = frame.f_back, count + 1
    return count


def closure():
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    depths.append(depth())
    return loss


optimizer.register_step_post_hook(lambda *_: depths.append(depth()))
for _ in range(12):
    optimizer.step(closure)
print(depths)
