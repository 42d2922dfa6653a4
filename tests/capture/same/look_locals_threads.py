"""locals() of a loop, kept and changed, and of another thread."""

import sys
import threading

import torch


def train():
    kept = locals()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept["mine"] = 1
    for step in range(12):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    return sorted(kept), kept.get("step"), sorted(locals())


def wait(go):
    local = 5
    locals()["other"] = 6
    go.wait()
    return local


go = threading.Event()
thread = threading.Thread(target=wait, args=(go,))
thread.start()
print(train())
frame = sys._current_frames()[thread.ident]
while frame.f_code.co_name != "wait":
    frame = frame.f_back
print({k: v for k, v in frame.f_locals.items() if k == "local"})
go.set()
thread.join()
