"""A training that ends with an exception in a closure, below an optimizer."""

import traceback

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
count = 0


def closure():
    global count
    count += 1
    if count == 7:
        raise ValueError("the loss is not finite")
    if count == 4:
        print(len(traceback.extract_stack()), [frame.name for frame in traceback.extract_stack()][-6:])
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    return loss


while True:
    optimizer.step(closure)
