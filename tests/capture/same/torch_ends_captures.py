# modes: run api
# Steps go on while a capture ends and is written; what PyTorch's profiler frees then is nothing that they write to.
import time

import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
until = time.monotonic() + 3
while time.monotonic() < until:
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).pow(2).sum()
    loss.backward()
    optimizer.step()
print("trained")
