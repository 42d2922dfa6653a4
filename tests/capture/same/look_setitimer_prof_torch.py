"""The same in a training, which stops it."""

import signal

import torch

ticks = []
signal.signal(signal.SIGPROF, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
model = torch.nn.Linear(200, 200)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(200):
    model(torch.ones(100, 200)).mean().backward()
    optimizer.step()
signal.setitimer(signal.ITIMER_PROF, 0)
print(len(ticks) > 2)
