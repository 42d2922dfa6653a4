import sys
import time
import torch
from torch import nn

model = nn.Linear(64, 64)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def walk():
    n = 0
    for name, module in sys.modules.items():
        n += len(name)
        if n % 97 == 0:
            time.sleep(0)
    return n > 0


for i in range(120):
    opt.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    opt.step()
    for _ in range(3):
        walk()
print("walked")
