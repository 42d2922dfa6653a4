"""A thread ends the process while the main one trains."""

import os
import sys
import threading

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
go = threading.Event()


def end():
    go.wait()
    print("ended")
    sys.stdout.flush()
    os._exit(5)


threading.Thread(target=end, daemon=True).start()
while True:
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.state["count"] = (
        optimizer.state.get("count", 0) + 1 if isinstance(optimizer.state.get("count"), int) else 1
    )
    if optimizer.state["count"] > 15:
        go.set()
