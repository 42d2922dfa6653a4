# modes: run watch prove api
"""A timer interrupts training; callbacks of weak references run when they do without a profiler."""

import contextvars
import gc
import signal
import weakref

import torch

gc.disable()
level = contextvars.ContextVar("level", default=0)
rings, said = [], []
signal.signal(signal.SIGALRM, lambda number, frame: rings.append(level.get()))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
level.set(3)
for at in range(12):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    weakref.finalize(model, said.append, ("model", at))
    weakref.finalize(optimizer, said.append, ("optimizer", at))
    loss = model(torch.ones(1, 2)).sum()
    weakref.finalize(loss, said.append, ("loss", at))
    loss.backward()
    optimizer.step()
    said.append(("end", at))
del model, optimizer, loss
while len(rings) < 3:
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
print(said)
print(set(rings), gc.collect() >= 0)
