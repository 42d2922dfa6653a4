"""A tracer of the program sees the lines of a training, and no others."""

import sys

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
files = {}


def trace(frame, event, arg):
    name = "/".join(frame.f_code.co_filename.split("/")[-3:])
    files[name] = files.get(name, 0) + 1
    return trace


def train():
    for _ in range(12):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


train()
sys.settrace(trace)
train()
sys.settrace(None)
print(files.get("tests/capture/same") or [(k, v) for k, v in sorted(files.items())])
