# modes: run watch
"""The hooks of the interpreter are its own while a training runs."""

import sys
import threading

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
same = []
for _ in range(20):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    same.append((sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__))
print(set(same))
threading.excepthook = lambda args: print("thread", args.exc_type.__name__, args.thread.name)
thread = threading.Thread(target=lambda: 1 / 0, name="own")
thread.start()
thread.join()
raise RuntimeError("end")
