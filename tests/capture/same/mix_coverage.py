# modes: run watch prove
"""A tool counts lines with sys.settrace while the code compiles, trains, and starts threads."""

import sys
import threading

import torch

counts = {}


def trace(frame, event, argument):
    if frame.f_code.co_filename != __file__:
        return None
    if event == "line":
        key = frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno
        counts[key] = counts.get(key, 0) + 1
    return trace


def step(model, optimizer):
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    optimizer.step()
    return loss


def train():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        step(model, optimizer)


threading.settrace(trace)
sys.settrace(trace)
train()
thread = threading.Thread(target=train)
thread.start()
thread.join()
print(sys.gettrace() is trace)
sys.settrace(None)
print(sorted(counts.items()))
