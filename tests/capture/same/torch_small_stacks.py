import threading
import time

threading.stack_size(32768)
import torch
from torch import nn

model = nn.Linear(64, 64)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(60):
    opt.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    opt.step()
    time.sleep(0.005)
print("done", threading.stack_size())
